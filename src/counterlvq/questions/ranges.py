"""Ranges instead of a point: a box around an answer in which every combination is one, too.

Under a shared metric an answer lies in a polyhedron: the cell of its prototype, and what linear
constraints leave of it. A row ``a'y <= b`` holds in all of a box if it holds in the corner that is
worst for it, which is linear in the ends of the box. The box is found by a linear program in
floats, and then each row is proved in rational numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf
from typing import Any, NamedTuple, final

import numpy as np

from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.numeric.arrays import Floats, finite_scalar, plain, told
from counterlvq.presentation.question_cards import Listing, question_card
from counterlvq.presentation.wording import PLAIN, Wording, listed
from counterlvq.problem.at_most import AtMost
from counterlvq.problem.constraints import Constraint
from counterlvq.problem.plausibility import Plausible
from counterlvq.problem.targets import wished_prototypes
from counterlvq.questions.exact_rows import held_columns
from counterlvq.questions.ladders import ladder_at
from counterlvq.questions.protocol import Asks
from counterlvq.questions.range_box import RangeBox, Spot
from counterlvq.questions.range_words import value_range
from counterlvq.results import Counterfactual
from counterlvq.safe_text import shown_repr, shown_text
from counterlvq.tables.dates import date_of
from counterlvq.tables.feature import Feature
from counterlvq.tables.features import Features
from counterlvq.types import Kind

__all__ = ["Ranges", "ranges_of", "refuse_ranges"]

Ends = tuple[Any, Any]
# Ends of a box, and the levels of each feature that changes its level.
_Found = tuple[Floats, Floats, dict[int, list[int]]]

SIDES = ("both", "away")
# Whole numbers that are listed one by one; wider ranges are told by their ends.
_MOST_LISTED = 10_000


class About(NamedTuple):
    """Which answer ranges are about, and what they keep."""

    original_values: Floats
    values: Floats
    constraints: tuple[Constraint | str, ...]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Ranges(Mapping[str, Any]):
    """For each feature that changes, the values that it may have: a mapping.

    The value of a real number or a date is a pair ``(lower, upper)``, infinite where a side is
    open, or a set where `OneOf` lists its values. That of a feature with levels is a set of them,
    and that of a whole number the set of all its values, up to 10,000; where there are more, or a
    side is open, a pair as well.

    Every combination of values in these ranges, with all other features as they are in the answer,
    has a label that was wished for and meets the constraints.

    Attributes
    ----------
    prediction : label
        What the model says throughout.
    features : Features
    held : tuple of str
        Features of which nothing but the answer's value is looked at: equalities, `Quadratic`, `If`
        or intervals of values are about them, which leave no box.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    >>> explainer = clvq.Explainer(model, constraints=["income <= 10"])
    >>> ranges = explainer.ranges(explainer.explain([0.5], target="yes"))
    >>> round(ranges["income"][0], 6), ranges["income"][1]
    (2.0, 10.0)
    >>> print(ranges)
    It stays yes with income from 2.001 to 10.
    """

    ranges: Mapping[str, Any]
    prediction: Any
    features: Features
    # What the sentence says, around the row that is shown for the answer and its values: the same
    # ranges wherever these hold that row too.
    told: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, float] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    about: About | None = None

    def __getitem__(self, name: str) -> Any:
        return self.ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def text(self, *, outcome: Mapping[Any, str] | None = None, numbers: str = "1,234.5") -> str:
        """Say the ranges in a sentence.

        It is about the row that `Counterfactual.text` shows, which lies in what is said. Ends are
        rounded inwards, so that all of it holds.
        """
        return self.sentence(Wording(outcome=outcome or {}, numbers=numbers))

    def sentence(self, wording: Wording) -> str:
        """Say the ranges, worded like an answer."""
        if not self.ranges:
            return f"It stays {wording.called(self.prediction)} as it is."
        parts = [
            f"{shown_text(self.features[name].spoken)} {self._range(name, wording)}"
            for name in self.ranges
        ]
        said = f"It stays {wording.called(self.prediction)} with {listed(parts)}."
        if not self.held:
            return said
        names = listed([shown_text(self.features[name].spoken) for name in self.held])
        return (
            f"{said} Other values of {names} were not looked at: constraints are about "
            f"{'it' if len(self.held) == 1 else 'them'} that leave no range."
        )

    def _range(self, name: str, wording: Wording) -> str:
        """Say the values of one feature."""
        found = self.told.get(name, self.ranges[name])
        return value_range(self.features[name], found, wording, self.shown.get(name))

    def why_not_of(self, answer: Any) -> str:
        """Say why these are not the ranges of an answer; empty where they are.

        A limit on how many features change holds in all of them: no other feature changes.
        """
        about = self.about
        is_same = (
            about is not None
            and self.features.names == answer.features.names
            and self.prediction == answer.prediction
            and np.array_equal(about.values, answer.values)
            and np.array_equal(about.original_values, answer.original_values)
        )
        if about is None or not is_same:
            return "these are the ranges of another answer"
        kept = set(map(str, about.constraints))
        asked = (item for item in answer.constraints or () if not isinstance(item, AtMost))
        left = [told(item) for item in asked if str(item) not in kept]
        return f"these are ranges of another explainer, without {listed(left)}" if left else ""

    def to_dict(self) -> dict[str, Any]:
        """Return two ends (None for an open one), or a list of levels, that JSON can hold.

        Whole numbers have ends, and a step where it is not 1. Levels have their order.
        """
        out: dict[str, Any] = {}
        for name, found in self.ranges.items():
            feature = self.features[name]
            if isinstance(found, tuple) or _has_no_gaps(found, feature):
                ends = found if isinstance(found, tuple) else (min(found), max(found))
                out[name] = {"lower": _plain(ends[0]), "upper": _plain(ends[1])}
                if feature.kind is Kind.WHOLE and feature.grid not in (None, 1.0):
                    out[name]["step"] = _plain(feature.grid)
            else:
                levels = sorted(found, key=None if feature.is_number else feature.code)
                out[name] = {"values": [_plain(value) for value in levels]}
        return out

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the ranges in a notebook."""
        rows = [
            (shown_text(self.features[name].spoken), self._range(name, PLAIN))
            for name in self.ranges
        ]
        listing = Listing("Every combination will do", ("feature", "values"), rows)
        return question_card("Ranges", [self.text()], [listing])


