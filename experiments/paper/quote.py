"""Copy the tables of the stored run into the docs: `python -m experiments.paper.quote`.

A test compares the two, so that the docs never show other figures than the stored ones.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from counterlvq_paper.journal import write_atomically
from counterlvq_paper.report import table_1, table_2
from counterlvq_paper.results import Results, results_of_plain

HERE = Path(__file__).resolve().parent
STORED = HERE / "results" / "reproduction.json"
PAGE = HERE.parents[1] / "docs" / "reproduction.md"


def stored() -> Results:
    return results_of_plain(json.loads(STORED.read_text("utf-8")))


def quoted(page: str, results: Results) -> str:
    """The page with what stands between its marks replaced by what the run says."""
    parts = {"summary": summary(results), "table 1": tables(table_1(results)),
             "table 2": tables(table_2(results))}  # fmt: skip
    for name, text in parts.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end of {name} -->)", re.DOTALL)
        page, count = mark.subn(lambda found, text=text: found[1] + text + found[2], page)
        if count != 1:
            raise ValueError(f"the page has {count} places marked {name!r}; expected one.")
    return page


def tables(lines: Iterable[str]) -> str:
    """The rows of a table without the words around it."""
    return "\n".join(line for line in lines if line.startswith("|"))


def summary(results: Results) -> str:
    """What was compared, what holds, and how much faster the answers come."""
    lines = {(line.data, line.model, line.method): line for line in results.lines}
    searches = [line for line in results.lines if line.method in ("Nelder-Mead", "CMA-ES")]
    shared = [line.faster_auto for line in searches if line.model != "LGMLVQ"]
    ccp = [line.faster_ccp for line in searches if line.model == "LGMLVQ"]
    auto = [line.faster_auto for line in searches if line.model == "LGMLVQ"]
    proved = ", ".join(
        f"{lines[data, 'LGMLVQ', 'auto'].proved:.1%} ({data})"
        for data in ("cancer", "digits", "Ames")
    )
    excess = [
        line.mean_common / lines[line.data, line.model, "auto"].mean_common for line in searches
    ]
    holds = sum(verdict.holds for verdict in results.verdicts)
    return (
        f"In the stored run {holds} of {len(results.verdicts)} claims hold, each on every row that "
        f"it is about. On rows that all methods solved, the searches go "
        f"{min(excess):.2f} to {max(excess):.2f} times as far as needed. With shared metrics one "
        f"answer with proof takes {min(shared):,.0f} to {max(shared):,.0f} times less than a "
        f"search, asked one at a time. With local metrics `ccp` takes "
        f"{min(ccp):,.1f} to {max(ccp):,.0f} times less; `auto`, which proves "
        f"{proved} of its answers, from {1 / min(auto):,.1f} times more than Nelder-Mead at worst "
        f"to {max(auto):,.0f} times less than CMA-ES."
    )


def main() -> int:
    page = quoted(PAGE.read_text("utf-8"), stored())
    write_atomically(PAGE, lambda place: place.write_text(page, "utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
