"""The fits of the estimators as Markdown and as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.fits_results import (
    FOLDS,
    LIMIT,
    MARGIN,
    OTHER_SEEDS,
    PATIENCE,
    SEED,
    SOURCE,
    Fits,
    PeerFits,
    at_seed,
    slowest,
)
from benchmarks.fits_there import PROTOTYPES
from benchmarks.report import duration, write_atomically

SOURCE_LIBRARY = "sklearn-lvq"  # what the figures are from
STEPS = {"sklvq": "runs", "sklearn-lvq": "iterations"}


def write(found: Sequence[Fits], where: dict[str, Any], folder: Path) -> str:
    """Write fits.json and fits.md; return the text of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(found, where)
    content = json.dumps(as_dict(found, where), indent=1, allow_nan=False) + "\n"
    write_atomically(folder / "fits.json", lambda path: path.write_text(content, "utf-8"))
    write_atomically(folder / "fits.md", lambda path: path.write_text(text, "utf-8"))
    return text


def as_dict(found: Sequence[Fits], where: dict[str, Any]) -> dict[str, Any]:
    """Everything, with the verdicts, as JSON can hold it."""
    rows = [
        asdict(fits)
        | {
            "mean_accuracy": fits.mean,
            "median_seconds": median(fits.seconds),
            "wanted": fits.wanted,
            "verdict": fits.verdict,
        }
        for fits in found
    ]
    settings = {"prototypes_per_class": PROTOTYPES, "folds": FOLDS, "seed": SEED}
    return {
        "environment": where,
        "settings": settings | {"other_seeds": OTHER_SEEDS},
        "source": SOURCE,
        "margin": MARGIN,
        "slowest_seconds": slowest(found),
        "fits": rows,
    }


def markdown(found: Sequence[Fits], where: dict[str, Any]) -> str:
    """The whole report."""
    parts = (_head(where), _table(found), _other_folds(found), _peers(found, where["peers"]))
    return "\n".join(line for part in parts for line in part)


def _head(where: dict[str, Any]) -> Iterator[str]:
    names = ("counterlvq", "numpy", "scipy", "scikit-learn")
    packages = ", ".join(f"{name} {where['packages'][name]}" for name in names)
    yield "# Fits of the estimators\n"
    command = "python -m benchmarks.fits" + (" --peers" if where["peers"] else "")
    yield f"`{command}`, {where['date']}."
    yield f"Python {where['python']} on {where['platform']}, {where['cores']} cores. {packages}."
    if where["load_before"] is not None:
        busy = f"{where['load_before'][0]:.1f}"
        yield f"Load average before: {busy}; what else ran makes times longer."
    yield ""
    yield (
        f"Test accuracy over {FOLDS} shuffled folds, {PROTOTYPES} prototypes per class, "
        "standardised; cancer then on 5 and digits on 10 principal components. Default settings, "
        "one thread. A figure counts as reached when the mean over the folds is at most "
        f"{100 * MARGIN:g} percentage point below that of {SOURCE}.\n"
    )


def _table(found: Sequence[Fits]) -> Iterator[str]:
    yield _row(("data", "estimator", "mean", "first fold", SOURCE, "", "median fit", "slowest fit"))
    yield _row(["---"] * 2 + ["---:"] * 3 + ["---"] + ["---:"] * 2)
    for fits in at_seed(found, SEED):
        verdict = "**not reached**" if fits.verdict == "not reached" else fits.verdict
        scores = (f"{fits.mean:.3f}", f"{fits.accuracies[0]:.3f}", _figure(fits))
        times = (duration(median(fits.seconds)), duration(max(fits.seconds)))
        yield _row((fits.data, fits.estimator, *scores, verdict, *times))
    yield ""
    total = sum(len(fits.seconds) for fits in found)
    verdict = "reached" if slowest(found) <= LIMIT else "**not reached**"
    yield (
        f"The slowest of {total} fits, those of the next table included, took "
        f"{duration(slowest(found))}; wanted was every fit within seconds, taken as {LIMIT:g} s: "
        f"{verdict}. {sum(f.unsettled for f in found)} fits ended at the limit of iterations.\n"
    )


