"""The documents: every example in them runs, and prints what they say it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
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
    following = [*found[1:], None]
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
            assert tidy(printed.getvalue()) == tidy(output.body), f"{place}: other output"


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


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


def test_runner_notices_a_failing_example() -> None:
    with pytest.raises(NameError, match="second") as raised:
        run(PAGE.replace("first + 1", "second + 1"), "page.md")
    assert raised.traceback[-1].lineno == 9  # counted from 0: line 10 of the page
