"""Run many cases of a target in processes of their own, and say what was found."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from fuzz.outcomes import Failure, Outcome

_CASES_AT_ONCE = 8


@dataclass(frozen=True)
class Target:
    """Something to fuzz: one function that draws and judges case `number` of a seed."""

    name: str
    words: str
    run_case: Callable[[int, int, str | None], Outcome]
    # Where cases share what is dear to set up: the same for many of them, so many at once.
    run_many: Callable[[int, Sequence[int], str | None], Outcome] | None = None
    together: int = 1


def run(
    target: Target, numbers: Iterable[int], seed: int, jobs: int, kind: str | None, say: bool
) -> Outcome:
    """Run cases; the outcome does not depend on how many jobs there are."""
    one = partial(_run_group, target, seed, kind)
    total, start = Outcome(), perf_counter()
    listed = list(numbers)
    groups = [listed[k : k + target.together] for k in range(0, len(listed), target.together)]
    if jobs == 1:
        found: Iterable[Outcome] = map(one, groups)
        return _gathered(total, found, start, say)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        size = _CASES_AT_ONCE if target.together == 1 else 1
        return _gathered(total, pool.imap(one, groups, chunksize=size), start, say)


def _run_group(target: Target, seed: int, kind: str | None, numbers: Sequence[int]) -> Outcome:
    if target.run_many is not None:
        return target.run_many(seed, numbers, kind)
    out = Outcome()
    for number in numbers:
        out.add(target.run_case(seed, number, kind))
    return out


def _gathered(total: Outcome, found: Iterable[Outcome], start: float, say: bool) -> Outcome:
    said = 0
    for outcome in found:
        total.add(outcome)
        cases = total.counts["cases"]
        if say and cases // 500 > said:
            said = cases // 500
            asked, failed = total.counts["questions"], len(total.failures)
            print(f"{cases} cases, {asked} questions, {failed} failures, "
                  f"{perf_counter() - start:.0f} s", flush=True)  # fmt: skip
    return total


def report(target: Target, outcome: Outcome, seed: int, shown: int) -> str:
    """Counts first, then each kind of fault with its first cases."""
    lines = [f"{target.name}, seed {seed}"]
    plain = {k: v for k, v in outcome.counts.items() if not k.startswith("status ")}
    lines += [f"  {value:>8,}  {name}" for name, value in sorted(plain.items())]
    lines += _statuses(outcome.counts)
    lines += _listed("remarks, which are no contradictions", outcome.remarks, target, seed, 1)
    lines += _listed("FAILURES", outcome.failures, target, seed, shown)
    lines.append("nothing false" if not outcome.failures else f"{len(outcome.failures)} false")
    return "\n".join(lines)


def _statuses(counts: Counter[str]) -> list[str]:
    table: dict[str, Counter[str]] = {}
    for name, value in counts.items():
        if name.startswith("status "):
            _, kind, status = name.split(" ")
            table.setdefault(kind, Counter())[status] += value
    return [
        f"  {kind:<12} " + ", ".join(f"{n:,} {status}" for status, n in sorted(row.items()))
        for kind, row in sorted(table.items())
    ]


def _listed(
    title: str, failures: list[Failure], target: Target, seed: int, shown: int
) -> list[str]:
    if not failures:
        return []
    lines = [f"{title}: {len(failures)}"]
    faults = Counter(failure.fault for failure in failures)
    for fault, count in faults.most_common():
        kinds = Counter(failure.kind for failure in failures if failure.fault == fault)
        by_kind = ", ".join(f"{kind} {n}" for kind, n in kinds.most_common())
        lines.append(f"  {count:>8,}  {fault} ({by_kind})")
    for fault in faults:
        cases = sorted((f for f in failures if f.fault == fault), key=lambda f: len(f.script))
        lines += [case.text(target.name, seed) for case in cases[:shown]]
    return lines
