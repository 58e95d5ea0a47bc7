"""`counterlvq serve` and `counterlvq page`: a model for web developers, and for everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

import counterlvq as clvq
from counterlvq.cli.conventions import NO_ANSWER, debug_option
from counterlvq.cli.csv_cells import with_typed_cells
from counterlvq.cli.inputs import read_model, read_table, table_options
from counterlvq.cli.options import label_from
from counterlvq.cli.outputs import check_writable, is_terminal, write_whole
from counterlvq.cli.signals import ENDING
from counterlvq.cli.terminal import say
from counterlvq.presentation.progress import working
from counterlvq.presentation.values import plain_label
from counterlvq.service.hosts import LOOPBACK, is_loopback

__all__ = ["page", "run", "serve"]

_TITLE = "What would have to change?"
_FEW = 50


@click.command(short_help="Answer over HTTP, with a page to touch.")
@click.argument("model")
@click.option("--rows", metavar="TABLE", help="Rows that the page offers to start from.")
@click.option("--target", metavar="LABEL", help="What the page asks for first.")
@click.option(
    "--suggest", multiple=True, metavar="TEXT", help="Rule that the page offers; repeatable."
)
@click.option("--title", default=_TITLE, metavar="TEXT", help="Of the page.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--token",
    envvar="COUNTERLVQ_TOKEN",
    metavar="TEXT",
    help="That requests have to bring; or set COUNTERLVQ_TOKEN.",
)
@click.option(
    "--allow-origin", multiple=True, metavar="URL", help="Let pages from there ask; repeatable."
)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, metavar="N",
              help="Processes for long searches.")  # fmt: skip
@click.option("--max-waiting", type=click.IntRange(1), default=8, show_default=True, metavar="N",
              help="Long searches that may wait.")  # fmt: skip
@click.option("--max-rows", type=click.IntRange(1), default=1_000, show_default=True, metavar="N")
@click.option("--max-body", type=click.IntRange(1), default=1_000_000, show_default=True,
              metavar="BYTES")  # fmt: skip
@click.option("--max-seconds", type=click.FloatRange(0.1), default=30.0, show_default=True,
              metavar="SECONDS", help="For one request.")  # fmt: skip
@click.option("--log-values", is_flag=True, help="Log what is asked, too: values of people.")
@table_options
@debug_option
def serve(
    model: str,
    rows: str | None,
    target: str | None,
    suggest: tuple[str, ...],
    title: str,
    host: str,
    port: int,
    token: str | None,
    allow_origin: tuple[str, ...],
    workers: int,
    max_waiting: int,
    max_rows: int,
    max_body: int,
    max_seconds: float,
    log_values: bool,
) -> None:
    """Answer questions about the file MODEL over HTTP, until Ctrl-C or SIGTERM.

    POST /explain and /verify, GET /model, /health and /openapi.json; / is a page for people. Only
    this machine can ask, unless --host says otherwise, which needs a --token. Requests are logged
    to stderr, a line of JSON each, without their values unless --log-values asks for them.
    """
    if not is_loopback(host) and not token:
        raise click.UsageError(
            f"--host {host!r} can be reached from elsewhere, which needs a --token."
        )
    loaded = read_model(model)
    offered, names = _rows(loaded, rows) if rows is not None else ([], [])
    wish = None if target is None else plain_label(label_from(loaded, target))
    _check_rules(loaded, suggest)
    sizes = {
        "body": max_body,
        "rows": max_rows,
        "seconds": max_seconds,
        "searches": workers,
        "waiting": max_waiting,
    }
    run(loaded, offered, names, wish, title, host=host, port=port, token=token,
        origins=allow_origin, sizes=sizes, suggested=suggest, log_values=log_values)  # fmt: skip


def run(
    loaded: Any,
    rows: list[dict[str, Any]],
    names: list[str],
    target: Any,
    title: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    origins: tuple[str, ...] = (),
    sizes: Mapping[str, Any] | None = None,
    suggested: Sequence[str] = (),
    is_logged: bool = True,
    log_values: bool = False,
) -> None:
    """Serve a model until a signal comes."""
    _require_web()
    from counterlvq.page.offering import served_page
    from counterlvq.service.app import make_app
    from counterlvq.service.body_limits import Arrivals
    from counterlvq.service.limits import Limits
    from counterlvq.service.run import listening, run_service

    limits = Limits(**(sizes or {}))
    sockets, arrivals = listening(host, port), Arrivals()
    app = make_app(
        loaded,
        limits=limits,
        token=token,
        hosts=(*LOOPBACK, host.lower()) if is_loopback(host) else (),
        origins=origins,
        page=served_page(rows, title, names, target, suggested),
        arrivals=arrivals,
        log_values=log_values,
    )
    ENDING.stand_aside()
    run_service(app, sockets, limits, arrivals, _told(token), is_logged=is_logged)


def _check_rules(model: Any, rules: Sequence[str]) -> None:
    """Refuse rules that nobody could add."""
    from counterlvq.service.problems import Problem
    from counterlvq.service.questions import Question, explainer_for

    for rule in rules:
        try:
            explainer_for(model, model.features, Question(constraints=(rule,)))
        except Problem as problem:
            raise clvq.InvalidInputError(f"--suggest {rule!r}: {problem.detail}") from None


def _told(token: str | None) -> Any:
    more = " (with the token)" if token else ""

    def tell(address: str) -> None:
        say(f"counterlvq: open {address}{more}; end with Ctrl-C", aside=True)

    return tell


@click.command(short_help="Write the page with the answers of some rows, offline.")
@click.argument("model")
@click.argument("table")
@click.option("--target", metavar="LABEL", help="Wished-for class; any other by default.")
@click.option("--freeze", multiple=True, metavar="FEATURE", help="Keep it as it is; repeatable.")
@click.option("--constraint", multiple=True, metavar="TEXT", help='Such as "a <= 2 * b".')
@click.option("--title", default=_TITLE, metavar="TEXT", help="Of the page.")
@click.option("--output", "-o", default="-", metavar="FILE", help="Where to write.")
@table_options
@debug_option
def page(
    model: str,
    table: str,
    target: str | None,
    freeze: tuple[str, ...],
    constraint: tuple[str, ...],
    title: str,
    output: str,
) -> int:
    """Write one file in HTML about the rows of TABLE (CSV, JSON or Parquet), to open anywhere.

    It has the answers, with proofs that the browser checks, and sends nothing. It holds the model:
    the prototypes of a nearest neighbour are training rows. Exit code 3 says that some rows have
    no answer.
    """
    if is_terminal(output):
        raise click.UsageError("HTML is nothing to read on a terminal; name a file with --output.")
    check_writable(output)
    from counterlvq.page.offering import offline_page
    from counterlvq.service.answering import Answering
    from counterlvq.service.problems import Problem

    loaded = read_model(model)
    rows, names = _rows(loaded, table)
    answering = Answering(loaded)
    request = {
        "rows": rows,
        "target": None if target is None else plain_label(label_from(loaded, target)),
        "freeze": list(freeze),
        "constraints": list(constraint),
        "bad_rows": "report",
        "text": True,
        "certificate": True,
    }
    with working("answering"):
        try:
            told = answering.explain(request, seconds=60.0 * len(rows))["answers"]
        except Problem as problem:
            raise clvq.InvalidInputError(problem.detail) from None
    made = offline_page(answering.describe(), rows, told, title, names, request["target"])
    write_whole(output, made.encode())
    say("counterlvq: the page holds the model; the prototypes of a nearest neighbour are training "
        "rows.", aside=True)  # fmt: skip
    return 0 if all(clvq.Status(one["status"]).has_answer for one in told) else NO_ANSWER


def _rows(model: Any, table: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Read rows as JSON holds them, and what they are called."""
    frame = with_typed_cells(read_table(table), model.features)
    if len(frame) > _FEW:
        say(f"counterlvq: the page takes the first {_FEW} of {len(frame):,} rows.", aside=True)
        frame = frame.iloc[:_FEW]
    known = [name for name in frame.columns if name in model.features.names]
    rows = [
        {name: plain_label(value) for name, value in zip(known, row, strict=True)}
        for row in frame[known].itertuples(index=False)
    ]
    from counterlvq.report.row_names import names_in_frame

    names = names_in_frame(frame, model.features.names)
    return rows, names or [f"row {k}" for k in range(len(rows))]


def _require_web() -> None:
    try:
        import fastapi
        import uvicorn
    except ModuleNotFoundError as error:
        raise clvq.NotSupportedError(
            f"the service needs {error.name}, which is not installed; install it with "
            f"pip install fastapi uvicorn."
        ) from None
    _ = fastapi, uvicorn
