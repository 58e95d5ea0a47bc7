"""How sure the model has to be, where that bends the border of a cell.

Both rules ask of an answer y in the cell of prototype i that it keeps away from every prototype k
of another label by more than a constant lead. What is left of the cell is convex under a shared
metric, and lies on one side of the plane half way between prototype i and any *implied rival*:
`implied_at` finds the one that bounds the cell best at a point, and `implies` checks in rational
numbers that a point is one. A cell against such rivals is an ordinary cell.

Where that is not to be had, under local metrics or with levels, `RelativeSimilarity` is a cell of
`weighed` metrics: an ordinary question of local metrics.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_scalar
from counterlvq.numeric.restatement_error import Blur
from counterlvq.numeric.tolerances import (
    LOOSER_RIVAL,
    NO_ROOM,
    RIVAL_CUSHION,
    RIVAL_SLACK,
    SAFE,
    SUM_UNDERFLOW,
    UNIT,
)
from counterlvq.problem.confidence import Confidence, no_numbers, said_number

__all__ = ["Drift", "KeptApart", "RelativeSimilarity"]


class KeptApart(Confidence):
    """A confidence that keeps answers away from each rival by more than a constant lead."""

    @property
    @abstractmethod
    def called(self) -> str:
        """Name of the rule, for errors."""

    @abstractmethod
    def asking(self, more: float) -> KeptApart:
        """Return the same rule, asking for a very little more, or for less."""

    @abstractmethod
    def keeps(self, own: Fraction, other: Fraction) -> bool:
        """Whether squared distances to the prototype and to a rival are far enough apart."""

    @abstractmethod
    def implied_at(self, model: PrototypeModel, i: int, k: int, y: Floats) -> Floats | None:
        """Find the implied rival that bounds the cell of i against k best at a point, (d,)."""

    def looser_at(self, model: PrototypeModel, i: int, k: int, y: Floats) -> Floats | None:
        """Find one farther off than `implied_at`, that still leaves out the point, (d,).

        For where rounding leaves none nearer; None if there is none.
        """
        return None

    @abstractmethod
    def implies(self, model: PrototypeModel, i: int, k: int, point: Floats) -> bool:
        """Whether prototype i is at least as near as a point wherever the rule is kept."""

    @abstractmethod
    def touching(
        self, model: PrototypeModel, i: int, k: int, point: Floats
    ) -> tuple[Floats, float] | None:
        """Find where the plane of an implied rival touches the rule, (d,).

        With how many times the tangent of the rule there, as it is stated in squared distances,
        is the difference of the distances to prototype i and to the rival.
        """

    def rules_out(self, model: PrototypeModel, i: int, k: int) -> bool:
        """Whether nothing keeps prototype i away from a rival, wherever an answer lies."""
        return False

    def is_convex(self, model: PrototypeModel, is_plain: bool) -> bool:
        """Whether what the rule leaves of a cell is convex, in columns that are all numbers."""
        has_offsets = model.offsets is not None and bool(model.offsets.any())
        return is_plain and not model.is_local and not has_offsets

    def refuse(self, model: PrototypeModel, others: Sequence[str]) -> None:
        """Refuse models for which the rule has no meaning, or no way to an answer.

        `others` are columns that are no numbers, or that the model sees through a function.
        """
        model.require_distances(self.called)
        self._refuse_bent(model, others)

    def _refuse_bent(self, model: PrototypeModel, others: Sequence[str]) -> None:
        """Refuse what is not convex."""
        if model.is_local:
            raise NotSupportedError(
                f"{self.called} is for shared metrics, under which what is left of a cell is "
                f"convex, and the metrics of this model differ from prototype to prototype. Ask "
                f"for a margin instead."
            )
        if model.offsets is not None and model.offsets.any():
            raise NotSupportedError(
                f"{self.called} compares distances to prototypes, and those of this model lie off "
                f"the space of its inputs. Ask for a margin instead."
            )
        if others:
            raise NotSupportedError(no_numbers(self.called, others))


@final
@dataclass(frozen=True)
class RelativeSimilarity(KeptApart):
    """The relative similarity of the answer is at least `theta`.

    That is ``(d_k - d_i) / (d_k + d_i)`` of the squared distances to the nearest prototype i of the
    answer's label and to any prototype k of another label: the measure by which LVQ rejects inputs
    that are too uncertain. With all classes as target an answer says what would make an input
    certain. For shared and local metrics, whole numbers and levels. Where both distances are 0, at
    prototypes of two labels that lie on each other, the similarity is 0.

    Parameters
    ----------
    theta : float
        At least 0 and below 1.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    >>> explainer = clvq.Explainer(model, confidence=clvq.RelativeSimilarity(0.8))
    >>> explainer.explain([0.0], target="yes").x.round(6)
    array([3.])
    """

    theta: float

    def __post_init__(self) -> None:
        number = finite_scalar("RelativeSimilarity: theta", self.theta)
        if not 0 <= number < 1:
            raise InvalidInputError(
                f"RelativeSimilarity: theta is {number:g}; expected a number of at least 0 and "
                f"below 1. Only a prototype itself has 1."
            )
        object.__setattr__(self, "theta", number)

    @property
    def words(self) -> str:
        """Name it."""
        return f"a relative similarity of at least {said_number(self.theta)}"

    @property
    def called(self) -> str:
        """Name of the rule, for errors."""
        return "RelativeSimilarity"

    def _refuse_bent(self, model: PrototypeModel, others: Sequence[str]) -> None:
        """Refuse nothing: what is not convex is a cell of `weighed` metrics."""

    def weighed(self, model: PrototypeModel, label: int) -> PrototypeModel:
        """Return a model that says a label, by its position among the classes, where it is sure.

        Distances are multiplied: those to prototypes of the label by ``1 + theta``, all others by
        ``1 - theta``. How far rounding takes them from what is meant is the blur of the model.
        """
        shares = np.where(model.class_index == label, 1.0 + self.theta, 1.0 - self.theta)
        scales, known = np.sqrt(shares), model.blur
        factors = [scale * F for scale, F in zip(scales, model.factors, strict=True)]
        offsets = None if model.offsets is None else shares * model.offsets
        out = PrototypeModel(model.prototypes, model.labels, factors, model.features.names, offsets)
        # Of each entry three roundings: of the share, of its root and of the product.
        lengths = SAFE * np.array([np.linalg.norm(F, axis=0) for F in factors])
        seen = np.array([(F != 0).any(axis=0) for F in model.factors])
        wobble = np.where(seen, 4.0 * UNIT * lengths + SUM_UNDERFLOW, 0.0)
        residual = pull = constant = np.zeros(len(shares))
        if known is not None:
            wobble = wobble + scales[:, None] * known.wobble  # of one metric, or of each
            residual, pull = scales * known.residual, scales * known.pull
            constant = shares * known.constant
        if offsets is not None:
            constant = constant + 4.0 * UNIT * offsets + SUM_UNDERFLOW
        # Columns divided by their lengths stretch by no more than the root of their number.
        stretch = np.full(len(shares), SAFE * np.sqrt(model.n_features))
        parts = (SAFE * part for part in (wobble, stretch, residual, pull, constant))
        return out.blurred(Blur(out.prototypes, tuple(factors), lengths, *parts))

    def asking(self, more: float) -> RelativeSimilarity:
        """Return the same rule, asking for a very little more, or for less."""
        return RelativeSimilarity(max(self.theta + more * RIVAL_CUSHION * (1.0 - self.theta), 0.0))

    def keeps(self, own: Fraction, other: Fraction) -> bool:
        """Whether squared distances to the prototype and to a rival are far enough apart."""
        theta = Fraction(self.theta)
        # At two prototypes at once the similarity is 0.
        return (1 + theta) * own <= (1 - theta) * other and (other > 0 or not theta)

    def rules_out(self, model: PrototypeModel, i: int, k: int) -> bool:
        """Whether a rival is as near as the prototype everywhere, so that no similarity is above 0.

        Planes alone do not show it, for they leave the prototype itself.
        """
        if not self.theta or (model.offsets is not None and model.offsets[k] > model.offsets[i]):
            return False
        if not model.is_local:
            way = model.prototypes[k] - model.prototypes[i]
            if _length(model, way) > NO_ROOM * _longest(model, way):
                return False  # far from it: no need to be exact
            return not any(_image(model, _exact(model.prototypes[i]), model.prototypes[k]))
        same_metric = np.array_equal(model.factors[i], model.factors[k])
        return same_metric and np.array_equal(model.prototypes[i], model.prototypes[k])

    def implied_at(self, model: PrototypeModel, i: int, k: int, y: Floats) -> Floats | None:
        """Find the implied rival that bounds the cell of i against k best at a point, (d,).

        What is left of the cell is a ball in the metric, around ``w_i - s (w_k - w_i)`` with
        ``s = (1 - theta) / (2 theta)``; the rival is the mirror of w_i in a plane that touches it.
        """
        if self.theta == 0.0:
            return np.asarray(model.prototypes[k])
        return self._mirrored(model, i, k, y, 0.0)

    def looser_at(self, model: PrototypeModel, i: int, k: int, y: Floats) -> Floats | None:
        """Find the mirror of w_i in a plane a little of the way from it to the point, (d,).

        Where a rival all but lies on w_i, the ball is smaller than the rounding of its center.
        """
        return None if self.theta == 0.0 else self._mirrored(model, i, k, y, LOOSER_RIVAL)

    def _mirrored(
        self, model: PrototypeModel, i: int, k: int, y: Floats, share: float
    ) -> Floats | None:
        """Mirror w_i in a plane that touches the ball, or at least a share of the way to y."""
        away = model.prototypes[k] - model.prototypes[i]
        s = (1.0 - self.theta) / (2.0 * self.theta)
        normal = y - model.prototypes[i] + s * away
        length = _length(model, normal)
        if length == 0.0:
            return None
        radius = np.sqrt(1.0 - self.theta**2) / (2.0 * self.theta) * _length(model, away)
        offset = s * _dot(model, away, normal) / length
        side = max(radius - offset, share * (length - offset))
        reach = 2.0 * side / length * (1.0 + RIVAL_SLACK)
        return np.asarray(model.prototypes[i] + reach * normal)

    def implies(self, model: PrototypeModel, i: int, k: int, point: Floats) -> bool:
        """Whether prototype i is at least as near as a point wherever the rule is kept."""
        theta, own = Fraction(self.theta), _exact(model.prototypes[i])
        away, mirror = _image(model, own, model.prototypes[k]), _image(model, own, point)
        if theta == 0:
            return bool((point == model.prototypes[k]).all())
        s = (1 - theta) / (2 * theta)
        square = (1 - theta**2) / (4 * theta**2) * _product(away, away)
        size = _product(mirror, mirror)
        room = size + 2 * s * _product(away, mirror)
        return room >= 0 and 4 * square * size <= room**2

    def touching(
        self, model: PrototypeModel, i: int, k: int, point: Floats
    ) -> tuple[Floats, float] | None:
        """Find where the plane of an implied rival touches the ball of the rule, (d,)."""
        own, away = model.prototypes[i], model.prototypes[k] - model.prototypes[i]
        toward = point - own
        length = _length(model, toward)
        if self.theta == 0.0 or length == 0.0:
            return None
        s = (1.0 - self.theta) / (2.0 * self.theta)
        radius = np.sqrt(1.0 - self.theta**2) / (2.0 * self.theta) * _length(model, away)
        if radius == 0.0:
            return None
        at = own - s * away + (radius / length) * toward
        return np.asarray(at), length / (2.0 * self.theta * radius)


@final
@dataclass(frozen=True)
class Drift(KeptApart):
    """The decision survives a move of every prototype by up to a radius, in its metric.

    Whatever retraining does to the prototypes within it, the answer keeps its label:
    ``|F(y - w_i)| + 2 radius <= |F(y - w_k)|`` for the nearest prototype i of the answer's label
    and every prototype k of another label. For shared metrics and columns of numbers.

    Parameters
    ----------
    radius : float
        Positive, in units of the metric.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"])
    >>> explainer = clvq.Explainer(model, confidence=clvq.Drift(0.5))
    >>> explainer.explain([0.0], target="yes").x.round(6)
    array([2.5])
    """

    radius: float

    def __post_init__(self) -> None:
        number = finite_scalar("Drift: radius", self.radius)
        if number <= 0:
            raise InvalidInputError(f"Drift: radius is {number:g}; expected a positive number.")
        object.__setattr__(self, "radius", number)

    @property
    def words(self) -> str:
        """Name it."""
        return f"room for a drift of {said_number(self.radius)}"

    @property
    def called(self) -> str:
        """Name of the rule, for errors."""
        return "Drift"

    def asking(self, more: float) -> Drift:
        """Return the same rule, asking for a very little more, or for less."""
        return Drift(self.radius * (1.0 + more * RIVAL_CUSHION))

    def rules_out(self, model: PrototypeModel, i: int, k: int) -> bool:
        """Whether the rival can drift over the prototype: no distances differ by more than that.

        Planes alone do not show it, for they leave the prototype itself.
        """
        way = model.prototypes[k] - model.prototypes[i]
        if not _length(model, way) <= 2.0 * self.radius * (1.0 + RIVAL_CUSHION):
            return False  # far from it: no need to be exact
        away = _image(model, _exact(model.prototypes[i]), model.prototypes[k])
        return _product(away, away) < 4 * Fraction(self.radius) ** 2

    def keeps(self, own: Fraction, other: Fraction) -> bool:
        """Whether squared distances to the prototype and to a rival are far enough apart."""
        radius = Fraction(self.radius)
        room = other - own - 4 * radius**2
        return room >= 0 and room**2 >= 16 * radius**2 * own

    def implied_at(self, model: PrototypeModel, i: int, k: int, y: Floats) -> Floats | None:
        """Find the implied rival that bounds the cell of i against k best at a point, (d,).

        It is the rival itself, drifted towards the point, twice as far: the prototype drifts away.
        """
        toward = y - model.prototypes[k]
        length = _length(model, toward)
        if length == 0.0:
            return None
        step = min(2.0 * self.radius * (1.0 - RIVAL_SLACK) / length, 1.0)
        return np.asarray(model.prototypes[k] + step * toward)

    def implies(self, model: PrototypeModel, i: int, k: int, point: Floats) -> bool:
        """Whether prototype i is at least as near as a point wherever the rule is kept."""
        moved = _image(model, _exact(model.prototypes[k]), point)
        return _product(moved, moved) <= 4 * Fraction(self.radius) ** 2

    def touching(
        self, model: PrototypeModel, i: int, k: int, point: Floats
    ) -> tuple[Floats, float] | None:
        """Find where the branch of the rule has the normal of the plane of an implied rival, (d,).

        There its slope is ``2 (w_k - w_i) + 4 radius e`` for the direction e from prototype i. Of
        the two directions in which that is a multiple of the normal one leads to the branch. The
        plane itself touches it there, or lies outside of it where the point was beyond the cell.
        """
        own, away = model.prototypes[i], model.prototypes[k] - model.prototypes[i]
        normal = point - own
        size, along = _dot(model, normal, normal), _dot(model, normal, away)
        room = _dot(model, away, away) - 4.0 * self.radius**2
        square = along**2 - size * room
        if size == 0.0 or not (square >= 0.0 and room > 0.0):
            return None
        steepness = 2.0 * (along + np.sqrt(square)) / size
        direction = (steepness * normal - 2.0 * away) / (4.0 * self.radius)
        below = 2.0 * _dot(model, direction, away) + 4.0 * self.radius
        if not (steepness > 0.0 and below > 0.0):
            return None
        return np.asarray(own + (room / below) * direction), 2.0 / steepness


def _length(model: PrototypeModel, way: Floats) -> float:
    return float(np.sqrt(_dot(model, way, way)))


def _longest(model: PrototypeModel, way: Floats) -> float:
    """Bound what the length of a direction is a difference of."""
    if model.omegas is None or model.diagonal is not None:
        return _length(model, way)
    lifted = np.abs(model.shared_factor) @ np.abs(way)
    return float(np.sqrt(lifted @ lifted))


def _dot(model: PrototypeModel, one: Floats, other: Floats) -> float:
    """Product of two directions in a shared metric."""
    if model.diagonal is not None:
        return float((one * model.diagonal) @ (other * model.diagonal))
    if model.omegas is None:
        return float(one @ other)
    return float((model.shared_factor @ one) @ (model.shared_factor @ other))


def _exact(values: Floats) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def _image(model: PrototypeModel, start: list[Fraction], end: Floats) -> list[Fraction]:
    """Take the way from one point to another into the space of the metric, exactly."""
    way = [b - a for a, b in zip(start, _exact(end), strict=True)]
    if model.omegas is None:
        return way
    if model.diagonal is not None:
        return [f * w for f, w in zip(_exact(model.diagonal), way, strict=True)]
    return [_product(_exact(row), way) for row in model.shared_factor]


def _product(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))
