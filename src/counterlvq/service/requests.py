"""Bodies of requests: read as JSON and checked against their schema, or refused with the field."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema

from counterlvq.service.problems import Problem

__all__ = ["body_of", "read_body", "schemas_of"]

_AT = "#/components/schemas/{model}"


def read_body(kind: type[BaseModel], body: bytes) -> dict[str, Any]:
    """Read a body; a `Problem` names the first field that does not fit, in words of the schema.

    Examples
    --------
    >>> from counterlvq.service.schema import VerifyRequest
    >>> read_body(VerifyRequest, b'{"certificate": ""}')
    {'certificate': '', 'model': None}
    """
    try:
        # Fields as they were read; those that are models themselves have fields, too.
        found = vars(kind.model_validate_json(body))
        return {
            name: value.model_dump() if isinstance(value, BaseModel) else value
            for name, value in found.items()
        }
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
    if errors[0]["type"] == "json_invalid":
        raise Problem(
            422, "invalid request", f"the body cannot be read. {errors[0]['msg']}."
        ) from None
    given = json.loads(body)
    where = _field(given, errors[0])
    # A value that may be of several kinds fails once for each.
    words = dict.fromkeys(one["msg"] for one in errors if _field(given, one) == where)
    detail = f"{where or 'the body'}: {'; or: '.join(words)}."
    raise Problem(422, "invalid request", detail, where)


def _field(given: Any, error: Any) -> str:
    """Say where in a body an error is: its place there, without the kinds that were tried."""
    where, at = "", given
    for part in error["loc"]:
        is_missing = error["type"] == "missing"
        if isinstance(at, dict) and (part in at or is_missing):
            where += f".{part}" if where else str(part)
            at = at.get(part)
        elif isinstance(at, list) and isinstance(part, int):
            where += f"[{part}]"
            at = at[part] if part < len(at) else None
    return where


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """Say what an address takes, for its OpenAPI text."""
    reference = {"$ref": _AT.format(model=kind.__name__)}
    content = {"application/json": {"schema": reference}}
    return {"requestBody": {"required": True, "content": content}}


def schemas_of(*kinds: type[BaseModel]) -> dict[str, Any]:
    """Return the schemas of bodies, by name."""
    asked: Any = [(kind, "validation") for kind in kinds]
    schemas: dict[str, Any] = models_json_schema(asked, ref_template=_AT)[1]["$defs"]
    return schemas
