"""`counterlvq demo`: the main job on real house prices."""

from __future__ import annotations

import click

from counterlvq.cli.conventions import debug_option
from counterlvq.cli.house_prices import ABOVE, RULES, house_page, tell
from counterlvq.cli.serving import run
from counterlvq.cli.terminal import say
from counterlvq.presentation.progress import working

__all__ = ["demo"]

_TITLE = "What would lift this house above $160,000?"


@click.command(short_help="Show the main job on real house prices.")
@click.option("--page", is_flag=True, help="As a page to touch, until Ctrl-C.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@debug_option
def demo(page: bool, port: int) -> None:
    """Show what would have to change for a house to sell for more, and why no less would do."""
    if page:
        with working("thinking"):
            model, rows, names = house_page()
        # Whoever tries the page out has no use for a log of what it asks.
        run(model, rows, names, ABOVE, _TITLE, port=port, suggested=RULES, is_logged=False)
        return
    lines = tell()
    while True:
        with working("thinking"):
            line = next(lines, None)
        if line is None:
            return
        say(line)
