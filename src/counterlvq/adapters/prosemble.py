"""Models of prosemble, whose arrays are those of JAX, in single precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.arithmetic import Arithmetic, tangent_arithmetic
from counterlvq.adapters.attributes import fitted_array, fitted_attribute
from counterlvq.distance_bounds import score_limits
from counterlvq.errors import InvalidInputError, NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import SINGLE_EPSILON

__all__ = [
    "KINDS",
    "PACKAGE",
    "REFUSED",
    "arithmetic_of_prosemble",
    "model_from_prosemble",
    "predict_with_jax",
]

PACKAGE = "prosemble"

# GRLVQ and SRNG learn relevances, which their `predict` does not look at.
_PLAIN = (
    "GLVQ",
    "GLVQ1",
    "GLVQ21",
    "LVQ1",
    "LVQ21",
    "MedianLVQ",
    "RSLVQ",
    "RSLVQ_NG",
    "SLVQ",
    "CELVQ",
    "CELVQ_NG",
    "SNG",
    "GRLVQ",
    "SRNG",
)
_MATRIX = ("GMLVQ", "MRSLVQ", "MRSLVQ_NG", "SMNG", "MCELVQ_NG")
_LOCAL = ("LGMLVQ", "LMRSLVQ", "LMRSLVQ_NG", "SLNG", "LCELVQ_NG", "SCMNG")
_TANGENT = ("GTLVQ", "STNG", "TCELVQ_NG")
_KERNEL = ("DKGLVQ", "DKGLVQ_NG", "DKGRLVQ", "DKGRLVQ_NG")
_SPREAD = ("WGLVQ", "WGMLVQ", "WGRLVQ")

_EXPONENTIAL = (
    "compares exp(w'Aw) - 2 exp(x'Aw), which only resembles a squared distance where both are small"
)
_NETWORK = "compares inputs behind a network, where the distance is not quadratic in the input"
_CURVED = "measures distances along a curved space, which are not quadratic in the input"
_ONE_CLASS = "tells one class from everything else by a threshold of each prototype"
REFUSED = {
    "DKGMLVQ": _EXPONENTIAL,
    "DKGMLVQ_NG": _EXPONENTIAL,
    "CBC": "reasons over components and not over nearest prototypes",
    "ImageCBC": "reasons over components and not over nearest prototypes",
    **dict.fromkeys(
        (
            "LVQMLN",
            "PLVQ",
            "SiameseGLVQ",
            "SiameseGMLVQ",
            "SiameseGTLVQ",
            "ImageGLVQ",
            "ImageGMLVQ",
            "ImageGTLVQ",
        ),
        _NETWORK,
    ),
    **dict.fromkeys(
        (
            "RiemannianDKGLVQ",
            "RiemannianDKGMLVQ",
            "RiemannianDKGRLVQ",
            "RiemannianSLNG",
            "RiemannianSMNG",
            "RiemannianSRNG",
            "RiemannianSTNG",
            "RiemannianNeuralGas",
        ),
        _CURVED,
    ),
    **dict.fromkeys(
        ("OCGLVQ", "OCGRLVQ", "OCGMLVQ", "OCLGMLVQ", "OCGTLVQ", "OCRSLVQ", "SVQOCC"), _ONE_CLASS
    ),
}
KINDS = (*_PLAIN, *_MATRIX, *_LOCAL, *_TANGENT, *_KERNEL, *_SPREAD, *REFUSED)

_EUCLIDEAN = ("squared_euclidean_distance_matrix", "euclidean_distance_matrix")
# `predict` takes no variance to be smaller.
_LEAST_VARIANCE = 1e-6
# Roundings of a logarithm, an exponential and a softmax, in single precision.
_ROUNDINGS_OF_LOGS = 32
# Roundings on the way to any term of a distance besides those of sums of d and r terms: three terms
# and an offset that are added up, or a difference that is taken and squared. A root that is
# compared in place of its square counts for four more.
_OTHER_ROUNDINGS = 4
_WITH_ROOT = 8
_WITH_SOFTMAX = 16


def model_from_prosemble(fitted: Any, kind: str) -> PrototypeModel:
    """Read a model of prosemble; `kind` is the name of its class."""
    if kind in REFUSED:
        raise NotSupportedError(
            f"{kind} of prosemble {REFUSED[kind]}; only winner-takes-all models with a quadratic "
            f"distance can be read."
        )
    if kind in _PLAIN:
        _refuse_other_distances(fitted, kind)
    prototypes = _doubles(fitted, "prototypes_")
    labels = fitted_array(fitted, "prototype_labels_")
    omegas = _omegas(fitted, kind, prototypes, labels)
    offsets = _spreads(fitted) if kind in _SPREAD else None
    return PrototypeModel(prototypes, labels, omegas, offsets=offsets)


def predict_with_jax(fitted: Any, rows: Any) -> NDArray[Any]:
    """Ask the model for labels, as an array of NumPy."""
    return np.asarray(fitted.predict(np.asarray(rows)))


def arithmetic_of_prosemble(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how `predict` computes: rows are cast to single precision, distances follow in it.

    Distances are taken from products where no learned metric is in the way, and from differences
    of rows and prototypes otherwise.
    """
    by_products = kind in _PLAIN or kind in ("WGLVQ", "WGMLVQ")
    if kind in _TANGENT:
        return tangent_arithmetic(model, SINGLE_EPSILON, _doubles(fitted, "omegas_"), by_products)
    if kind in _KERNEL:
        return _KernelArithmetic(model, SINGLE_EPSILON, by_products, casts=True)
    offsets: Floats | float = 0.0
    if model.offsets is not None:
        offsets = (_ROUNDINGS_OF_LOGS + model.n_features) * SINGLE_EPSILON * model.offsets
    return Arithmetic(
        model,
        SINGLE_EPSILON,
        by_products,
        casts=True,
        offsets=offsets,
        other_roundings=_other_roundings(fitted, kind),
    )


