"""Check that a model was read rightly: ask it and the foreign one about the same rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterlvq.adapters.arithmetic import Arithmetic
from counterlvq.adapters.attributes import named_rows
from counterlvq.adapters.exclusive_calls import in_turn
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, key_of, plain
from counterlvq.tables.encoding import plain_rows

__all__ = ["compare", "refuse_disagreement"]

# Rows x prototypes looked at together.
_ENTRIES = 1 << 20


def compare(
    fitted: Any,
    name: str,
    model: PrototypeModel,
    probe: ArrayLike,
    predict: Callable[[Any, Any], Any],
    epsilon: float,
    arithmetic: Arithmetic | None = None,
) -> None:
    """Refuse `model` if `fitted` gives a probe row another label.

    `epsilon` is the unit of rounding that the foreign library computes with, and `arithmetic` how
    it does so, where that is known.
    """
    rows = plain_rows("probe", probe, model.features)
    try:
        with in_turn():
            told = np.asarray(predict(fitted, named_rows(fitted, probe)))
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInputError(
            f"{name} could not predict the probe rows ({type(error).__name__}: {reason}); leave "
            f"`probe` out, or export the model from an environment in which it works (see "
            f"`load_exported`)."
        ) from error
    if told.size != rows.shape[0]:
        raise InvalidInputError(
            f"{name} predicted {told.size} label(s) for {rows.shape[0]} probe row(s); expected "
            f"one for each."
        )
    refuse_disagreement(name, model, rows, told.reshape(-1), epsilon, arithmetic)


def refuse_disagreement(
    name: str,
    model: PrototypeModel,
    rows: Floats,
    told: NDArray[Any],
    epsilon: float,
    arithmetic: Arithmetic | None = None,
) -> None:
    """Refuse `model` if it does not say what it was `told`, ties by rounding aside."""
    # Not `predict`, which decides ties exactly: they are forgiven here, and there may be many.
    with np.errstate(all="ignore"):  # numbers may be too large to be multiplied
        said = model.labels[_nearest(model, rows)]
        pairs = zip(told.tolist(), said.tolist(), strict=True)
        differing = [i for i, (theirs, ours) in enumerate(pairs) if theirs != ours]
        places = {key_of(label): c for c, label in enumerate(model.classes.tolist())}
        wrong = [
            i
            for i in differing
            if not _is_tie(model, rows[i], places, told[i], epsilon, arithmetic)
        ]
    if wrong:
        i = wrong[0]
        raise NotSupportedError(
            f"{name} and the prototypes read from it disagree on {len(wrong)} of {len(rows)} probe "
            f"row(s), first on row {i}: it predicts {plain(told[i])!r}, its nearest prototype "
            f"says {plain(said[i])!r}. So its rule is not the one that its attributes describe. "
            f"If you know the rule, build a PrototypeModel yourself."
        )


def _nearest(model: PrototypeModel, rows: Floats) -> NDArray[np.intp]:
    size = max(1, _ENTRIES // model.n_prototypes)
    blocks = (rows[start : start + size] for start in range(0, len(rows), size))
    return np.concatenate([model.distances(block).argmin(axis=1) for block in blocks])


def _is_tie(
    model: PrototypeModel,
    x: Floats,
    places: dict[Hashable, int],
    label: Any,
    epsilon: float,
    arithmetic: Arithmetic | None,
) -> bool:
    """Whether rounding alone can decide between a prototype of that label and the nearest one."""
    if key_of(label) not in places:
        return False
    theirs = model.class_index == places[key_of(label)]
    distances = model.distances(x[None, :])[0]
    nearest = int(distances.argmin())
    rival = int(np.flatnonzero(theirs)[distances[theirs].argmin()])
    noise = _rounding(model, x, nearest, epsilon) + _rounding(model, x, rival, epsilon)
    if arithmetic is not None:
        # Scores may share a large number that no distance has, and are rounded with it.
        noise = max(noise, float(arithmetic.errors(x[None, :])[0, [nearest, rival]].sum()))
    return bool(distances[rival] - distances[nearest] <= noise)


def _rounding(model: PrototypeModel, x: Floats, k: int, epsilon: float) -> float:
    """How far a computed distance may be off, whether differences or products are summed."""
    omegas = model.omegas
    if omegas is None:
        terms = np.abs(x) + np.abs(model.prototypes[k])
    else:
        omega = omegas[k] if isinstance(omegas, tuple) else omegas
        sizes = np.abs(x) + np.abs(model.prototypes[k])
        terms = np.abs(omega) * sizes if omega.ndim == 1 else np.abs(omega) @ sizes
    return float(2 * (len(x) + len(terms) + 4) * epsilon * (terms @ terms))
