"""All figures of one run, as plain values."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import counterlvq as clvq
from counterlvq.errors import NotSupportedError
from counterlvq_paper.houses import HouseAnswer, houses_of
from counterlvq_paper.journal import Journal, Record
from counterlvq_paper.peers import PeerLine, peer_lines, peer_verdicts
from counterlvq_paper.protocol import DATA_SETS, MODELS, SEED, Settings
from counterlvq_paper.runner import house_name, plan
from counterlvq_paper.tables import Line, collect, lines_of
from counterlvq_paper.verdicts import Verdict, verdicts

__all__ = ["Results", "duration", "plain_of", "results_of", "results_of_plain", "versions"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "highspy", "clarabel", "cma")
_PICTURES = ("matplotlib",)  # needed too, but no figure depends on it


@dataclass(frozen=True)
class Results:
    """One run, and what it ran on."""

    settings: Settings
    seed: int
    versions: dict[str, str]
    machine: dict[str, Any]
    work: float  # seconds of the processor, in fits and answers
    waited: float  # seconds on the clock, summed over the blocks
    accuracy: dict[str, float]  # mean over the folds, by data set and model
    lines: Sequence[Line]
    houses: Sequence[HouseAnswer]
    peers: Sequence[PeerLine]
    verdicts: Sequence[Verdict]

    @property
    def holds(self) -> bool:
        """Whether everything that is expected holds."""
        return all(verdict.holds for verdict in self.verdicts)


def versions() -> dict[str, str]:
    """Name what the figures depend on."""
    found = {"python": platform.python_version(), "counterlvq": clvq.__version__}
    for name in (*_PACKAGES, *_PICTURES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            raise NotSupportedError(
                f"the paper's tables need {name}, which is not installed; install it with "
                f"pip install {name}."
            ) from None
    return {name: number for name, number in found.items() if name not in _PICTURES}


def results_of(journal: Journal, settings: Settings, stamp: dict[str, str], jobs: int) -> Results:
    """Work out everything from the journal."""
    collected = collect(journal, settings)
    peers = peer_lines(journal, settings, collected)
    houses = [a for model in MODELS for a in houses_of(journal.read(house_name(model)))]
    records = [journal.record(block) for block in plan(settings)]
    fits = {
        f"{data} {model}": [journal.fitted(data, model, fold) for fold in settings.folds]
        for data in DATA_SETS
        for model in MODELS
    }
    machine = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "jobs": jobs,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }
    return Results(
        settings=settings,
        seed=SEED,
        versions=stamp,
        machine=machine,
        work=sum(fitted.seconds for some in fits.values() for fitted in some)
        + sum(_worked(record) for record in records),
        waited=sum(record.took for record in records),
        accuracy={
            name: float(np.mean([fitted.accuracy for fitted in some]))
            for name, some in fits.items()
        },
        lines=lines_of(collected),
        houses=houses,
        peers=peers,
        verdicts=[*verdicts(collected), *peer_verdicts(peers)],
    )


def _worked(record: Record) -> float:
    """Add up the time of the processor; rows that were asked alone as well count twice."""
    alone = [seconds for seconds in record.alone if seconds is not None]
    return sum(record.seconds) + (sum(alone) if alone != record.seconds else 0.0)


def plain_of(results: Results) -> dict[str, Any]:
    """Put the run as JSON can hold it."""
    return asdict(results)


def results_of_plain(plain: dict[str, Any]) -> Results:
    """Read back what `plain_of` gave."""
    settings = {**plain["settings"], "folds": tuple(plain["settings"]["folds"])}
    return Results(
        **{
            **plain,
            "settings": Settings(**settings),
            "lines": [Line(**line) for line in plain["lines"]],
            "houses": houses_of(plain["houses"]),
            "peers": [PeerLine(**line) for line in plain["peers"]],
            "verdicts": [Verdict(**verdict) for verdict in plain["verdicts"]],
        }
    )


def duration(seconds: float) -> str:
    """Write a time with three digits and the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
