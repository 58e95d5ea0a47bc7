"""Why there is no answer: a small set of the user's constraints that cannot hold together.

QuickXplain (Junker 2004): divide the constraints, and look for what is needed of one half
given the other. A set is called irreducible only where an answer was found without each one of
its members; where that stays open it is a set that clashes, and no more is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import NamedTuple, final

__all__ = ["Conflict", "Reason", "Room", "conflict_of", "smallest_conflict"]

# Sets that are tried in the hope of a smaller conflict than the one at hand.
_MOST_TRIES = 40

_CONTRADICT = "the constraints contradict each other at this input, whatever the class"
_OUT_OF_REACH = "each cell of the target is shown to be out of reach"
_OPEN = "a set that clashes: whether fewer of these constraints do is not known"

# Of listed constraints, sorted: True if they leave room (a valid point is at hand), False if it is
# proved that they leave none, None if neither could be shown.
Room = Callable[[Sequence[int]], bool | None]
# Of listed constraints, sorted: whether it is proved that they clash.
Clash = Callable[[Sequence[int]], bool]


class Conflict(NamedTuple):
    """Constraints that clash, by position."""

    members: tuple[int, ...]
    is_irreducible: bool  # without any one of them there is room, each shown by a point


class Reason(NamedTuple):
    """Which constraints clash, by position, and in what sense."""

    clashing: tuple[int, ...]
    is_irreducible: bool
    words: str


def conflict_of(
    count: int,
    contradict: Clash,
    room: Room,
    out_of_time: Callable[[], bool],
    deeper: Iterable[Room] = (),
) -> Reason:
    """Find a small set of the `count` constraints that leaves no room for the target.

    `contradict` says whether listed constraints are proved to contradict each other at the
    input, whatever the class; `room` whether they leave room for the target. Each of `deeper` says
    the same and goes further: what stays open is asked of these, one after the other.
    """
    asked = _Remembered(room, out_of_time)
    everything = tuple(range(count))
    suspects = everything
    if count and not out_of_time() and contradict(everything):
        # A contradiction is a reason whatever the target is, and cheap to look for. Part of it may
        # be enough to keep the target out.
        suspects = smallest_conflict(
            everything, lambda kept: not out_of_time() and contradict(kept)
        )
    found = _smaller(asked, everything, _reduced(asked, suspects))
    for further in deeper:
        if found.is_irreducible or out_of_time():
            break
        asked = asked.going_on_with(further)
        found = _reduced(asked, found.members)
    alone = len(found.members) > 0 and not out_of_time() and contradict(found.members)
    words = _CONTRADICT if alone else _OUT_OF_REACH
    if not found.is_irreducible:
        words = f"{words}; {_OPEN}"
    return Reason(found.members, found.is_irreducible, words)


@final
@dataclass(frozen=True, eq=False)
class _Remembered:
    """Asks about each set once, and about none when the time is over."""

    room: Room
    out_of_time: Callable[[], bool]
    _known: dict[tuple[int, ...], bool | None] = field(init=False, default_factory=dict)

    def __call__(self, kept: Sequence[int]) -> bool | None:
        key = tuple(kept)
        if key not in self._known:
            if self.out_of_time():
                return None
            self._known[key] = self.room(key)
        return self._known[key]

    def going_on_with(self, room: Room) -> _Remembered:
        """Ask another one about what has stayed open."""
        out = _Remembered(room, self.out_of_time)
        out._known.update((kept, told) for kept, told in self._known.items() if told is not None)
        return out

    def clash(self, kept: Sequence[int]) -> bool:
        return self(kept) is False

    def leaves_room(self, kept: Sequence[int]) -> bool:
        """Whether there is room, by this or by a larger set that left some."""
        some = (set(other) for other, answer in self._known.items() if answer)
        return any(set(kept) <= other for other in some) or self(kept) is True


def _reduced(asked: _Remembered, suspects: tuple[int, ...]) -> Conflict:
    """Reduce a set that clashes, and see what can be said of the result."""
    found = smallest_conflict(suspects, asked.clash)
    shown = all(asked.leaves_room([k for k in found if k != out]) for out in found)
    return Conflict(found, shown)


def _smaller(asked: _Remembered, everything: tuple[int, ...], found: Conflict) -> Conflict:
    """Look for a conflict of fewer members elsewhere, if there are not too many sets to try."""
    tries = 0
    for size in range(1, len(found.members)):
        tries += comb(len(everything), size)
        if tries > _MOST_TRIES:
            break
        for kept in combinations(everything, size):
            if not asked.leaves_room(kept) and asked.clash(kept):
                return _reduced(asked, kept)
    return found


def smallest_conflict(suspects: Sequence[int], clash: Clash) -> tuple[int, ...]:
    """Find a subset that clashes, irreducible as far as `clash` can tell.

    Parameters
    ----------
    suspects : sequence of int
        Constraints that clash together, sorted.
    clash : callable
        Whether the listed constraints, sorted, are proved to leave no room.

    Examples
    --------
    >>> smallest_conflict(range(5), lambda kept: {1, 3} <= set(kept))
    (1, 3)
    """

    def explain(background: list[int], grown: bool, suspects: list[int]) -> list[int]:
        if grown and clash(sorted(background)):
            return []
        if len(suspects) == 1:
            return suspects
        half = len(suspects) // 2
        left, right = suspects[:half], suspects[half:]
        needed_right = explain(background + left, bool(left), right)
        needed_left = explain(background + needed_right, bool(needed_right), left)
        return needed_left + needed_right

    if not suspects or clash([]):
        return ()
    return tuple(sorted(explain([], False, list(suspects))))
