"""`python -m counterlvq` is `counterlvq` at the shell."""

from counterlvq.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
