"""One run as Markdown, CSV, JSON and a picture. Files appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from counterlvq_paper.equation import FIRST_STEP, STRENGTHS
from counterlvq_paper.houses import RULE, HouseAnswer
from counterlvq_paper.journal import write_atomically
from counterlvq_paper.methods import METHODS
from counterlvq_paper.published import SPEED_UP, TABLE_2, TABLE_2_COLUMNS, UNSOLVED
from counterlvq_paper.results import Results, duration, plain_of
from counterlvq_paper.tables import Line

__all__ = ["markdown", "table_1", "table_2", "verdict_lines", "write_all"]


def write_all(results: Results, folder: Path) -> None:
    """Write the report, the tables as CSV, everything as JSON, and the picture."""
    from counterlvq_paper.picture import draw

    folder.mkdir(parents=True, exist_ok=True)
    plain = json.dumps(plain_of(results), indent=1, allow_nan=False) + "\n"
    texts = {
        "reproduction.json": plain,
        "table1.csv": _csv([asdict(line) for line in results.lines]),
        "table2.csv": _csv([_flat(answer) for answer in results.houses]),
        "reproduction.md": markdown(results),
    }
    if results.peers:
        texts["ceml.csv"] = _csv([asdict(line) for line in results.peers])
    for name, text in texts.items():
        write_atomically(folder / name, partial(_put, text))
    write_atomically(folder / "reproduction.png", lambda place: draw(results, place))


def _put(text: str, place: Path) -> None:
    place.write_text(text, "utf-8")


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(answer: HouseAnswer) -> dict[str, Any]:
    plain = asdict(answer)
    areas = plain.pop("areas")
    return {"model": plain.pop("model"), "constrained": plain.pop("constrained"), **areas, **plain}


def verdict_lines(results: Results) -> Iterator[str]:
    """Say what holds and what does not, for a terminal."""
    for verdict in results.verdicts:
        yield f"{'holds ' if verdict.holds else 'FAILS '} {verdict.claim} ({verdict.evidence})"


def markdown(results: Results) -> str:
    """Write the whole report."""
    parts = (_head, _verdicts, table_1, _details, table_2, _peers, _differences)
    return "\n".join(line for part in parts for line in part(results))


def _head(results: Results) -> Iterator[str]:
    machine, settings = results.machine, results.settings
    stamped = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    quick = " --quick" if settings.name == "quick" else ""
    yield "# The paper's tables, run again\n"
    yield f"`python -m counterlvq_paper{quick}`, finished {machine['date']}."
    yield (
        f"{stamped}; {machine['platform']}, {machine['cores']} cores, {machine['jobs']} processes, "
        f"{results.work / 60:.1f} minutes of the processor in all, {results.waited / 60:.1f} on "
        f"the clock summed over the processes, load average at the end {machine['load']}. All "
        f"random draws come from the seed {results.seed}.\n"
    )
    rows = "every test row" if settings.rows is None else f"{settings.rows} test rows of each fold"
    count = len(settings.folds)
    yield (
        f"Cancer (standardised, 5 principal components), digits (standardised, 10 components) and "
        f"houses in Ames (nine areas, standardised, price of 160,000 dollars or more against less, "
        f"decks, porches and pool frozen). GLVQ, GMLVQ and LGMLVQ of this package with three "
        f"prototypes per class and default settings. Manhattan distance in the space that the "
        f"model sees. {count} of four shuffled folds; scaler, components and model see the "
        f"training rows only. Wished for is the other class, or for digits a random other one "
        f"(fixed seed): other than what the model says of the row, so that no row has it already "
        f"and none is left out. `ccp`, `auto` and the exact programs answer {rows}. The searches, "
        f"and `global` under local metrics ({settings.limit:g} s per row), answer a fixed random "
        f"{settings.compared} rows of each fold: those are the rows that are compared.\n"
    )
    yield (
        f"Nelder-Mead (SciPy) and CMA-ES (`cma`, first step {FIRST_STEP}) minimise the paper's "
        f"Eq. 1 as ceml does: squared distance to the nearest target prototype plus C times the "
        f"Manhattan distance, started at the row, for C = "
        f"{', '.join(f'{c:g}' for c in STRENGTHS)} in turn until `predict` gives the target. `ccp` "
        f"is the paper's method: exact programs for GLVQ and GMLVQ, where `auto` and `global` are "
        f"the same, and the convex-concave procedure from the target prototypes for LGMLVQ.\n"
    )
    yield "![The run as a picture](reproduction.png)\n"


def _verdicts(results: Results) -> Iterator[str]:
    yield "## What has to hold\n"
    yield _row(("claim", "", "evidence"))
    yield _row(["---"] * 3)
    for verdict in results.verdicts:
        word = "holds" if verdict.holds else "**fails**"
        yield _row((verdict.claim, word, verdict.evidence))
    yield ""


def table_1(results: Results) -> Iterator[str]:
    """Put mean distances beside those that the paper prints."""
    yield "## Table 1: mean Manhattan distance\n"
    yield (
        "Over the compared rows that every method solved; in brackets what the paper prints. "
        "DS is Nelder-Mead.\n"
    )
    yield _row(("data", "model", "accuracy", "rows", "DS", "CMA-ES", "`ccp`", "`auto`", "`global`"))
    yield _row(["---"] * 2 + ["---:"] * 7)
    for (data, model), lines in _grouped(results.lines).items():
        cells = [_number(lines[method].mean_common) + _printed(lines[method]) for method in METHODS]
        first = lines["auto"]
        share = f"{results.accuracy[f'{data} {model}']:.1%}"
        yield _row((data, model, share, f"{first.common} of {first.compared}", *cells))
    yield ""


def _printed(line: Line) -> str:
    return "" if line.paper is None else f" ({line.paper:.2f})"


def _grouped(lines: Sequence[Line]) -> dict[tuple[str, str], dict[str, Line]]:
    grouped: dict[tuple[str, str], dict[str, Line]] = {}
    for line in lines:
        grouped.setdefault((line.data, line.model), {})[line.method] = line
    return grouped


def _details(results: Results) -> Iterator[str]:
    yield "## Method by method\n"
    yield (
        "Valid: share of the rows asked about for which the answer has the target by the model's "
        "own `predict` and keeps what is frozen. Proved: the gap is closed (1e-6 under shared "
        "metrics, 1e-4 under local ones), or it is proved that there is no counterfactual. Mean: "
        "over all rows that the method solved. Time: of the processor, per row asked one at a time "
        "on one thread, over the compared rows; in a batch: `explain_batch` on one thread over all "
        "rows. "
        "Speed-up: time of the method over that of `ccp` and of `auto`, both one at a time; below "
        f"1 the method is faster. The paper reports {SPEED_UP[0]:g} to {SPEED_UP[1]:g} for its "
        "method.\n"
    )
    yield _row(
        ("data", "method", "rows", "valid", "no answer exists", "proved", "mean", "time")
        + ("in a batch", "speed-up of `ccp`", "speed-up of `auto`")
    )
    yield _row(["---"] * 2 + ["---:"] * 9)
    for (data, model), lines in _grouped(results.lines).items():
        for k, method in enumerate(METHODS):
            line = lines[method]
            together = model != "LGMLVQ" and method in ("ccp", "auto", "global")
            yield _row(
                (
                    f"{data} {model}" if k == 0 else "",
                    method,
                    f"{line.rows:,}",
                    _share(line.solved),
                    line.impossible or "",
                    _share(line.proved) if line.proved else "",
                    _number(line.mean),
                    duration(line.seconds),
                    duration(line.seconds_batch) if together else "",
                    _times(line.faster_ccp),
                    _times(line.faster_auto),
                )
            )
    yield ""


def table_2(results: Results) -> Iterator[str]:
    """Show the paper's house, in square feet."""
    yield "## Table 2: one house, in square feet\n"
    yield (
        f"The very house that the paper shows, asked by the model of the fold in which it is a "
        f'test row; `global`, without and with "{RULE}". Distance in standard deviations.\n'
    )
    yield _row(("", *TABLE_2_COLUMNS, "class", "distance", "proved"))
    yield _row(["---"] + ["---:"] * 4 + ["---", "---:", "---"])
    yield _row(("the house", *TABLE_2["original"], results.houses[0].before, "", ""))
    for answer in results.houses:
        ours = [f"{answer.areas[name]:,.0f}" for name in TABLE_2_COLUMNS]
        words = "with the rule" if answer.constrained else "free"
        proved = "optimal" if answer.status == "optimal" else f"at least {answer.lower_bound:.3f}"
        yield _row((f"{answer.model}, {words}", *ours, answer.after, f"{answer.cost:.3f}", proved))
    yield _row(("paper, free", *TABLE_2["counterfactual"], "", "", ""))
    yield _row(("paper, with the rule", *TABLE_2["constrained"], "", "", ""))
    yield ""


