"""Planes through the space of inputs, chosen so that a picture shows what was asked and answered.

A plane of two features is read most easily; if more than two of them change, the plane goes along
the change, and across it where the model tells its prototypes apart best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.explainer import Explainer
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import IN_PLANE, LEAST_LENGTH
from counterlvq.problem.chebyshev import Chebyshev
from counterlvq.problem.constraints import Bounds, Constraint
from counterlvq.problem.costs import Cost, Manhattan
from counterlvq.problem.expressions import as_constraint
from counterlvq.problem.plausibility import Plausible
from counterlvq.programs.conditions import LinearConditions, QuadraticCondition
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_text
from counterlvq.tables.features import FeatureKey

__all__ = [
    "Plane",
    "PlaneAxes",
    "change_weights",
    "conditions_of",
    "cost_scale",
    "feature_scale",
    "nearest_wished",
    "plane_of",
    "undrawn",
]

# Letters that the recipe of a direction may take, beside an axis.
_RECIPE = 36

PlaneAxes = Sequence[FeatureKey] | Literal["metric"] | None


@final
@dataclass(frozen=True, eq=False)
class Plane:
    """The inputs ``origin + u * first + v * second``, and how to read u and v."""

    origin: Floats  # (d,)
    first: Floats  # (d,)
    second: Floats  # (d,)
    scale: Floats  # (d,) cost of one unit of each feature: what lengths are measured in
    labels: tuple[str, str]  # of the two axes
    words: str  # which plane it is; empty if there is no other
    features: tuple[int, int] | None  # the columns on the axes, if they are columns

    def points(self, places: Floats) -> Floats:
        """Return the inputs at the places (n, 2), (n, d)."""
        return np.asarray(
            self.origin + places[:, :1] * self.first + places[:, 1:2] * self.second, dtype=float
        )

    def places(self, points: Floats) -> Floats:
        """Where inputs (n, d) are seen: the nearest places of the plane, (n, 2)."""
        basis = np.stack([self.first, self.second], axis=1) * self.scale[:, None]
        away = (points - self.origin) * self.scale
        found = np.linalg.lstsq(basis, away.T, rcond=None)[0].T
        return np.asarray(found, dtype=np.float64)

    def contains(self, points: Floats) -> NDArray[np.bool_]:
        """Which inputs lie in the plane, up to rounding, (n,)."""
        off = np.abs(self.points(self.places(points)) - points) * self.scale
        size = (np.abs(points) + np.abs(self.origin)).max(axis=0) * self.scale
        # For pictures only: which points are drawn as lying in the plane.
        return np.asarray((off <= IN_PLANE * max(float(size.max()), LEAST_LENGTH)).all(axis=1))

    @property
    def lengths(self) -> Floats:
        """Length of one unit of u and of v, (2,)."""
        pair = np.stack([self.first, self.second]) * self.scale
        return np.asarray(np.linalg.norm(pair, axis=1))


def cost_scale(cost: Cost, width: int) -> Floats:
    """Weigh one unit of each feature by a cost, so that lengths can be compared, (d,)."""
    scale = cost.l1_weights(width) + np.linalg.norm(cost.l2_factor(width), axis=0)
    seen = scale[scale > 0]
    return np.where(scale > 0, scale, seen.min() if seen.size else 1.0)


def plane_of(explainer: Explainer, cf: Counterfactual, features: PlaneAxes = None) -> Plane:
    """Choose the plane: of two features, of the metric, or through input and answer."""
    _refuse_what_is_no_plane(explainer, cf)
    if isinstance(features, str):
        if features != "metric":
            raise InvalidInputError(
                f"features is {features!r}; expected two features, 'metric', or None. "
                f"Write features=[{features!r}, ...] for a feature of that name."
            )
        return _metric_plane(explainer, cf)
    if features is not None:
        return _feature_plane(explainer, cf, _checked_pair(explainer, features))
    changed = (
        np.flatnonzero(cf.values != cf.original_values)
        if cf.status.has_answer
        else np.zeros(0, int)
    )
    if explainer.model.n_features == 2:
        return _feature_plane(explainer, cf, (0, 1))
    if cf.status.has_answer and len(changed) <= 2:
        rest = [j for j in _by_weight(explainer, cf) if j not in changed]
        first, second = sorted([*changed.tolist(), *rest][:2])
        return _feature_plane(explainer, cf, (first, second))
    return _oblique_plane(explainer, cf)


def _refuse_what_is_no_plane(explainer: Explainer, cf: Counterfactual) -> None:
    levels = [feature.name for feature in explainer.features if not feature.is_number]
    if levels:
        raise NotSupportedError(
            f"feature {levels[0]!r} has levels, which have no place in a plane; expected numbers "
            f"only. Use plot_changes, which shows levels as text."
        )
    if explainer.model.n_features < 2:
        raise InvalidInputError(
            f"the model has {explainer.model.n_features} feature; expected at least two for a "
            f"plane. Use plot_changes."
        )
    if cf.feature_names != explainer.features.names:
        raise InvalidInputError(
            f"the answer is about {_first(cf.feature_names)}, ... and the explainer about "
            f"{_first(explainer.features.names)}, ...; expected an answer of this explainer."
        )


def _first(names: Sequence[str]) -> str:
    return ", ".join(map(shown_text, names[:4]))


def _checked_pair(explainer: Explainer, features: Sequence[FeatureKey]) -> tuple[int, int]:
    at = [explainer.features.position(key) for key in features]
    if len(at) != 2 or at[0] == at[1]:
        raise InvalidInputError(
            f"features is {list(features)!r}; expected two different features, by name or position."
        )
    return at[0], at[1]


def _feature_plane(explainer: Explainer, cf: Counterfactual, pair: tuple[int, int]) -> Plane:
    names = [explainer.features.columns[j] for j in pair]
    base = (cf.values if cf.status.has_answer else cf.original_values).copy()
    others = [j for j in range(base.size) if j not in pair]
    same = not cf.status.has_answer or np.array_equal(cf.values[others], cf.original_values[others])
    base[list(pair)] = 0.0
    directions = np.eye(base.size)[list(pair)]
    held = "as in the input" if same else "as in the counterfactual"
    return Plane(
        base,
        directions[0],
        directions[1],
        cost_scale(explainer.cost, base.size),
        (_axis_label(names[0].name, names[0].unit), _axis_label(names[1].name, names[1].unit)),
        f"all other features {held}" if others else "",
        pair,
    )


def _oblique_plane(explainer: Explainer, cf: Counterfactual) -> Plane:
    """Through the input and its counterfactual, or else the nearest wished-for prototype."""
    scale = cost_scale(explainer.cost, cf.original_values.size)
    if cf.status.has_answer:
        along = (cf.values - cf.original_values) * scale
        goal, words = "to the counterfactual", "the plane through input and counterfactual"
    else:
        free = _free(_equalities(explainer) / scale)
        along = free @ (free.T @ ((nearest_wished(explainer, cf) - cf.original_values) * scale))
        goal = "towards the nearest wished-for prototype"
        words = "from the input towards the nearest wished-for prototype"
    if not along.any():
        return _metric_plane(explainer, cf)
    up = _leading(explainer, cf, scale, 1, along)[0] * np.linalg.norm(along) / scale
    return Plane(
        cf.original_values,
        along / scale,
        up,
        scale,
        (f"from the input (0) {goal} (1)", f"across: {_recipe(cf.feature_names, up, scale)}"),
        words,
        None,
    )


def _metric_plane(explainer: Explainer, cf: Counterfactual) -> Plane:
    """Take the two directions that the metric sees best, through the counterfactual."""
    origin = cf.values if cf.status.has_answer else cf.original_values
    scale = cost_scale(explainer.cost, origin.size)
    pair = _leading(explainer, cf, scale, 2, None) / scale
    names = [f"{_recipe(cf.feature_names, direction, scale)}" for direction in pair]
    where = "counterfactual" if cf.status.has_answer else "input"
    return Plane(
        origin,
        pair[0],
        pair[1],
        scale,
        (names[0], names[1]),
        f"the leading directions of the metric, through the {where}",
        None,
    )


def _leading(
    explainer: Explainer, cf: Counterfactual, scale: Floats, count: int, along: Floats | None
) -> Floats:
    """Find the unit directions in which the metric sees most, at right angles to `along`.

    Among those that equalities leave free.
    """
    fixed = _equalities(explainer) / scale
    given = np.zeros((0, scale.size)) if along is None else along[None, :]
    free = _free(np.concatenate([fixed, given]))
    if free.shape[1] < count:  # equalities leave a line at most; the plane has to cross them
        free = _free(given)
    seen = _slopes(explainer, cf, scale) @ free
    vectors = np.linalg.eigh(seen.T @ seen)[1][:, ::-1]
    chosen: Floats = (free @ vectors[:, :count]).T
    largest = chosen[np.arange(count), np.abs(chosen).argmax(axis=1)]
    return np.asarray(chosen * np.sign(largest)[:, None])


def _free(rows: Floats) -> Floats:
    """Directions along which none of the rows changes, as orthonormal columns."""
    return np.asarray(null_space(rows)) if rows.shape[0] else np.eye(rows.shape[1])


def _equalities(explainer: Explainer) -> Floats:
    rows = [c.A for c in conditions_of(explainer) if isinstance(c, LinearConditions) and c.equality]
    return np.concatenate([np.zeros((0, explainer.model.n_features)), *rows])


def _slopes(explainer: Explainer, cf: Counterfactual, scale: Floats) -> Floats:
    """How the scores of the prototypes part along each feature, (p, d).

    The difference of two scores has the slope ``F'F (w - w')``. A metric that treats all
    directions alike, such as the plain distance, still sees prototypes apart in some more than
    in others; and one that does not see a direction has no slope there.
    """
    model = explainer.model
    nearest = (
        cf.prototype if cf.prototype >= 0 else int(model.nearest(cf.original_values[None, :])[0])
    )
    if model.diagonal is not None:
        return np.asarray((model.prototypes - model.center) * model.diagonal**2 / scale)
    factor = model.factors[nearest]
    slopes: Floats = (model.prototypes - model.center) @ factor.T @ factor / scale
    return slopes


def _by_weight(explainer: Explainer, cf: Counterfactual) -> list[int]:
    """Columns by how much the metric sees of them, those that may change first."""
    scale = cost_scale(explainer.cost, cf.values.size)
    weight = np.linalg.norm(_slopes(explainer, cf, scale), axis=0)
    weight = np.where((_equalities(explainer) != 0).any(axis=0), -1.0, weight)
    return [int(j) for j in np.argsort(-weight, kind="stable")]


def conditions_of(explainer: Explainer) -> list[LinearConditions | QuadraticCondition]:
    """State the constraints and the ranges of an explainer whose features are all numbers."""
    features = explainer.features
    given = [as_constraint(item) for item in explainer.constraints]
    given += [Bounds(f.name, f.lower, f.upper) for f in features]
    stated = [part for item in given for part in item.conditions(features)]
    return [part for part in stated if isinstance(part, LinearConditions | QuadraticCondition)]


def undrawn(explainer: Explainer) -> list[Constraint]:
    """List the constraints that `conditions_of` leaves out, and no ellipsoid shows."""
    drawn = (LinearConditions, QuadraticCondition)
    return [
        item
        for item in map(as_constraint, explainer.constraints)
        if not isinstance(item, Plausible)
        and not (
            item.is_stated
            and all(isinstance(part, drawn) for part in item.conditions(explainer.features))
        )
    ]


def feature_scale(explainer: Explainer) -> dict[str, float]:
    """Weigh one unit of each feature that is a number, by its name."""
    features, cost = explainer.features, explainer.cost
    numbers = [j for j, feature in enumerate(features) if feature.is_number]
    if isinstance(cost, Manhattan | Chebyshev):
        scale = cost_scale(cost, len(features))[numbers]
    else:
        scale = cost_scale(cost, len(numbers))
    return {features.names[j]: float(one) for j, one in zip(numbers, scale, strict=True)}


def change_weights(explainer: Explainer, cf: Counterfactual) -> dict[str, float]:
    """Weigh each change, so that their lengths can be compared; a switch by its price."""
    scale = feature_scale(explainer)
    switches = explainer.prices.switches
    out = {}
    for change in cf.shown_changes:
        j = explainer.features.position(change.feature)
        if change.difference is not None:
            up, down = explainer.prices.weights[:, j].tolist()
            unit = scale[change.feature] if up == down else up if change.difference > 0 else down
            out[change.feature] = float(change.difference * unit)
            continue
        price = float(switches[j][int(cf.original_values[j]), int(cf.values[j])])
        # Beside squared distances a price is the square of a length.
        out[change.feature] = (
            price if isinstance(explainer.cost, Manhattan | Chebyshev) else price**0.5
        )
    return out


def nearest_wished(explainer: Explainer, cf: Counterfactual) -> Floats:
    """Find the wished-for prototype that is nearest to the input, (d,)."""
    model, target = explainer.model, set(cf.target)
    wished = np.array([label in target for label in model.labels.tolist()])
    distance = np.where(wished, model.distances(cf.original_values[None, :])[0], np.inf)
    return np.asarray(model.prototypes[int(distance.argmin())])


def _axis_label(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name


def _recipe(names: Sequence[str], direction: Floats, scale: Floats, most: int = 3) -> str:
    """Say a direction by the features that it moves most, in their own units."""
    weight = np.abs(direction) * scale
    order = [int(j) for j in np.argsort(-weight, kind="stable") if weight[j] > 0.05 * weight.max()]
    parts = [f"{_rounded(direction[j])} {shown_text(names[j])}" for j in order[:most]]
    while len(parts) > 1 and sum(map(len, parts)) > _RECIPE:
        parts.pop()
    return ", ".join(parts) + (", ..." if len(order) > len(parts) else "")


def _rounded(value: float) -> str:
    return f"{value:+,.0f}" if 100 <= abs(value) < 1e9 else f"{value:+.2g}"
