"""What is asked of a dataset in words, for its manifest and for those who ask something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from counterlvq.batch.ways import BatchWay
from counterlvq.numeric.arrays import told
from counterlvq.presentation.question import setting_facts
from counterlvq.safe_text import shown_repr, visible
from counterlvq.streaming.answers import BatchQuestion
from counterlvq.streaming.targets import ColumnTarget

__all__ = ["PART_ROWS", "difference", "words_apart", "words_for"]

# Rows of a part by default, if row groups are not larger: by how rows are answered, so that a part
# takes seconds, and by no clock, so that each run cuts a source in the same way.
PART_ROWS = {BatchWay.KERNEL: 1 << 18, BatchWay.LATTICE: 1 << 14, BatchWay.ONE_BY_ONE: 1 << 10}
# Letters that are shown of words in which two questions differ.
_LONGEST = 120
# Letters that a manifest has for what is said of one column.
_LONGEST_FEATURE = 1000
# What stands between the items of a list in words.
_BETWEEN = "; "


def words_for(question: BatchQuestion) -> dict[str, str]:
    """Say what is asked, a line for each thing; hashes tell what is the same, and not these."""
    asker = question.explainer
    facts = setting_facts(asker.model, asker.features, asker.cost, asker.constraints)
    return {
        "target": _target_words(question.target),
        **{fact.name.lower(): fact.value for fact in facts[1:]},
        "features": _BETWEEN.join(shown_repr(f, _LONGEST_FEATURE) for f in asker.features),
        "confidence": str(asker.confidence),
        "margin": str(asker.margin),
        "method": str(asker.method),
        "time limit": str(asker.time_limit),
        "gap": str(asker.gap),
        "columns given back": ", ".join(map(told, question.kept)),
        "prefix": told(question.prefix),
        "bad rows": str(question.on_bad_rows),
    }


def difference(begun: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Say in what two questions differ, as far as the manifest of the first can be believed.

    Words come first. They do not tell everything: of many weights the least and the largest only.
    What else differs is known by its hash, and named.
    """
    words = words_apart(begun, asked, list(asked["asked"]))
    if words:
        return f": {words}"
    known = begun.get("settings")
    old_hashes = known if isinstance(known, dict) else {}
    others = [name for name, now in asked["settings"].items() if old_hashes.get(name) != now]
    where = f" about its {others[0]}" if others else ""
    return f": something{where} differs that no words of the manifest tell"


def words_apart(begun: Mapping[str, Any], asked: Mapping[str, Any], names: Sequence[str]) -> str:
    """Say in which of the named words two questions differ; empty if in none."""
    was = begun.get("asked")
    old_words = was if isinstance(was, dict) else {}
    for name in names:
        before, now = old_words.get(name), asked["asked"][name]
        if isinstance(before, str) and before != now:
            return _told_apart(name, before, now)
    return ""


def _told_apart(name: str, before: str, now: str) -> str:
    """Say how a setting has changed; of a list, what is new and what is gone."""
    gone, new = _apart(before, now)
    old_text, new_text = (visible(text, _LONGEST) for text in (gone or "none", new or "none"))
    if gone and new:
        return f"{name} was {old_text}, and now is {new_text}"
    return (
        f"of the {name}, {new_text} is new" if new else f"of the {name}, {old_text} is missing now"
    )


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
    return _BETWEEN.join(only_old), _BETWEEN.join(only_new)


def _target_words(target: Any) -> str:
    if target is None:
        return "any other class"
    if isinstance(target, ColumnTarget):
        return f"column {told(target.name)}"
    if isinstance(target, frozenset):
        return " or ".join(sorted(map(told, target)))
    return told(target)
