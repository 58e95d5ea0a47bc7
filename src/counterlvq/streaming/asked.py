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
# What stands between the items of a list in words.
_BETWEEN = "; "


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
            old, new = (visible(text, _LONGEST) for text in _apart(before, words))
            return f": {name} was {old}, and now is {new}"
    return ""


def _apart(before: str, now: str) -> tuple[str, str]:
    """Leave out what two lists have in common, so that the difference is not cut away.

    Examples
    --------
    >>> _apart("a <= 1; b <= 2; c <= 3", "a <= 1; b <= 4; c <= 3")
    ('b <= 2', 'b <= 4')
    """
    old, new = before.split(_BETWEEN), now.split(_BETWEEN)
    only_old = [item for item in old if item not in new]
    only_new = [item for item in new if item not in old]
    if not only_old and not only_new:  # in another order, or one of them twice
        return before, now
    return _BETWEEN.join(only_old) or "without", _BETWEEN.join(only_new) or "without"


def _target_words(target: Any) -> str:
    if target is None:
        return "any other class"
    if isinstance(target, ColumnTarget):
        return f"column {told(target.name)}"
    if isinstance(target, frozenset):
        return " or ".join(sorted(map(told, target)))
    return told(target)
