"""What the estimators are asked for, checked when training begins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_non_negative

from counterlvq.errors import InvalidInputError
from counterlvq.lvq.starts import Samples
from counterlvq.numeric.arrays import Floats, finite_matrix, plain

__all__ = [
    "at_least_one",
    "given_prototypes",
    "non_negative",
    "one_of",
    "positive",
    "prototype_counts",
    "rank",
    "refuse_too_few_classes",
    "refuse_too_few_samples",
    "weights",
]


def at_least_one(name: str, value: Any) -> int:
    """Return a whole number from 1 on, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidInputError(f"{name} is {value!r}; expected a whole number, at least 1.")
    return int(value)


def positive(name: str, value: Any, otherwise: str) -> float:
    """Return a finite number above 0, or say what is wrong with it."""
    if not _is_finite(value) or value <= 0:
        raise InvalidInputError(f"{name} is {value!r}; expected a number above 0, or {otherwise}.")
    return float(value)


def non_negative(name: str, value: Any) -> float:
    """Return a finite number from 0 on, or say what is wrong with it."""
    if not _is_finite(value) or value < 0:
        raise InvalidInputError(f"{name} is {value!r}; expected a number, 0 or above.")
    return float(value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words, or list them."""
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(repr(word) for word in allowed)
        raise InvalidInputError(f"{name} is {value!r}; expected {words}.")
    return value


def rank(n_components: Any, width: int) -> int:
    """Return the number of rows of a metric factor; None asks for one per feature."""
    if n_components is None:
        return width
    count = at_least_one("n_components", n_components)
    if count > width:
        raise InvalidInputError(
            f"n_components is {count}; expected at most {width}, the number of features. Leave "
            f"it None for a metric of full rank."
        )
    return count


def weights(sample_weight: ArrayLike | None, n_samples: int) -> Floats:
    """Return one weight per sample, in scikit-learn's own words where it refuses."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    checked: Floats = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if checked.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {checked.ndim}D array. Expected "
            f"either a scalar value or a 1D array of length {n_samples}."
        )
    if checked.shape != (n_samples,):
        raise ValueError(f"sample_weight.shape == {checked.shape}, expected {(n_samples,)}!")
    check_non_negative(checked, "`sample_weight`")
    if not checked.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return checked


def prototype_counts(asked: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of prototypes of each class, (c,)."""
    if not isinstance(asked, Mapping):
        count = at_least_one("prototypes_per_class", asked)
        return np.full(len(classes), count, dtype=np.intp)
    labels = [plain(label) for label in classes]
    given = {plain(label): count for label, count in asked.items()}
    missing = [label for label in labels if label not in given]
    unknown = [label for label in given if label not in labels]
    if missing or unknown:
        problem = (
            f"has no entry for the class {missing[0]!r}"
            if missing
            else (f"has an entry for {unknown[0]!r}, which is not a class in y")
        )
        raise InvalidInputError(
            f"prototypes_per_class {problem}; expected one number for each of the classes {labels}."
        )
    counts = [at_least_one(f"prototypes_per_class[{c!r}]", given[c]) for c in labels]
    return np.array(counts, dtype=np.intp)


def refuse_too_few_classes(classes: NDArray[Any]) -> None:
    """Refuse labels that leave nothing to tell apart, in scikit-learn's own words."""
    if len(classes) < 2:
        raise InvalidInputError(
            f"The number of classes has to be greater than one; got 1 class. All samples of "
            f"positive weight carry the label {plain(classes[0])!r}."
        )


def refuse_too_few_samples(
    samples: Samples, counts: NDArray[np.intp], classes: NDArray[Any]
) -> None:
    """Refuse more prototypes than samples; a sample of weight 2 counts as two."""
    distinct = np.bincount(samples.y, minlength=len(classes))
    total = np.bincount(samples.y, weights=samples.weight, minlength=len(classes))
    for label, have, want in zip(classes, np.maximum(distinct, total), counts, strict=True):
        if have < want:
            word = "sample" if have == 1 else "samples"
            raise InvalidInputError(
                f"class {plain(label)!r} has {have:g} {word}; expected at least {want}, one per "
                f"prototype. Lower prototypes_per_class, or pass a mapping from label to number."
            )


def given_prototypes(init: Any, count: int, width: int) -> Floats | None:
    """Return the start the caller gave, (p, d), or None where k-means is to find one."""
    if isinstance(init, str):
        one_of("init", init, ("k-means",))
        return None
    start = finite_matrix("init", init, width)
    if len(start) != count:
        rows = f"{len(start)} row{'s' * (len(start) != 1)}"
        raise InvalidInputError(
            f"init has {rows}; expected {count}, one per prototype, class by class in the order of "
            f"classes_."
        )
    return start


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
