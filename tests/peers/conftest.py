"""These tests build environments of other libraries: only on request, by the name of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.on_request import is_asked_for


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if is_asked_for(Path(__file__).resolve().parent, config) else True
