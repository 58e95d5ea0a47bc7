"""The least of largest changes: an ordinary question about a table with one more column.

The column stands behind all others, is 0 in every input, and no weighted change may be above it.
It alone has a price. Models, grids, levels and local metrics are then what they are for any other
cost, and so are proofs: a linear program has one more variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from counterlvq.certificates.exact_duality import rounded_down
from counterlvq.certificates.implied_rivals import ImpliedCertificate
from counterlvq.certificates.unions import JoinedCertificate
from counterlvq.numeric.arrays import Floats, read_only
from counterlvq.numeric.tolerances import UNIT
from counterlvq.prepared import Prepared
from counterlvq.problem.at_most import AtMost
from counterlvq.problem.chebyshev import BeforeHeight, Height
from counterlvq.problem.confidence import Confidence, Noise
from counterlvq.problem.constraints import Constraint, MinChange
from counterlvq.problem.cost_terms import Prices
from counterlvq.problem.data_ranges import AsSeen
from counterlvq.problem.plausibility import Plausible
from counterlvq.questions.protocol import Asks
from counterlvq.questions.unions import bounded
from counterlvq.results import Counterfactual
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import FeatureKey

__all__ = ["exact_height", "heightened", "largest_change", "narrowed", "widened"]

_NAME = "largest change"


def heightened(asked: Asks) -> Any:
    """Return an explainer that asks the same with one more column."""
    names = asked._source.columns
    name = next(_NAME + "'" * n for n in range(len(names) + 1) if _NAME + "'" * n not in names)
    source = asked._source.widened(Feature(name, lower=0.0))
    constraints = (*(_among(item, asked) for item in asked.constraints), Height(asked.prices))
    return asked.asking_for(
        confidence=_beside(asked.confidence),
        model=source.model,
        features=source.features,
        prices=asked.prices.of_height(),
        constraints=constraints,
        _source=source,
    )


def _beside(confidence: Confidence | None) -> Confidence | None:
    """Weigh noise in one more column: no score depends on it, so that any weight will do."""
    if not isinstance(confidence, Noise) or confidence.by_position is None:
        return confidence
    weights = np.append(confidence.by_position, 1.0)
    return Noise(confidence.radius, confidence.norm, weights, unit=confidence.unit)


def _among(item: Constraint | str, asked: Asks) -> Constraint | str:
    """Mean the columns that there were, and not the one more.

    Kinds that are known by their class elsewhere name their features, all others are kept whole.
    """
    features = asked.features
    if isinstance(item, str):
        return item

    def named(keys: Iterable[FeatureKey]) -> list[str]:
        return [features.names[features.position(key)] for key in keys if features.sees(key)]

    if isinstance(item, AtMost):
        names = named(item.features or features.names)
        return AtMost(item.count, *names) if names else BeforeHeight(item, features)
    if isinstance(item, Plausible):
        return Plausible(item.ellipsoids, named(item.features), item.share)
    if isinstance(item, AsSeen | MinChange) and features.sees(item.feature):
        return replace(item, feature=named([item.feature])[0])
    return BeforeHeight(item, features)


def largest_change(view: Prepared, row: Floats, values: Floats) -> tuple[float, float]:
    """Largest weighted change of a row, and what the last digits of its values are worth."""
    x, y = view.inner(row), view.inner(values)
    delta = y - x
    up, down = view.template.both_ways
    ways = np.where(delta > 0, up, down)
    is_loose = (delta != 0) & (view.template.grid.step == 0)
    worth = np.where(is_loose, ways * (np.abs(x) + np.abs(y)), 0.0).max(initial=0.0)
    return float((ways * np.abs(delta)).max(initial=0.0)), float(4.0 * UNIT * worth)


def exact_height(prices: Prices, cf: Counterfactual) -> float:
    """Largest weighted change of columns that are numbers, rounded up from what it is exactly."""
    pairs = zip(prices.weights[0], cf.values, cf.original_values, strict=True)
    exact = [Fraction(float(w)) * abs(Fraction(float(y)) - Fraction(float(x))) for w, y, x in pairs]
    return -rounded_down(-max(exact, default=Fraction(0)))


def widened(cf: Counterfactual, row: Floats, height: float = 0.0) -> Counterfactual:
    """Put the one more column behind the input of an answer, its values and points of a proof."""
    return replace(
        cf,
        original_values=np.append(row, 0.0),
        values=np.append(cf.values, height),
        certificate=_widened_points(cf.certificate),
    )


def _widened_points(certificate: Any) -> Any:
    """Put implied rivals where all prototypes of the wider table lie: at 0 in its last column."""
    if isinstance(certificate, JoinedCertificate):
        return replace(certificate, parts=tuple(map(_widened_points, certificate.parts)))
    if isinstance(certificate, ImpliedCertificate):
        points = np.pad(certificate.points, ((0, 0), (0, 1)))
        return replace(certificate, points=points)
    return certificate


def narrowed(asked: Asks, wide: Asks, found: Counterfactual) -> Counterfactual:
    """Say what an answer about the wider table says of the table itself."""
    row, values = found.original_values[:-1], found.values[:-1]
    within = found.within_rules
    cf = replace(
        found,
        original_values=read_only(row),
        values=read_only(values),
        features=asked.features,
        conflict=_as_stated(asked, wide, found.conflict),
        conflict_ranges=tuple(
            item for item in found.conflict_ranges if item.feature in asked.features.names
        ),
        broken=_as_stated(asked, wide, found.broken),
        within_rules=None if within is None else _within(asked, wide, within),
    )
    if not cf.status.has_answer:
        return cf
    cost, resolution = largest_change(asked.prepared_for(row), row, values)
    # What was found costs what it costs: one more column only led there.
    cf = replace(cf, cost=cost, resolution=resolution)
    if cost == 0.0:
        return replace(cf, lower_bound=0.0, bound_with_margin=0.0, gap=0.0)
    return bounded(asked, cf, found.lower_bound)


def _within(asked: Asks, wide: Asks, found: Counterfactual) -> Counterfactual:
    """Say the same of the closest row within the rules, whatever the model says of it."""
    plain = {"margin": None, "confidence": None, "is_sure": False}
    return replace(
        narrowed(asked.asking_for(**plain), wide, found), check=asked.asking_for(**plain)._check
    )


def _as_stated(asked: Asks, wide: Asks, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Name constraints as the user stated them."""
    pairs = zip(wide.constraints, asked.constraints, strict=False)
    stated = {id(other): own for other, own in pairs}
    return tuple(stated.get(id(item), item) for item in items if not isinstance(item, Height))