def _peers(results: Results) -> Iterator[str]:
    if not results.peers:
        return
    yield "## ceml 0.7 itself\n"
    yield (
        "In an environment of its own (Python 3.11, NumPy 1.23.5, SciPy 1.10.1, scikit-learn "
        "1.3.1, sklearn-lvq 1.1.1, jax 0.4.13), with our prototypes and metrics put into models of "
        "sklearn-lvq, on the first compared rows of each fold, with the same strengths C. `mp` is "
        "its own version of the paper's method. Raised: it ended in an exception. Wrong: it "
        "returned a point that does not have the target by our `predict`, or that moves a frozen "
        "feature by more than 0.001 standard deviations; less is forgiven, because its solver "
        "keeps a few digits only. Three of its mistakes show: `mp` takes the position in a list of "
        "target prototypes for the number of a prototype, which is right for the first class only, "
        "and ignores the metric of GMLVQ; `nelder-mead` measures the distance to a target "
        "prototype of LGMLVQ by the metric of another one, again but for the first class. It "
        "computes in single precision.\n"
    )
    yield _row(
        ("data", "optimizer", "rows", "raised", "wrong", "solved", "mean")
        + ("`auto` on these", "time")
    )
    yield _row(["---"] * 2 + ["---:"] * 7)
    for line in results.peers:
        yield _row(
            (
                f"{line.data} {line.model}",
                f"`{line.method}`",
                line.rows,
                line.raised,
                line.wrong,
                line.solved,
                _number(line.mean),
                _number(line.mean_auto),
                duration(line.seconds),
            )
        )
    yield ""


