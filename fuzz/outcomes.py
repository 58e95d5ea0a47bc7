"""What a run found: counts, and claims that are false."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Failure:
    """A claim that was contradicted, with a script that shows it."""

    fault: str  # the kind of fault
    kind: str  # the kind of question
    number: int  # of the case
    row: int
    words: str
    script: str

    def text(self, target: str, seed: int) -> str:
        again = f"python -m fuzz {target} --seed {seed} --only {self.number}"
        head = f"{self.fault}: {self.words}\n  {self.kind}, row {self.row}; again: {again}"
        return head + "\n" + "\n".join(f"    {line}" for line in self.script.splitlines())


@dataclass
class Outcome:
    """Counts by name, contradictions, and remarks that are no contradictions."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    remarks: list[Failure] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.counts.update(other.counts)
        self.failures += other.failures
        self.remarks += other.remarks