def _has_no_gaps(found: Collection[Any], feature: Feature) -> bool:
    """Whether a set holds every whole number between its ends."""
    if feature.kind is not Kind.WHOLE:
        return False
    return bool((max(found) - min(found)) / (feature.grid or 1.0) + 1 == len(found))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and abs(value) == inf:
        return None
    return value if isinstance(value, str | int | float) else str(value)


def ranges_of(asked: Asks, given: Any, side: str = "both", units: Any = None) -> Ranges:
    """Find a box around an answer; see `Explainer.ranges`."""
    cf = given if isinstance(given, Counterfactual) else None
    if cf is None:
        raise InvalidInputError(
            f"counterfactual is {told(given)}; expected an answer of this explainer, with the "
            f"status optimal or feasible."
        )
    if not cf.status.has_answer:
        raise InvalidInputError(
            f"counterfactual is {cf.status}: there is no answer to widen; expected one with the "
            f"status optimal or feasible."
        )
    if side not in SIDES:
        raise InvalidInputError(f"side is {side!r}; expected one of: 'both', 'away'.")
    refuse_ranges(asked)
    _refuse_broken(asked, cf)
    with np.errstate(all="ignore"):
        own, read = _boxes(asked, cf, side, _checked_units(asked.features, units))
    ranges = _stated(asked, cf, cf.values, own)
    said = _stated(asked, cf, cf.shown.values, read)
    moved = np.flatnonzero(cf.values != cf.original_values)
    shown = {asked.features.columns[j].name: float(cf.shown.values[j]) for j in moved}
    about = About(cf.original_values, cf.values, asked.constraints)
    return Ranges(ranges, cf.prediction, asked.features, said, shown, _held(asked, cf), about)


