"""`counterlvq completion`: the script that teaches a shell to complete."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from counterlvq.cli.conventions import COMPLETE, debug_option

__all__ = ["completion"]


@click.command(hidden=True, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@debug_option
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and files in SHELL.

    \b
      bash  counterlvq completion bash > ~/.counterlvq.bash
            echo 'source ~/.counterlvq.bash' >> ~/.bashrc
      zsh   counterlvq completion zsh > ~/.counterlvq.zsh
            echo 'source ~/.counterlvq.zsh' >> ~/.zshrc
      fish  counterlvq completion fish \\
                > ~/.config/fish/completions/counterlvq.fish
    """  # noqa: D301 - click reads the control character
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click does not know {shell}; update it.")
    script = kind(ctx.find_root().command, {}, "counterlvq", COMPLETE)
    click.echo(script.source_template % script.source_vars())
