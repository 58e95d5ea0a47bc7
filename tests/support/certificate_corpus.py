"""The corpus of certificate files and their mutations, which `make test-certificates` runs.

More than 2,000 answers of all classes of questions are filed and checked exactly and quickly, and
5,000 files with one thing changed are judged by an oracle that shares no code with the package.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import counterlvq as clvq
from counterlvq.certificates import check_certificate as checker
from tests.support.certificate_mutations import mutated
from tests.support.certificate_oracle import falsehood
from tests.support.certificate_questions import KINDS, draw

SEEDS, ROWS, MUTATIONS = 10, 6, 500
STATUSES = ("optimal", "feasible", "infeasible", "unknown")


def saved(kind: str, seed: int, folder: Path, rows: int = 3) -> tuple[Path, Any]:
    """A file of one kind of question, and the batch that it is about."""
    drawn = draw(kind, seed, rows)
    batch = drawn.explainer.explain_batch(drawn.rows, drawn.target)
    path = folder / f"{kind.replace(' ', '_')}_{seed}.jsonl"
    batch.save_certificates(path)
    return path, batch


def told(path: Path, *more: str) -> list[str]:
    """What the standalone checker prints."""
    out: list[str] = []
    checker.main([str(path), *more], say=out.append)
    return out


def parts(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass
class Found:
    """What became of the answers of one class of questions."""

    kind: str
    statuses: Counter[str] = field(default_factory=Counter)
    verified: int = 0
    widest: Fraction = Fraction(0)  # largest exact gap of an answer that is OPTIMAL
    wrong: list[str] = field(default_factory=list)

    @property
    def answers(self) -> int:
        """How many there are."""
        return self.statuses.total()

    def add(self, status: str, line: dict[str, Any], exact: str, quick: clvq.LineVerdict) -> None:
        """Take one answer, as floating point called it, its line, and what both checkers say."""
        self.statuses[status] += 1
        is_verified = exact.startswith("VERIFIED")
        self.verified += is_verified
        if not is_verified or not quick.verified:
            self.wrong.append(f"{exact}; {quick}")
        if status in ("optimal", "infeasible") and line["answer"]["status"] != status:
            self.wrong.append(f"{status} was filed as {line['answer']['status']}: {exact}")
        if status == "optimal" and is_verified:
            self.widest = max(self.widest, Fraction(exact.split()[7]))

    def row(self) -> str:
        """One line of the table."""
        counts = " | ".join(str(self.statuses[name]) for name in STATUSES)
        return f"| {self.kind} | {counts} | {self.verified} | {float(self.widest):.1e} |"


def answers_of_kind(kind: str, folder: Path) -> Found:
    """File and check the answers of one class of questions."""
    found = Found(kind)
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            # A search that ran out of time may claim more than is shown; `add` looks at others.
            warnings.filterwarnings("ignore", message=".*claim more than exact arithmetic")
            path, batch = saved(kind, seed, folder, ROWS)
        exact, quick, lines = told(path), clvq.verify_certificates(path), parts(path)[1:]
        for n, line in enumerate(lines):
            found.add(str(batch.status[n]), line, exact[n], quick[n])
        path.unlink()
    return found


def judge_mutations(
    files: list[list[dict[str, Any]]], count: int, seed: int, folder: Path
) -> Counter[str]:
    """Change one thing in a line, so many times: it is refuted, or still true."""
    rng, seen = np.random.default_rng(seed), Counter[str]()
    for _ in range(count):
        header, *lines = files[int(rng.integers(len(files)))]
        line = lines[int(rng.integers(len(lines)))]
        other, changed, what = mutated(header, line, rng)
        text = [json.dumps(other), json.dumps(changed)]
        ((_, found),) = checker.verdicts(_encoded(text), seconds=30.0)
        path = folder / "mutated.jsonl"
        path.write_text("\n".join(text))
        (quick,) = clvq.verify_certificates(path, seconds=30.0)
        assert quick.verified == (not isinstance(found, str)), (what, str(quick), str(found))
        if isinstance(found, str):
            seen["refuted"] += 1
            continue
        seen["verified"] += 1
        known = [line["answer"]["row"]] if line["answer"]["row"] else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers of 1e300 overflow in the oracle
            wrong = falsehood(other, changed, found.bound, known)
        assert wrong is None, (what, wrong, str(found))
    return seen


def _encoded(lines: list[str]) -> Iterator[bytes]:
    return (line.encode() for line in lines)


def mutations_of_tenth(tenth: int, folder: Path) -> Counter[str]:
    """Mutations of the files of a tenth of all kinds."""
    kinds = [kind for n, kind in enumerate(KINDS) if n % 10 == tenth]
    files = [parts(saved(kind, seed, folder)[0]) for kind in kinds for seed in (100, 101)]
    return judge_mutations(files, MUTATIONS, seed=1 + tenth, folder=folder)


def table(found: list[Found], seen: Counter[str], seconds: float) -> str:
    """State what was found."""
    answers, verified = sum(each.answers for each in found), sum(each.verified for each in found)
    lines = [
        "# Corpus of certificate files",
        "",
        f"{answers:,} answers, of which {verified:,} are VERIFIED in exact arithmetic, and by the "
        f"package; {seen.total():,} files with one thing changed, of which {seen['refuted']:,} are "
        f"REFUTED and {seen['verified']:,} still true by an independent oracle. One run of "
        f"{seconds / 60:.0f} minutes of one processor, written by `make test-certificates`.",
        "",
        "Every answer that floating point called OPTIMAL or INFEASIBLE is filed and verified as "
        "that. The largest exact gap is that of the printed digits, among OPTIMAL answers; they "
        "claim 1e-6 under shared metrics without a grid and 1e-4 elsewhere, or the last digits of "
        "the changed values.",
        "",
        "| questions | optimal | feasible | infeasible | unknown | verified | largest exact gap |",
        "|---|---|---|---|---|---|---|",
        *(each.row() for each in found),
    ]
    return "\n".join(lines) + "\n"