def _held(asked: Asks, cf: Counterfactual) -> tuple[str, ...]:
    """Name the features that change and that constraints hold at the answer."""
    view = asked.prepared_for(cf.original_values)
    is_held, spans = held_columns(view.template), view.source.coordinates.spans
    moved = np.flatnonzero(cf.values != cf.original_values)
    return tuple(asked.features.columns[j].name for j in moved if is_held[spans[j]].any())


def _boxes(
    asked: Asks, cf: Counterfactual, side: str, units: Mapping[int, float]
) -> tuple[_Found, _Found]:
    """Find a box around the answer, and one around the row that is shown for it: one, if it can be.

    The box around the answer is widened to the shown row where that can be proved.
    """
    view = asked.prepared_for(cf.original_values)
    spot = _spot(asked, cf, cf.values)
    if spot is None:
        raise InvalidInputError(_not_an_answer(asked, cf))
    box, low, high = RangeBox.around(asked, cf, spot, side, units).closely()
    shown = view.inner(cf.shown.values)
    wider = np.minimum(low, shown), np.maximum(high, shown)
    is_lower, is_higher = wider[0] < low, wider[1] > high
    if not (is_lower | is_higher).any():
        return (both := (low, high, box.levels(low, high))), both
    wide = box.asking(np.maximum(box.reach, box.reach_of(*wider)))
    is_barred = (is_lower & ~box.down) | (is_higher & ~box.up)
    if not is_barred.any() and wide.is_proved(*wider):
        return (both := (*wider, wide.levels(*wider))), both
    own = low, high, box.levels(low, high)
    other = _spot(asked, cf, cf.shown.values)
    if other is None:  # the answer was found under other constraints, and so was what is shown
        return own, own
    there, bottom, top = RangeBox.around(asked, cf, other, side, units).closely()
    return own, (bottom, top, there.levels(bottom, top))


def _spot(asked: Asks, cf: Counterfactual, values: Floats) -> Spot | None:
    """Find the nearest prototype of a row that this explainer takes for an answer, too."""
    view = asked.prepared_for(cf.original_values)
    wished = wished_prototypes(view.model, cf.target, -1)
    found = view.rules.accepts(
        view.inner(values), view.inner(cf.original_values), wished, strict=False
    )
    prototype = None if found is None else view.rules.confirms(found, wished)
    return None if prototype is None else Spot(values, prototype)


def _stated(asked: Asks, cf: Counterfactual, values: Floats, box: _Found) -> dict[str, Any]:
    """State a box in the values of the features that change."""
    found: dict[str, Any] = {}
    low, high, codes = box
    view = asked.prepared_for(cf.original_values)
    spans, x, y = view.source.coordinates.spans, view.inner(cf.original_values), view.inner(values)
    for j in np.flatnonzero(cf.values != cf.original_values):
        feature, at = asked.features.columns[j], spans[j].start
        if feature.is_number:
            ends, ladder = (float(low[at]), float(high[at])), ladder_at(view.template, at, x, y)
            found[feature.name] = (
                _listed(feature, ladder.within(*ends))
                if ladder is not None and ladder.listed
                else _values(feature, float(values[j]), *ends)
            )
        else:
            found[feature.name] = frozenset(feature.levels[code] for code in codes[int(j)])
    return found