def _other_folds(found: Sequence[Fits]) -> Iterator[str]:
    others = [fits for fits in found if fits.seed != SEED]
    if not others:
        return
    seeds = sorted({fits.seed for fits in others})
    missed = sum(fits.verdict == "not reached" for fits in others)
    judged = sum(fits.wanted is not None for fits in others)
    yield "## Other folds\n"
    yield (
        f"The default settings were chosen with the folds above (seed {SEED}) in sight, and each "
        "figure is the accuracy on a single fold. So the same again on folds that are shuffled "
        f"otherwise: {missed} of {judged} means, in bold, lie more than {100 * MARGIN:g} "
        f"percentage point below their figure. Where {SOURCE_LIBRARY} was run on the same folds, "
        "its mean follows, and then ours on as many folds.\n"
    )
    columns = [f"seed {seed}, {who}" for seed in seeds for who in ("mean", SOURCE_LIBRARY, "ours")]
    yield _row(("data", "estimator", "figure", *columns))
    yield _row(["---"] * 2 + ["---:"] * (1 + len(columns)))
    for first in at_seed(found, SEED):
        same = [f for f in others if (f.data, f.estimator) == (first.data, first.estimator)]
        cells = [cell for fits in same for cell in _cells_elsewhere(fits)]
        yield _row((first.data, first.estimator, _figure(first), *cells))
    yield ""


def _cells_elsewhere(fits: Fits) -> tuple[str, str, str]:
    mean = f"**{fits.mean:.3f}**" if fits.verdict == "not reached" else f"{fits.mean:.3f}"
    there = fits.peers.get(SOURCE_LIBRARY)
    return (mean, *(("", "") if there is None else _both_means(fits, there)))


def _peers(found: Sequence[Fits], pins: dict[str, list[str]]) -> Iterator[str]:
    if not pins:
        return
    yield "## Beside other libraries\n"
    versions = "; ".join(", ".join(peer).replace("==", " ") for peer in pins.values())
    yield (
        f"In environments of their own ({versions}), with their default settings. Steps: the "
        "median number that the optimiser made, of the most that these settings allow "
        "(sklearn-lvq: iterations of L-BFGS-B, in the longest of the up to three descents that it "
        "makes; sklvq: runs of gradient descent through the samples); a lower limit would make "
        "them faster. Ratio: the median fit time of the other library over that of counterlvq in "
        f"this run, on the same folds. A library gets no further fold after {PATIENCE:g} s with "
        "one model.\n"
    )
    heads = ("data", "estimator", "library", "folds", "steps", "median fit", "ratio")
    yield _row((*heads, "mean", "ours"))
    yield _row(["---"] * 3 + ["---:"] * 6)
    for fits in at_seed(found, SEED):
        for peer, there in fits.peers.items():
            yield _row((fits.data, fits.estimator, peer, *_peer_cells(fits, peer, there)))
    yield ""


def _peer_cells(fits: Fits, peer: str, there: PeerFits) -> Iterator[str]:
    yield str(len(there.seconds))
    yield f"{median(there.steps):,.0f} of {there.limit:,} {STEPS[peer]}"
    yield duration(median(there.seconds))
    yield f"{there.ratio:,.1f}" if there.ratio < 100 else f"{there.ratio:,.0f}"
    yield from _both_means(fits, there)


def _both_means(fits: Fits, there: PeerFits) -> tuple[str, str]:
    """Theirs, and ours on the same folds."""
    count = len(there.accuracies)
    return f"{fmean(there.accuracies):.3f}", f"{fmean(fits.accuracies[:count]):.3f}"


def _figure(fits: Fits) -> str:
    return "" if fits.wanted is None else f"{fits.wanted:.3f}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
