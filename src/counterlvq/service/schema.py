"""What requests and answers look like; the OpenAPI text is made of this."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

__all__ = [
    "Answer",
    "Answers",
    "Confidence",
    "Described",
    "ExplainRequest",
    "Health",
    "LineVerdict",
    "ProblemDetails",
    "Verdicts",
    "VerifyRequest",
]

Label = str | bool | int | float | None
Cell = str | bool | int | float | None
End = Annotated[float, Field(allow_inf_nan=False)] | None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Confidence(_Strict):
    """How sure the model has to be of an answer: either a probability, or noise it withstands."""

    probability: float | None = Field(None, gt=0, lt=1)
    noise: float | None = Field(None, gt=0, allow_inf_nan=False)
    norm: Literal["l1", "l2", "linf"] = "l2"

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.probability is None) == (self.noise is None):
            raise PydanticCustomError("one_of", "expected either probability or noise")
        return self


class ExplainRequest(_Strict):
    """Rows, and what is asked about them."""

    rows: list[dict[str, Cell]] = Field(
        min_length=1, description="A value for each feature; null for a missing one."
    )
    target: Label | Annotated[list[Label], Field(min_length=1, max_length=1_000)] = Field(
        None, description="A class, or several of which any will do; null for any other class."
    )
    cost: Literal["mad", "manhattan", "euclidean"] | None = Field(
        None, description="As the model file suggests by default, see GET /model."
    )
    constraints: list[Annotated[str, Field(max_length=10_000)]] = Field(
        default=[], max_length=1_000, description="Comparisons, such as 'cards <= 3'."
    )
    freeze: list[str] = Field(
        default=[], max_length=10_000, description="Features that stay as they are."
    )
    bounds: dict[str, tuple[End, End]] = Field(
        default={},
        max_length=10_000,
        description="Ranges of features, lower and upper end; null for an open end.",
    )
    switches: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default={},
        max_length=10_000,
        description="What another level of a feature costs; 1 by default.",
    )
    anywhere: bool = Field(False, description="Let numbers leave the usual ranges of training.")
    method: Literal["auto", "ccp", "global"] = "auto"
    time_limit: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Seconds for each row."
    )
    confidence: Confidence | None = None
    bad_rows: Literal["raise", "report"] = Field(
        "raise", description="Refuse the request, or give unreadable rows the status 'invalid'."
    )
    text: bool = Field(False, description="Add sentences, with numbers that can be typed in.")
    ranges: bool = Field(False, description="Add how far each changed value may go on.")
    alternatives: int | None = Field(
        None, ge=1, le=20, description="Add up to so many ways that differ, the answer first."
    )
    reasons: bool = Field(False, description="Add the features that settle the decision.")
    certificate: bool = Field(
        False, description="Add the proof as a certificate file, which holds the model."
    )


class Answer(_Open):
    """One answer, as `Counterfactual.to_dict` gives it, and what else was asked for."""

    status: Literal["optimal", "feasible", "infeasible", "unknown", "invalid"]
    prediction: Label
    original_prediction: Label
    target: list[Label]
    cost: float | None
    cost_scales: list[str]
    lower_bound: float | None
    gap: float | None
    resolution: float | None
    confidence: str
    prototype: int
    original: dict[str, Cell]
    x: dict[str, Cell] | None
    missing: list[str]
    changes: list[dict[str, Any]]
    conflict: list[str]
    conflict_is_irreducible: bool
    conflict_has_confidence: bool
    conflict_ranges: list[str]
    conflict_steps: list[str]
    has_target: bool
    broken: list[str]
    within_rules: dict[str, Any] | None
    reason: str
    found_by: str
    response: dict[str, Any] | None
    predict_proba_favours: dict[str, Any] | None
    shown: dict[str, Any] | None = Field(description="With `text`: what the sentence shows.")


class Answers(_Strict):
    """Answers in the order of the rows."""

    answers: list[Answer]


class _FeatureTold(_Open):
    name: str
    label: str
    kind: Literal["real", "whole", "categorical", "boolean", "date"]
    unit: str
    change: str


class Described(_Strict):
    """What the model takes and says."""

    classes: list[Label]
    prototypes: int
    metric: Literal["shared", "local"]
    cost: Literal["mad", "manhattan"]
    features: list[_FeatureTold]


class VerifyRequest(_Strict):
    """A certificate file, and the model's where it is kept apart."""

    certificate: str
    model: str | None = None


class LineVerdict(_Strict):
    """What was found about one line."""

    line: int
    verified: bool
    cost: float | None
    lower_bound: float | None
    reason: str


class Verdicts(_Strict):
    """Whether all lines are verified, and what was found about each."""

    verified: bool
    lines: list[LineVerdict]


class Health(_Strict):
    """That the service runs."""

    status: Literal["ok"]
    version: str


class ProblemDetails(_Open):
    """What is wrong (RFC 9457), and in which field of the request."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
