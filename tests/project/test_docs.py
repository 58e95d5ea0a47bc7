"""The documents: every example in them runs, and prints what they say it prints."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_FENCE = re.compile(r"^(?P<marks>`{3,})(?P<language>[\w-]*)[^\n`]*\n(?P<body>.*?)^(?P=marks)[ ]*$",
                    re.MULTILINE | re.DOTALL)  # fmt: skip


class Block(NamedTuple):
    language: str
    body: str
    line: int  # of its first line in the page


class Example(NamedTuple):
    code: Block
    output: Block | None  # what the page says that it prints


def blocks(text: str) -> list[Block]:
    return [
        Block(match["language"], match["body"], text.count("\n", 0, match.start("body")) + 1)
        for match in _FENCE.finditer(text)
    ]


def examples(text: str) -> list[Example]:
    """Each Python block, with the text block that comes next if one does."""
    found = blocks(text)
    following = [*found, None][1:]
    return [
        Example(block, after if after is not None and after.language == "text" else None)
        for block, after in zip(found, following, strict=True)
        if block.language == "python"
    ]


def run(text: str, name: str) -> None:
    """Run the examples of one page, one after the other, in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for code, output in examples(text):
        # Blank lines in front make line numbers of errors those of the page.
        program = compile("\n" * (code.line - 1) + code.body, name, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        if output is not None:
            place = f"{name}, line {output.line}"
            found, expected = tidy(printed.getvalue()), tidy(output.body)
            assert agree(found, expected), f"{place}: other output\n" + "\n".join(
                difflib.ndiff(expected, found)
            )


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


# A number in running text, in a table or in an array; not a digit inside a name.
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w])")
# Less than this is what rounding leaves, and no digit of it is determined.
_ROUNDING = 1e-6


def agree(found: list[str], expected: list[str]) -> bool:
    """Whether a text says the same, with numbers compared as numbers.

    Processors differ in the last digits of a sum, and where these decide how a number is rounded
    for display, its last digit goes up or down by one. Whole numbers and words are what they are.
    """
    return len(found) == len(expected) and all(map(same_line, found, expected))


def same_line(found: str, expected: str) -> bool:
    if "..." in expected:
        pattern = ".*".join(map(re.escape, expected.split("...")))
        return re.fullmatch(pattern, found) is not None
    numbers = _NUMBER.findall(found), _NUMBER.findall(expected)
    return words_of(found) == words_of(expected) and all(map(same_number, *numbers))


def words_of(line: str) -> str:
    """A line without its numbers; columns, and rules below them, are as wide as these."""
    return " ".join(re.sub("-{2,}", "--", _NUMBER.sub("#", line)).split())


def same_number(found: str, expected: str) -> bool:
    if found == expected:
        return True
    a, b = (float(number.replace(",", "")) for number in (found, expected))
    if "." not in expected and "e" not in expected.lower():
        return a == b
    return abs(a - b) < 1.5 * last_place(expected) or max(abs(a), abs(b)) < _ROUNDING


def last_place(number: str) -> float:
    """What the last digit of a number counts."""
    digits, _, power = number.lower().partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page.read_text(encoding="utf-8"), page.name)


def test_readme_shows_how_to_use_the_package() -> None:
    found = examples((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found, "README.md has no ```python block; show the main job there"
    assert any("import counterlvq" in example.code.body for example in found)


# --- the runner itself --------------------------------------------------------------------------

PAGE = """# Title

```python
first = 20
```

and then

```python
print(first + 1)
```

```text
21
```

```sh
no python
```
"""


def test_runner_shares_names_and_compares_output() -> None:
    assert [example.code.line for example in examples(PAGE)] == [4, 10]
    assert [example.output is None for example in examples(PAGE)] == [True, False]
    run(PAGE, "page.md")


def test_runner_notices_other_output() -> None:
    with pytest.raises(AssertionError, match=r"page\.md, line 14: other output"):
        run(PAGE.replace("\n21\n", "\n22\n"), "page.md")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("cost 1.91112, gap 3e-12", "cost 1.91113, gap 1e-09"),
        ("2.57 features", "2.58 features"),
        ("mean  9.99", "mean 10.00"),
        ("height   -0.5", "height  -0.5"),
        ("took 3.2 s", "took ... s"),
        ("mean 1,500.32", "mean 1,500.31"),
    ],
)
def test_last_digits_are_left_to_the_processor(found: str, expected: str) -> None:
    assert agree([found], [expected])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("cost 1.91", "cost 1.93"),
        ("cost 1.91", "price 1.91"),
        ("322 rows", "323 rows"),
        ("-0.5", "0.5"),
        ("x1 is 2.0", "x2 is 2.0"),
        ("1,500.32", "2,500.32"),
        ("gap 1e-03", "gap 1e-09"),
        ("2.0 and 3.0", "2.0"),
        ("took 3.2 h", "took ... s"),
    ],
)
def test_other_numbers_and_words_are_noticed(found: str, expected: str) -> None:
    assert not agree([found], [expected])


def test_runner_notices_a_failing_example() -> None:
    with pytest.raises(NameError, match="second") as raised:
        run(PAGE.replace("first + 1", "second + 1"), "page.md")
    assert raised.traceback[-1].lineno == 9  # counted from 0: line 10 of the page
