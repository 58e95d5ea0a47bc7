"""What is asked of a dataset in words, for its manifest and for those who ask something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterlvq.batch.ways import BatchWay
from counterlvq.numeric.arrays import told
from counterlvq.presentation.question import setting_facts
from counterlvq.safe_text import visible
from counterlvq.streaming.answers import BatchQuestion
from counterlvq.streaming.targets import ColumnTarget

__all__ = ["PART_ROWS", "difference", "words_for"]

# Rows of a part by default, if row groups are not larger: by how rows are answered, so that a part
# takes seconds, and by no clock, so that each run cuts a source in the same way.
PART_ROWS = {BatchWay.KERNEL: 1 << 18, BatchWay.LATTICE: 1 << 14, BatchWay.ONE_BY_ONE: 1 << 10}
# Letters that are shown of words in which two questions differ.
_LONGEST = 120


def words_for(question: BatchQuestion) -> dict[str, str]:
    """Say what is asked, a line for each thing; hashes tell what is the same, and not these."""
    asker = question.explainer
    facts = setting_facts(asker.model, asker.features, asker.cost, asker.constraints)
    return {
        "target": _target_words(question.target),
        **{fact.name.lower(): fact.value for fact in facts[1:]},
        "confidence": str(asker.confidence),
        "margin": str(asker.margin),
        "method": str(asker.method),
        "time limit": str(asker.time_limit),
        "columns given back": ", ".join(map(told, question.kept)),
        "prefix": told(question.prefix),
        "bad rows": str(question.on_bad_rows),
    }


def difference(begun: Any, asked: Mapping[str, str]) -> str:
    """Say in which of these words two questions differ, as far as a manifest can be believed."""
    if not isinstance(begun, dict):
        return ""
    for name, words in asked.items():
        before = begun.get(name)
        if isinstance(before, str) and before != words:
            return (
                f": {name} was {visible(before, _LONGEST)}, and now is {visible(words, _LONGEST)}"
            )
    return ""


def _target_words(target: Any) -> str:
    if target is None:
        return "any other class"
    if isinstance(target, ColumnTarget):
        return f"column {told(target.name)}"
    if isinstance(target, frozenset):
        return " or ".join(sorted(map(told, target)))
    return told(target)