def _other_roundings(fitted: Any, kind: str) -> int:
    if kind == "WGRLVQ":
        return _WITH_SOFTMAX
    distance = getattr(getattr(fitted, "distance_fn", None), "__name__", None)
    return _WITH_ROOT if kind in _PLAIN and distance != _EUCLIDEAN[0] else _OTHER_ROUNDINGS


@final
@dataclass(frozen=True, eq=False)
class _KernelArithmetic(Arithmetic):
    """The arithmetic of ``2 (1 - exp(-s / 2))``, which cannot tell large scores s apart.

    The exponential and the difference from 1 are rounded to a few units; a score that is off by
    t moves it by ``t exp(-s / 2)``.
    """

    def errors(
        self, rows: Floats, slip: Floats | float = 0.0, reach: Floats | None = None
    ) -> Floats:
        """Bound the rounding of each score, up to what all scores of a row share, (n, p)."""
        plain = super().errors(rows, slip, reach)
        farther = np.zeros(rows.shape) if reach is None else reach
        _, largest = score_limits(self.model, rows, farther)
        with np.errstate(over="ignore"):  # then nothing is known
            return np.asarray(plain + 8.0 * SINGLE_EPSILON * np.exp(largest / 2.0))


def _refuse_other_distances(fitted: Any, kind: str) -> None:
    function = getattr(fitted, "distance_fn", None)
    name = getattr(function, "__name__", "unknown")
    if name not in _EUCLIDEAN:
        raise NotSupportedError(
            f"{kind} of prosemble has the distance {name!r}; expected "
            f"{' or '.join(map(repr, _EUCLIDEAN))}. Only a distance that is quadratic in the "
            f"input, or orders prototypes like one, can be read."
        )


def _doubles(fitted: Any, name: str) -> Floats:
    return np.asarray(fitted_array(fitted, name), dtype=np.float64)


def _omegas(fitted: Any, kind: str, prototypes: Floats, labels: NDArray[Any]) -> Any:
    if kind in _MATRIX or kind == "WGMLVQ":
        # Stored as (d, r), to be multiplied from the right.
        return _doubles(fitted, "omega_").T
    if kind in _LOCAL:
        omegas = _local(fitted, kind)
        if kind == "SCMNG":  # one for each class
            omegas = omegas[labels]
        return [omega.T for omega in omegas]
    if kind in _TANGENT:
        # What is left of the difference outside the span of the columns.
        return [np.eye(omega.shape[0]) - omega @ omega.T for omega in _local(fitted, kind)]
    if kind == "WGRLVQ":
        return np.sqrt(_softmax(_doubles(fitted, "_raw_relevances_")))
    if kind in _KERNEL:
        widths = np.maximum(_doubles(fitted, "sigmas_"), float(fitted.sigma_min))
        root = np.ones(prototypes.shape[1])
        if kind.startswith("DKGRLVQ"):
            root = np.sqrt(_softmax(_doubles(fitted, "relevances_")))
        return [np.diag(root / width) for width in np.broadcast_to(widths, (len(prototypes),))]
    return None


def _local(fitted: Any, kind: str) -> Floats:
    omegas = _doubles(fitted, "omegas_")  # (p, d, r)
    if omegas.ndim != 3:
        raise InvalidInputError(
            f"`omegas_` of this {kind} has shape {omegas.shape}; expected (prototypes, features, "
            f"rank)."
        )
    return omegas


def _softmax(values: Floats) -> Floats:
    shares = np.exp(values - values.max())
    return np.asarray(shares / shares.sum())


def _spreads(fitted: Any) -> Floats:
    """Variances of prototypes, summed up: squared distances in directions of their own."""
    variances = np.asarray(fitted_attribute(fitted, "prototype_variances_"), dtype=np.float64)
    return np.asarray(np.maximum(variances, _LEAST_VARIANCE).sum(axis=1))