def _differences(results: Results) -> Iterator[str]:
    yield "## Where these figures differ from the paper's, and why\n"
    lower = sum(
        line.mean_common is not None and line.mean_common < line.paper
        for line in results.lines
        if line.paper is not None
    )
    count = sum(line.paper is not None for line in results.lines)
    first, last = UNSOLVED
    yield (
        f"The absolute distances are not the paper's: {lower} of {count} means are lower than the "
        f"printed ones, the others higher. They cannot be expected to agree:\n"
    )
    yield (
        "- *Other folds and other training.* The paper names neither its folds nor its seeds, and "
        "trained with sklearn-lvq as of 2019. Distances to a boundary depend on where it is."
    )
    yield (
        "- *Other scales.* The paper says that it standardised the houses. Here the other two are "
        "standardised as well, before their principal components are taken."
    )
    yield (
        "- *Other wishes.* The paper does not say which class it asked for in the digits, nor "
        "whether misclassified rows were left out. Here no row is."
    )
    yield (
        "- *Other strengths.* The list of C is not printed in the paper. The searches stop at the "
        "first C that works, so their distances depend on the list; the exact methods have no C."
    )
    yield (
        f"- *Failures of the searches.* The paper reports that they found nothing for "
        f"{first:.0%} to {last:.0%} of the rows under LGMLVQ. {_search_failures(results)}"
    )
    yield (
        "- *Another convex-concave procedure.* The paper's public code has a stray factor in the "
        "half-spaces and returns the nearest prototype where it fails; `ccp` follows the paper's "
        "text instead."
    )
    yield (
        f"- *Table 2.* The paper labels the house 1, which it says stands for 160,000 dollars or "
        f"more, and its counterfactual 0; the house sold for 134,432 dollars, so the labels seem "
        f'to be exchanged there. Here it is "{results.houses[0].before}" for the model and the '
        f'wish is "{results.houses[0].after}". Which model the paper asked is not said.\n'
    )
    yield (
        "What the paper claims from them is reproduced if the verdicts above hold: the closest "
        "counterfactual is closer than what the searches find, row by row and not only in the mean."
    )
    yield ""


def _search_failures(results: Results) -> str:
    local = [
        line
        for line in results.lines
        if line.model == "LGMLVQ" and line.method in ("Nelder-Mead", "CMA-ES")
    ]
    words = ", ".join(
        f"{1 - line.solved_compared:.0%} ({line.data}, {line.method})" for line in local
    )
    return f"Here, with six strengths down to {min(STRENGTHS):g}, it is {words}."


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _share(value: float) -> str:
    return f"{value:.0%}" if value in (0, 1) else f"{value:.1%}"


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
