"""The closest plausible answer: a union over the components of each wished-for label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from counterlvq.errors import InvalidInputError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, plain, told
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.plausibility import Ellipsoid, Plausible
from counterlvq.questions.protocol import WHOLE, Asks, Terms
from counterlvq.questions.unions import Part, bounded, united, verified, wish_of
from counterlvq.results import Counterfactual
from counterlvq.tables.features import Features
from counterlvq.types import Status

__all__ = ["components_of", "plausible_answer", "plausible_in", "refuse_other_table"]

# Labels that an error lists.
_MOST_NAMED = 8


def plausible_in(constraints: Sequence[Constraint | str]) -> Plausible | None:
    """Find what says where plausible answers lie, if anything does."""
    found = [item for item in constraints if isinstance(item, Plausible)]
    if len(found) > 1:
        raise InvalidInputError(
            f"constraints has {len(found)} Plausible; expected one. Fit it to all rows at once."
        )
    return found[0] if found else None


def refuse_other_table(
    constraints: Sequence[Constraint | str], features: Features, model: PrototypeModel
) -> None:
    """Refuse what was fitted to a table with other columns, or with none of the model's labels."""
    plausible = plausible_in(constraints)
    if plausible is None:
        return
    by_place = all(isinstance(key, int) for key in plausible.features)
    if by_place and len(plausible.features) != len(features):
        raise InvalidInputError(
            f"Plausible was fitted to {len(plausible.features)} columns without names; the model "
            f"has {len(features)}. Fit it to a table with the columns of the model, or to one "
            f"whose columns have names."
        )
    if not any(plausible.of(label) for label in model.classes):
        raise InvalidInputError(
            f"Plausible was fitted to rows with the labels {_labels_of(plausible)}, and the model "
            f"says {_named(model.classes.tolist())}; expected labels of the model. Leave the "
            f"labels to it: Plausible.fit(X, model=model)."
        )


def _labels_of(plausible: Plausible) -> str:
    return _named(list(dict.fromkeys(plain(item.label) for item in plausible.ellipsoids)))


def _named(labels: Sequence[Any]) -> str:
    more = ", ..." if len(labels) > _MOST_NAMED else ""
    return ", ".join(map(told, labels[:_MOST_NAMED])) + more


def components_of(asked: Asks, plausible: Plausible, labels: Sequence[Any]) -> list[Part]:
    """State an ordinary question for each component of each label."""
    others = tuple(item for item in asked.constraints if item is not plausible)
    return [
        Part(asked.asking_for(constraints=(*others, *stated)), label)
        for label in labels
        for stated in plausible.parts(label, asked.features)
    ]


def plausible_answer(
    asked: Asks,
    plausible: Plausible,
    parts: Sequence[Part],
    row: Floats,
    target: Any,
    terms: Terms = WHOLE,
) -> Counterfactual:
    """Find the closest answer in any component of its label."""
    terms = terms._replace(deadline=terms.until(asked))
    wish = wish_of(asked, row, target)
    if not parts:
        return _without_rows(asked, plausible, row, target, terms)
    floors = [_floor(asked, plausible, part, row) for part in _boxes(plausible, wish.labels)]
    out = united(asked, parts, row, wish, terms, floors)
    out = _as_stated(asked, plausible, out, terms)
    if not out.status.has_answer:
        conflict = tuple(
            item for item in asked.constraints if item in out.conflict or item is plausible
        )
        return replace(out, conflict=conflict, conflict_is_irreducible=False)
    return bounded(asked, out, verified(parts, out))


def _boxes(plausible: Plausible, labels: Sequence[Any]) -> Iterator[Ellipsoid]:
    """Components in the order of `components_of`."""
    for label in labels:
        yield from plausible.of(label)


def _floor(asked: Asks, plausible: Plausible, component: Ellipsoid, row: Floats) -> float:
    """Cost of the change into the box around an ellipsoid: it tells where to look first."""
    at = [asked.features.number(key, "Plausible") for key in plausible.features]
    near, reach = row.copy(), component.reach
    near[at] = np.clip(row[at], component.center - reach, component.center + reach)
    view = asked.prepared_for(row)
    x, y = view.inner(row)[None, :], view.inner(near)[None, :]
    cost = float(view.rules.judged(y, x).cost[0])
    return cost if np.isfinite(cost) else 0.0


def _as_stated(
    asked: Asks, plausible: Plausible, out: Counterfactual, terms: Terms
) -> Counterfactual:
    """Name what the input breaks by constraints of the user: an ellipsoid is about answers."""
    own = {id(item) for item in asked.constraints}
    broken = tuple(item for item in out.broken if id(item) in own)
    if not (broken and terms.meets_rules) or len(out.target) == len(asked.model.classes):
        return replace(out, broken=broken, within_rules=None)
    others = tuple(item for item in asked.constraints if item is not plausible)
    meeting = asked.asking_for(constraints=others, margin=None, confidence=None, is_sure=False)
    within = meeting.answered(
        out.original_values,
        asked.model.classes.tolist(),
        terms=Terms(find_clash=False, deadline=terms.deadline),
    )
    return replace(out, broken=broken, within_rules=within)


def _without_rows(
    asked: Asks, plausible: Plausible, row: Floats, target: Any, terms: Terms
) -> Counterfactual:
    """No row of the table has a wished-for label, so that no answer is plausible."""
    others = tuple(item for item in asked.constraints if item is not plausible)
    terms = terms._replace(find_clash=False)
    found = asked.asking_for(constraints=others).answered(row, target, terms=terms)
    return replace(
        found,
        values=np.full(row.shape, np.nan),
        status=Status.INFEASIBLE,
        cost=np.inf,
        gap=0.0,
        resolution=0.0,
        lower_bound=np.inf,
        bound_with_margin=np.inf,
        prediction=None,
        prototype=-1,
        conflict=(plausible,),
        conflict_ranges=(),
        conflict_is_irreducible=True,
        reason=(
            f"no row of the table that plausibility was fitted to has a wished-for label: "
            f"{_named(found.target)} wished for, {_labels_of(plausible)} there"
        ),
    )
