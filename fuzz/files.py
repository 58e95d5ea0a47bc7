"""The targets that read: what strangers wrote is read or refused, quickly and in little memory."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Sequence

from fuzz.outcomes import Failure, Outcome
from fuzz.sandbox import File, Told, read_apart

# Processor time that a file may take, and memory: so much, and as much more for each byte of it.
_SECONDS, _SECONDS_PER_BYTE = 3.0, 8e-6
_MEMORY, _TIMES = 320 << 20, 80
_LONGEST_SCRIPT = 6000
_SLOW = 1.0

Draw = Callable[[random.Random], File]


class Readers:
    """A target of `fuzz.running`: draws files and has them read apart, many in one process."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def run_many(self, seed: int, numbers: Sequence[int], only: str | None) -> Outcome:
        files = self.drawn(seed, numbers, only)
        return self.judged(numbers, files, read_apart(files))

    def drawn(self, seed: int, numbers: Sequence[int], only: str | None = None) -> list[File]:
        return [self._drawn(seed, number, only) for number in numbers]

    def judged(
        self, numbers: Sequence[int], files: Sequence[File], told: Sequence[Told]
    ) -> Outcome:
        out = Outcome()
        for number, file, one in zip(numbers, files, told, strict=True):
            _judge(number, file, one, out)
        return out

    def run_case(self, seed: int, number: int, only: str | None) -> Outcome:
        return self.run_many(seed, [number], only)

    def _drawn(self, seed: int, number: int, only: str | None) -> File:
        rng = random.Random(f"{seed} {number}")
        for _ in range(1000):
            file = self.draw(rng)
            if only is None or file.kind.startswith(only):
                return file
        raise ValueError(f"no file of the kind {only!r} is drawn.")


def _judge(number: int, file: File, told: Told, out: Outcome) -> None:
    kind = file.kind.partition("-")[0]
    out.counts["cases"] += 1
    out.counts[f"status {kind} {told.what}"] += 1
    out.counts["bytes"] += len(file.content)
    size = len(file.content)
    faults = []
    if told.what == "foreign":
        faults.append(("foreign error", told.words))
    if told.what == "died":
        faults.append(("the process died", told.words))
    if told.seconds > _SECONDS + _SECONDS_PER_BYTE * size:
        faults.append(("slow", f"{told.seconds:.1f} s for {size} bytes; {told.words}"))
    if told.memory > _MEMORY + _TIMES * size:
        faults.append(("memory", f"{told.memory >> 20} MiB for {size} bytes; {told.words}"))
    out.counts[f"took more than {_SLOW:g} s"] += told.seconds > _SLOW
    for fault, words in faults:
        out.failures.append(Failure(fault, file.kind, number, 0, words, _script(file)))


def _script(file: File) -> str:
    content = base64.b64encode(file.content).decode()
    if len(content) > _LONGEST_SCRIPT:
        return f"# {len(file.content)} bytes; run the case again to have them"
    return (
        f"import base64\nfrom fuzz.readers import READERS\n"
        f"content = base64.b64decode({content!r})\n"
        f"READERS[{file.reader!r}].use(content)"
    )