def refuse_ranges(asked: Asks) -> None:
    """Refuse an explainer around whose answers there is no box, whatever the row."""
    if asked.is_sure:
        raise NotSupportedError(
            "ranges keep labels and constraints, and know no confidence. Ask an explainer without "
            "one for the ranges: an answer with a confidence leaves it room."
        )
    if any(isinstance(item, Plausible) for item in asked.constraints):
        raise NotSupportedError(
            "ranges lie among planes, and Plausible states ellipsoids. Ask an explainer without it "
            "for the ranges, or about single values with explain."
        )
    if asked.model.is_local:
        raise NotSupportedError(
            "ranges are for shared metrics, where an answer lies among planes, and the metrics of "
            "this model differ from prototype to prototype. Ask for a margin instead, or about "
            "single values with explain."
        )
    if asked._source.coordinates.links:
        raise NotSupportedError(
            f"ranges are for columns that the model sees as they are, and it sees "
            f"{asked._source.scales[0]}; give the explainer columns that are transformed already."
        )


def _refuse_broken(asked: Asks, cf: Counterfactual) -> None:
    """Refuse the answer of another explainer that breaks what this one asks for."""
    if cf.features.names != asked.features.names:
        raise InvalidInputError(
            f"the answer is about other columns ({listed([*map(shown_text, cf.features.names)])}); "
            f"expected one of this explainer. Ask it with explain, and for ranges around that."
        )
    view = asked.prepared_for(cf.original_values)
    broken = view.broken_by(view.inner(cf.original_values), view.inner(cf.values))
    if broken:
        said = listed([told(item) for item in broken])
        raise InvalidInputError(
            f"the answer breaks {said} of this explainer; expected one that keeps its "
            f"constraints. Ask it with explain, and for ranges around that."
        )


def _not_an_answer(asked: Asks, cf: Counterfactual) -> str:
    """Say why a row that keeps the constraints is no answer of this explainer."""
    view = asked.prepared_for(cf.original_values)
    prototype = view.rules.verdict(view.inner(cf.values)[None, :]).prototype[0]
    label = plain(view.model.labels[int(prototype)])
    why = f"the model of this explainer says {shown_repr(label)} of the answer"
    if label in cf.target and asked.margin:
        why = f"the answer does not keep the margin of {asked.margin:g} of this explainer"
    return f"{why}; expected one of its own. Ask it with explain, and for ranges around that."


def _checked_units(features: Features, units: Any) -> dict[int, float]:
    if units is None:
        return {}
    if not isinstance(units, Mapping):
        raise InvalidInputError(
            f"units is {told(units)}; expected a mapping from feature to number, such as "
            f"{{'income': 100}}."
        )
    found = {}
    for key, value in units.items():
        number = finite_scalar(f"units[{key!r}]", value)
        if number <= 0:
            raise InvalidInputError(f"units[{key!r}] is {value!r}; expected a positive number.")
        found[features.number(key, "units")] = number
    return found


def _listed(feature: Feature, values: Sequence[float]) -> frozenset[Any]:
    """State listed values, in the type of their feature."""
    if feature.kind is Kind.DATE:
        return frozenset(map(date_of, values))
    return frozenset(map(int, values) if feature.kind is Kind.WHOLE else values)


def _values(feature: Feature, answer: float, low: float, high: float) -> Any:
    """State a range in the values of its feature: listed ones, or two ends.

    Values of a grid are counted from the answer, which lies on it.
    """
    grid = feature.grid
    if feature.kind in (Kind.WHOLE, Kind.DATE) and grid is not None:
        step, middle = Fraction(int(grid)), Fraction(answer)
        if low != -inf:
            low = float(middle - floor((middle - Fraction(low)) / step) * step)
        if high != inf:
            high = float(middle + floor((Fraction(high) - middle) / step) * step)
        if feature.kind is Kind.DATE:
            ends = (end if abs(end) == inf else date_of(end) for end in (low, high))
            return tuple(ends)
        if high - low <= _MOST_LISTED * grid:
            count = int((high - low) / grid)
            return frozenset(int(low) + k * int(grid) for k in range(count + 1))
    return low, high
