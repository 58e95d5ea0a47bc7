"""How much is measured: the full run and a quick one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Numbers of rows and repeats of one run."""

    rows: int  # for the engine
    repeats: int  # the fastest counts
    single: int  # rows asked one at a time
    warm: int  # rows for warm solvers
    paper: int  # rows for a program per prototype and row
    blackbox: int  # rows for searches without structure
    neighbours: int  # rows for 1-NN
    oracle: int  # 1-NN rows checked against every target prototype's full program
    largest: int  # rows at the end of the growth curve over n
    seconds: float  # per point of the other growth curves
    memory: int  # rows of the memory test
    cold: int  # fresh processes per cold-start figure
    compile_afresh: bool  # start one of them with nothing compiled yet


FULL = Sizes(
    rows=100_000,
    repeats=3,
    single=200,
    warm=400,
    paper=20,
    blackbox=10,
    neighbours=30,
    oracle=2,
    largest=1_000_000,
    seconds=0.3,
    memory=1_000_000,
    cold=3,
    compile_afresh=True,
)
QUICK = Sizes(
    rows=5_000,
    repeats=2,
    single=20,
    warm=50,
    paper=2,
    blackbox=1,
    neighbours=5,
    oracle=1,
    largest=10_000,
    seconds=0.02,
    memory=50_000,
    cold=1,
    compile_afresh=False,
)
