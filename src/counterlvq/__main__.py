"""`python -m counterlvq` is `counterlvq` at the shell."""

from counterlvq.cli import main

__all__: list[str] = []

main()
