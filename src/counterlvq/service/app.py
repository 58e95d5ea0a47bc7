"""The service itself: its addresses, and who answers what."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

import counterlvq as clvq
from counterlvq.page.offering import TITLE, page_file, served_page
from counterlvq.service.answering import Answering, Effort, answered
from counterlvq.service.body_limits import Arrivals
from counterlvq.service.guard import LOG, Guard, Receive, Scope, Send
from counterlvq.service.limits import Limits
from counterlvq.service.model_description import Model, fitted_schema
from counterlvq.service.problems import MEDIA_TYPE, Problem
from counterlvq.service.requests import body_of, read_body, schemas_of
from counterlvq.service.schema import (
    Answers,
    Described,
    ExplainRequest,
    Health,
    ProblemDetails,
    Verdicts,
    VerifyRequest,
)
from counterlvq.service.workers import Workers

__all__ = ["make_app"]

Values = dict[str, Any]

_WORDS = {
    401: "No token, or another one",
    408: "The body did not arrive in time",
    413: "The body or the question is too large",
    415: "The body is no JSON",
    421: "The request names another host",
    422: "Something in the request is wrong; `field` says what",
    500: "Something failed that should not",
    503: "Too many searches; `Retry-After` says when to come back",
    504: "No answer within the limit of time",
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDetails, "description": words, "content": {MEDIA_TYPE: {}}}
    for status, words in _WORDS.items()
}
_SHARED: dict[int | str, dict[str, Any]] = {status: _PROBLEMS[status] for status in (401, 421)}


def make_app(
    model: Model,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    page: tuple[str, str] | None = None,
    arrivals: Arrivals | None = None,
    log_values: bool = False,
) -> Any:
    """Make the ASGI application of a model.

    Parameters
    ----------
    model : PrototypeModel or TableModel
    limits : Limits, optional
    token : str, optional
        That requests have to bring along.
    hosts : sequence of str
        Names by which the service may be called; any by default.
    origins : sequence of str
        Pages of other origins that may ask; none by default.
    page : pair of str, optional
        The page at ``/`` and its policy, of `served_page`; one without rows by default.
    arrivals : Arrivals, optional
        Told when the service ends, so that nobody waits for bodies that do not come.
    log_values : bool
        Log what is asked, too, with the values of its rows.
    """
    limits = limits or Limits()
    answering, workers = Answering(model), Workers.of(model, limits)
    desk = _Desk(answering, workers, limits, log_values)

    @contextlib.asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        await to_thread.run_sync(answering.warm_up)
        first = asyncio.create_task(workers.prepare())
        yield
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError, Problem):
            await first
        await workers.close()

    app = FastAPI(
        title="counterlvq",
        version=clvq.__version__,
        description="Smallest changes to an input that change a decision, each with a proof.",
        lifespan=living,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # to an address that whoever asks may have made up
    )
    _add_addresses(app, desk)
    _add_page(app, *(page or served_page((), TITLE)))
    _add_schemas(app, answering)
    app.add_exception_handler(Problem, _tell)
    app.add_exception_handler(HTTPException, _tell_http)
    guarded = Guard(_Shortcut(app, desk), limits, token, frozenset(hosts), arrivals or Arrivals())
    if not origins:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
    )


class _Shortcut:
    """Takes questions past the routing of FastAPI, which costs as much as the rest of the way."""

    def __init__(self, app: FastAPI, desk: _Desk) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question, or hand on whatever else is asked."""
        if scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", "/explain"):
            response = await self._desk.explained(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class _Desk:
    """Sends each request to whoever answers it."""

    def __init__(
        self, answering: Answering, workers: Workers, limits: Limits, log_values: bool
    ) -> None:
        self.answering, self.workers, self.limits = answering, workers, limits
        self._log_values = log_values
        self._threads = CapacityLimiter(4)
        self._quick = 0

    async def explained(self, request: Request) -> Response:
        """Read a question, and answer it."""
        body = await request.body()
        if self._log_values:
            _note(request, asked=body.decode(errors="replace"))
        return JSONResponse(await self.explain(request, read_body(ExplainRequest, body)))

    async def explain(self, request: Request, asked: Values) -> Values:
        """Answer here what is answered at once, and let workers search for the rest."""
        if len(asked["rows"]) > self.limits.rows:
            raise Problem(
                413,
                "too large",
                f"the request has {len(asked['rows']):,} rows; expected {self.limits.rows:,} at "
                f"most. Ask in several requests.",
                "rows",
            )
        effort = self.answering.effort(asked)
        if effort is not Effort.SEARCH:
            told = await self._at_once(request, asked, effort)
        else:
            told = _unwrapped(await _unless_gone(request, self.workers.ask("explain", asked)))
        ends = Counter(answer["status"] for answer in told["answers"])
        _note(request, rows=len(told["answers"]), statuses=dict(ends))
        return told

    async def _at_once(self, request: Request, asked: Values, effort: Effort) -> Values:
        if self._quick >= self.limits.quick:
            raise Problem(
                503, "busy", f"{self._quick} questions are being answered already.", retry_after=1
            )
        task = partial(answered, self.answering, "explain", asked, self.limits.seconds)
        if effort is Effort.PROMPT and self.answering.is_prepared(asked):
            # A thread would take longer to start than this takes.
            return _unwrapped(task())
        self._quick += 1
        try:
            # Whoever leaves while others are answered is not answered; a thread goes on to its end.
            return _unwrapped(
                await _unless_gone(request, to_thread.run_sync(task, limiter=self._threads))
            )
        finally:
            self._quick -= 1

    async def verify(self, request: Request, asked: Values) -> Values:
        """Let a worker check a certificate: a file of strangers may take any time."""
        return _unwrapped(await _unless_gone(request, self.workers.ask("verify", asked)))


def _note(request: Request, **words: Any) -> None:
    """Leave words for the line of the log that the request ends with."""
    request.scope.setdefault("state", {}).setdefault("told", {}).update(words)


def _unwrapped(told: Values) -> Values:
    if "failure" in told:
        LOG.error(json.dumps(told["failure"]))
    if "problem" in told:
        raise Problem.from_dict(told["problem"])
    answers: Values = told["told"]
    return answers


async def _unless_gone(request: Request, answer: Awaitable[Values]) -> Values:
    """Wait for an answer as long as there is somebody to hear it."""
    searching = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({searching, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not searching.done():
            raise Problem(499, "gone", "nobody waits for the answer any more.")
        return searching.result()
    finally:
        for task in (searching, leaving):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Problem):
            await searching


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _add_addresses(app: FastAPI, desk: _Desk) -> None:
    @app.post(
        "/explain",
        response_model=Answers,
        responses=_PROBLEMS,
        summary="Find the closest counterfactual of each row",
        operation_id="explain",
        openapi_extra=body_of(ExplainRequest),
    )
    async def explain(request: Request) -> Response:
        return await desk.explained(request)

    @app.get(
        "/model",
        response_model=Described,
        responses=_SHARED,
        summary="What the model takes and says",
        operation_id="model",
    )
    async def model() -> Response:
        return JSONResponse(desk.answering.describe())

    @app.post(
        "/verify",
        response_model=Verdicts,
        responses=_PROBLEMS,
        summary="Check the proofs of a certificate file",
        operation_id="verify",
        openapi_extra=body_of(VerifyRequest),
    )
    async def verify(request: Request) -> Response:
        asked = read_body(VerifyRequest, await request.body())
        return JSONResponse(await desk.verify(request, asked))

    @app.get(
        "/health",
        response_model=Health,
        summary="Whether the service runs",
        operation_id="health",
    )
    async def health() -> Response:
        return JSONResponse({"status": "ok", "version": clvq.__version__})


def _add_schemas(app: FastAPI, answering: Answering) -> None:
    """Put what addresses take into the OpenAPI text: bodies are read without FastAPI.

    Features and classes are those of the model, so that a client can be generated for it.
    """
    made = app.openapi

    def openapi() -> Values:
        told = made()
        schemas = schemas_of(ExplainRequest, VerifyRequest)
        asked = fitted_schema(schemas["ExplainRequest"], answering.describe())
        told["components"]["schemas"] |= schemas | {"ExplainRequest": asked}
        return told

    app.openapi = openapi  # type: ignore[method-assign]


def _add_page(app: FastAPI, page: str, policy: str) -> None:
    @app.get("/", include_in_schema=False)
    async def front() -> Response:
        headers = {"content-security-policy": policy}
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        found = page_file(name)
        if found is None:
            raise Problem(404, "not found", "there is no such file of the page.")
        return Response(found[0], media_type=found[1])


async def _tell(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    return JSONResponse(error.to_dict(), error.status, headers, MEDIA_TYPE)


async def _tell_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, str(error.detail).lower(), f"{error.detail}.")
    return JSONResponse(problem.to_dict(), error.status_code, error.headers, MEDIA_TYPE)
