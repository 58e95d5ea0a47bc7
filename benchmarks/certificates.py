"""Sizes and times of certificate files: `python -m benchmarks.certificates`.

Bytes for one answer, seconds to write it, and seconds to check it by the package and in exact
arithmetic, against features, prototypes and boxes. One thread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

import counterlvq as clvq
from benchmarks.problems import SEED
from counterlvq import Feature, Features
from counterlvq.certificates import check_certificate as checker

ROWS = 5


@dataclass(frozen=True)
class Measured:
    """One line of the table: means over the answers of a batch."""

    question: str
    features: int
    prototypes: int
    boxes: float
    size: float
    write: float
    quick: float
    exact: float
    verified: bool


def shared(d: int, p: int, cost: clvq.Cost) -> clvq.Explainer:
    rng = np.random.default_rng([SEED, d, p])
    model = clvq.PrototypeModel(
        rng.normal(size=(p, d)), np.arange(p) % 2, rng.normal(size=(d, d)) / np.sqrt(d)
    )
    return clvq.Explainer(model, cost, ["x0 + x1 <= 3", clvq.Increase("x1")])


def neighbours(d: int, p: int) -> clvq.Explainer:
    rng = np.random.default_rng([SEED, d, p])
    return clvq.Explainer(clvq.PrototypeModel(rng.normal(size=(p, d)), np.arange(p) % 2))


def whole(d: int, p: int) -> clvq.Explainer:
    rng = np.random.default_rng([SEED, d, p])
    names = [f"x{j}" for j in range(d)]
    features = Features([Feature(name, "whole", lower=-9, upper=9) for name in names])
    model = clvq.PrototypeModel(3 * rng.normal(size=(p, d)), np.arange(p) % 2, feature_names=names)
    return clvq.Explainer(model, features=features)


def local(d: int, p: int, cost: clvq.Cost) -> clvq.Explainer:
    rng = np.random.default_rng([SEED, d, p])
    omegas = [rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(p)]
    model = clvq.PrototypeModel(rng.normal(size=(p, d)), np.arange(p) % 2, omegas)
    return clvq.Explainer(model, cost, time_limit=10.0)


def cases(*, quick: bool) -> Iterator[tuple[str, clvq.Explainer]]:
    for d in (5, 30) if quick else (5, 30, 100):
        for p in (6,) if quick else (6, 60):
            yield "shared, absolute", shared(d, p, clvq.Manhattan())
            yield "shared, squared", shared(d, p, clvq.Euclidean())
            yield "shared, Mahalanobis", shared(d, p, clvq.Mahalanobis(np.eye(d) + 0.5))
    yield "nearest neighbour", neighbours(10, 100 if quick else 2000)
    for d in (4,) if quick else (4, 8):
        yield "whole numbers, absolute", whole(d, 6)
    for d in (3,) if quick else (3, 6, 10):
        yield "local, absolute", local(d, 6, clvq.Manhattan())
        yield "local, squared", local(d, 6, clvq.Euclidean())


def measure(question: str, explainer: clvq.Explainer) -> Measured:
    rng = np.random.default_rng(SEED)
    d, count = explainer.model.n_features, explainer.model.n_prototypes
    rows = rng.normal(size=(ROWS, d))
    if question.startswith("whole"):
        rows = np.rint(3 * rows).clip(-9, 9)
    batch = explainer.explain_batch(rows)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "answers.jsonl"
        kept = [batch[i] for i in range(ROWS)]  # asked again here, so that only writing counts
        write = _seconds(lambda: _save(kept, path, explainer))
        header, *lines = path.read_text().splitlines()
        del header
        boxes = [sum(len(t.prices) for t in getattr(cf.certificate, "trees", ())) for cf in kept]
        quick = _seconds(lambda: clvq.verify_certificates(path))
        out: list[str] = []
        exact = _seconds(lambda: checker.main([str(path)], say=out.append))
        return Measured(
            question, d, count, float(np.mean(boxes)), float(np.mean([len(x) for x in lines])),
            write / ROWS, quick / ROWS, exact / ROWS,
            all(line.startswith("VERIFIED") for line in out),
        )  # fmt: skip


def _save(kept: list[clvq.Counterfactual], path: Path, explainer: clvq.Explainer) -> None:
    from counterlvq.certificate_files.writing import save_lines

    save_lines(kept, path, explainer)


def _seconds(run: Callable[[], object]) -> float:
    """Time of the processor: other work on the machine does not count."""
    start = process_time()
    run()
    return process_time() - start


def markdown(found: list[Measured], load: float) -> str:
    lines = [
        "# Certificate files",
        "",
        f"Means over {ROWS} answers, in seconds of one processor, header included. Written by "
        f"`python -m benchmarks.certificates`, at a load of {load:.1f} on {os.cpu_count()} cores.",
        "",
        "| question | features | prototypes | boxes | bytes | write (s) | verify (s) | exact (s) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for item in found:
        mark = "" if item.verified else " (not all verified)"
        lines.append(
            f"| {item.question}{mark} | {item.features} | {item.prototypes} | {item.boxes:.0f} "
            f"| {item.size:,.0f} | {item.write:.3f} | {item.quick:.3f} | {item.exact:.3f} |"
        )
    return "\n".join(lines) + "\n"


def definiteness(sizes: tuple[int, ...]) -> str:
    """Time the LDL' in integers, which the largest tables and local metrics wait for."""
    rng, timed = np.random.default_rng(SEED), list[tuple[int, float]]()
    lines = [
        "",
        "Semidefiniteness of one matrix, rounded to 58 binary digits, by LDL' in integers.",
        "One is checked per file for a Mahalanobis cost, and one per box of local metrics:",
        "",
        "| features | seconds |",
        "|---|---|",
    ]
    for n in sizes:
        A = rng.normal(size=(n, n))
        M = A.T @ A + np.eye(n)
        K = [[int(value * 2**58 / M.max()) for value in row] for row in M]
        seconds = _seconds(lambda K=K: checker.is_semidefinite(K, checker.Clock(600.0)))
        timed.append((n, seconds))
        lines.append(f"| {n} | {seconds:.2f} |")
    (small, before), (large, after) = timed[-2:]
    power = np.log(after / before) / np.log(large / small)
    beyond = large * (60.0 / after) ** (1.0 / power)
    lines += [
        "",
        f"By the growth between the last two, with the power {power:.1f}, one takes a minute at "
        f"{beyond:.0f} features.",
    ]
    return "\n".join(lines) + "\n"


def minute(found: list[Measured]) -> str:
    """Say beyond which sizes one answer takes more than a minute to check, or that none does."""
    slow = [item for item in found if item.exact > 60.0]
    longest = max(found, key=lambda item: item.exact)
    if not slow:
        return (
            f"\nNone of these takes a minute to check: the longest, {longest.question} with "
            f"{longest.features} features and {longest.prototypes} prototypes, takes "
            f"{longest.exact:.1f} s.\n"
        )
    names = [f"{item.question} from {item.features} features on" for item in slow]
    return f"\nMore than a minute to check: {'; '.join(names)}.\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small questions, for a first look")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "certificates.md"
    )
    options = parser.parse_args()
    found = []
    with threadpool_limits(1):
        for question, explainer in cases(quick=options.quick):
            found.append(measure(question, explainer))
            item = found[-1]
            print(item, flush=True)
    text = (
        markdown(found)
        + minute(found)
        + definiteness((31, 65) if options.quick else (31, 65, 100, 130))
    )
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(item.verified for item in found) else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    raise SystemExit(main())
