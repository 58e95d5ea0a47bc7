"""Gaussians of scikit-learn: the largest log density with its prior wins.

Minus twice the log density is ``|F_k (x - mean_k)|^2`` plus a constant, with ``F_k' F_k`` the
precision: a metric for each class or component, and the log determinant and the prior as an
offset. With one covariance for all of them the metric is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.adapters.arithmetic import Arithmetic, projected_arithmetic, unit_of
from counterlvq.adapters.attributes import feature_names, fitted_array, fitted_attribute
from counterlvq.errors import NotSupportedError
from counterlvq.model import PrototypeModel
from counterlvq.numeric.arrays import Floats, finite_matrix
from counterlvq.numeric.lazy import imported_later
from counterlvq.numeric.tolerances import EPSILON
from counterlvq.types import Meaning, Response, Scores

special = imported_later("scipy.special")

__all__ = [
    "KINDS",
    "PACKAGE",
    "GaussianScores",
    "arithmetic_of_gaussians",
    "gaussian_scores",
    "model_from_gaussians",
]

PACKAGE = "sklearn"
# Roundings of a logarithm or a digamma function, and of adding it to others.
_ROUNDINGS_OF_LOGS = 64
_PROBABILITY = Response("probability", 1, threshold=0.5, slope=0.5, is_probability=True)


def model_from_gaussians(fitted: Any, kind: str) -> PrototypeModel:
    """Read a fitted classifier or mixture; `kind` is the name of its class."""
    return gaussian_scores(fitted, kind).model(kind)


def arithmetic_of_gaussians(fitted: Any, kind: str, model: PrototypeModel) -> Arithmetic:
    """Describe how `predict` computes log densities."""
    return gaussian_scores(fitted, kind).arithmetic(model)


def gaussian_scores(fitted: Any, kind: str) -> GaussianScores:
    """Read means, factors of precisions, and constants."""
    return _READERS[kind](fitted, kind)


@final
@dataclass(frozen=True, eq=False)
class GaussianScores:
    """Scores ``|factor_k (x - mean_k)|^2 + constant_k``, the least of which wins."""

    means: Floats  # (p, d)
    factors: Sequence[Floats] | Floats  # p of (r_k, d); one (r, d) or (d,) for all
    constants: Floats  # (p,)
    sizes: Floats  # (p,) of what the constants were summed up from
    labels: NDArray[Any]  # (p,)
    names: Sequence[str] | None
    part: str = "class"
    by_products: bool = False  # whether `predict` multiplies rows before it takes means off
    is_projected: bool = False  # whether it squares projections, and nothing but these
    unit: float = EPSILON  # of rounding: a fit to floats of 32 bits keeps numbers of that kind
    response: Response | None = None

    def shifted(self, by: Floats, response: Response | None) -> GaussianScores:
        """Add a number to the log odds of each label."""
        return replace(
            self,
            constants=self.constants - 2.0 * by,
            sizes=self.sizes + 2.0 * np.abs(by),
            response=response,
        )

    def relabelled(self, labels: NDArray[Any]) -> GaussianScores:
        """Give the classes other names."""
        return replace(self, labels=labels)

    def model(self, what: str) -> PrototypeModel:
        """State Gaussians as prototypes; `what` is the class of the estimator, for errors."""
        possible = np.isfinite(self.constants)
        if possible.sum() < 2:
            raise NotSupportedError(
                f"this {what} gives a weight to one {self.part} only; expected at least two, "
                f"or no decision can change."
            )
        factors = self.factors
        if isinstance(factors, list):
            factors = [factors[k] for k in np.flatnonzero(possible)]
        kept = self.constants[possible]
        model = PrototypeModel(
            finite_matrix("means_", self.means[possible]),
            self.labels[possible],
            factors,
            self.names,
            offsets=kept - kept.min(),
            meaning=Meaning(self.part, Scores.SHIFTED, odds=self._odds),
        )
        return model.responding(self.response, self.labels)

    @property
    def _odds(self) -> float | None:
        """Scores are minus twice log densities; a response of two classes says more."""
        return 0.5 if self.response is None else None

    def arithmetic(self, model: PrototypeModel) -> Arithmetic:
        """Describe how scores are computed."""
        possible = np.isfinite(self.constants)
        roundings = model.n_features + _ROUNDINGS_OF_LOGS
        offsets = roundings * self.unit * (self.sizes + np.abs(self.constants))[possible]
        offsets = offsets + offsets.max()
        if self.is_projected:
            return projected_arithmetic(model, self.unit, self.by_products, offsets)
        return Arithmetic(model, self.unit, self.by_products, offsets=offsets)


# --- classifiers ----------------------------------------------------------------------------------


def _quadratic(fitted: Any, kind: str) -> GaussianScores:
    means = fitted_array(fitted, "means_")
    rotations = [np.asarray(rotation) for rotation in fitted.rotations_]
    scalings = [np.asarray(scaling) for scaling in fitted.scalings_]
    if any((scaling <= 0).any() for scaling in scalings):
        raise NotSupportedError(
            f"this {kind} has a class that does not vary in some direction, so that its density "
            f"is none; expected reg_param above 0 there. Fit it again."
        )
    # Multiplied as `predict` does it, in the precision of `fit`.
    pairs = zip(rotations, scalings, strict=True)
    factors = [np.asarray((R * S**-0.5).T, dtype=np.float64) for R, S in pairs]
    each = [np.log(np.asarray(S, dtype=np.float64)) for S in scalings]
    logs = np.array([part.sum() for part in each])
    sizes = np.array([np.abs(part).sum() for part in each])
    priors = fitted_array(fitted, "priors_")
    scores = _classes(fitted, means, factors, logs, sizes, priors)
    return replace(scores, is_projected=True, unit=unit_of(means, priors, *rotations, *scalings))


def _naive(fitted: Any, kind: str) -> GaussianScores:
    means, given = fitted_array(fitted, "theta_"), fitted_array(fitted, "var_")
    variances = np.asarray(given, dtype=np.float64)
    if not (variances > 0).all():
        raise NotSupportedError(
            f"this {kind} has a variance of 0, so that its density is none; expected "
            f"var_smoothing above 0. Fit it again."
        )
    factors = [np.diag(1.0 / np.sqrt(row)) for row in variances]
    logs = np.log(2 * np.pi * variances)
    priors = fitted_array(fitted, "class_prior_")
    sizes = np.abs(logs).sum(axis=1)
    scores = _classes(fitted, means, factors, logs.sum(axis=1), sizes, priors)
    return replace(scores, unit=unit_of(means, given, priors))


def _classes(
    fitted: Any,
    means: NDArray[Any],
    factors: list[Floats],
    logs: Floats,
    sizes: Floats,
    priors: NDArray[Any],
) -> GaussianScores:
    labels = fitted_array(fitted, "classes_")
    with np.errstate(divide="ignore"):  # a class without a prior never wins
        chances = -2.0 * np.log(np.asarray(priors, dtype=np.float64))
    response = _PROBABILITY if len(labels) == 2 else None
    return GaussianScores(
        np.asarray(means, dtype=np.float64),
        factors,
        logs + chances,
        sizes + np.abs(chances),
        labels,
        feature_names(fitted),
        response=response,
    )


# --- mixtures -------------------------------------------------------------------------------------


def _mixture(fitted: Any, kind: str) -> GaussianScores:
    read = fitted_array(fitted, "means_"), fitted_array(fitted, "precisions_cholesky_")
    means, roots = (np.asarray(part, dtype=np.float64) for part in read)
    count, width = means.shape
    factors: list[Floats] | Floats
    if fitted.covariance_type == "full":
        factors = [root.T for root in roots]
        logs = np.array([np.log(np.diag(root)) for root in roots])
    elif fitted.covariance_type == "tied":
        factors, logs = roots.T.copy(), np.tile(np.log(np.diag(roots)), (count, 1))
    elif fitted.covariance_type == "diag":
        factors, logs = [np.diag(root) for root in roots], np.log(roots)
    else:
        factors = [root * np.eye(width) for root in roots]
        logs = np.tile(np.log(roots)[:, None], (1, width))
    weights, sizes = _LOG_WEIGHTS[kind](fitted, width)
    return GaussianScores(
        means,
        factors,
        -2.0 * (logs.sum(axis=1) + weights),
        2.0 * (np.abs(logs).sum(axis=1) + sizes) + 2.0 * width,
        np.arange(count),
        feature_names(fitted),
        part="component",
        by_products=True,
        is_projected=fitted.covariance_type in ("full", "tied"),
        unit=unit_of(*read),
    )


def _given_weights(fitted: Any, width: int) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore"):  # a component without a weight never wins
        logs = np.log(np.asarray(fitted_array(fitted, "weights_"), dtype=np.float64))
    return logs, np.abs(logs)


def _expected_weights(fitted: Any, width: int) -> tuple[Floats, Floats]:
    """Compute expected logs of weights and determinants of a variational posterior."""
    count = len(fitted_array(fitted, "means_"))
    # One number where all components share a covariance.
    freedom = np.broadcast_to(fitted_array(fitted, "degrees_of_freedom_"), (count,))
    spread = special.digamma(0.5 * (freedom - np.arange(width)[:, None]))
    terms = [-width * np.log(freedom), spread.sum(axis=0), -width / fitted.mean_precision_]
    shares = fitted_attribute(fitted, "weight_concentration_")
    if fitted.weight_concentration_prior_type == "dirichlet_process":
        a, b = (np.asarray(part, dtype=np.float64) for part in shares)
        left = np.cumsum(special.digamma(b) - special.digamma(a + b))[:-1]
        weights = special.digamma(a) - special.digamma(a + b) + np.concatenate([[0.0], left])
        size = (
            np.abs(special.digamma(a))
            + np.abs(special.digamma(b)).sum()
            + np.abs(special.digamma(a + b)).sum()
        )
    else:
        given = np.asarray(shares, dtype=np.float64)
        weights = special.digamma(given) - special.digamma(given.sum())
        size = np.abs(special.digamma(given)) + abs(float(special.digamma(given.sum())))
    sizes = size + np.abs(terms).sum(axis=0) + np.abs(spread).sum(axis=0)
    return np.asarray(weights + 0.5 * sum(terms)), np.asarray(sizes)


_LOG_WEIGHTS = {"GaussianMixture": _given_weights, "BayesianGaussianMixture": _expected_weights}
_READERS: Mapping[str, Callable[[Any, str], GaussianScores]] = {
    "QuadraticDiscriminantAnalysis": _quadratic,
    "GaussianNB": _naive,
    "GaussianMixture": _mixture,
    "BayesianGaussianMixture": _mixture,
}
KINDS = tuple(_READERS)
