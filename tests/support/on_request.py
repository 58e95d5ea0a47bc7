"""Folders of tests that need environments of their own: run only if they are named."""

from __future__ import annotations

from pathlib import Path

import pytest


def is_asked_for(folder: Path, config: pytest.Config) -> bool:
    """Whether the folder, or something in it, stands on the command line."""
    start = config.invocation_params.dir
    asked = [(start / argument.split("::")[0]).resolve() for argument in config.args]
    return any(path.is_relative_to(folder) for path in asked)
