"""The service on loopback: what it adds to `explain`, and how it bears many clients.

`python -m benchmarks.service`, with `--quick` for a moment of each; `--seconds` for each setting.
The service is `counterlvq serve` in a process of its own; clients are threads of this one, each
with a connection that is kept open. What the service adds is measured in turns with `explain` of
the same rows in this process: round trips, and time of the processor, in which what else the
machine does is not contained.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, perf_counter, process_time, sleep
from typing import Any

import numpy as np

import counterlvq as clvq
from benchmarks.figures import environment
from benchmarks.report import row, write_atomically
from counterlvq.cli.house_prices import ABOVE, house_page
from counterlvq.datasets import load_ames
from counterlvq.service.questions import Question, explainer_for

RESULTS = Path(__file__).parent / "results"
CLIENTS = (1, 8, 64)
BLOCK = 25  # requests, and explanations, in turns
GOAL = 1.0  # milliseconds that a service may add to a plain question
MOST_BODY = 1_000_000

Ask = dict[str, Any]


@dataclass(frozen=True)
class Added:
    """Milliseconds of a plain question over HTTP, and of `explain` beside it."""

    requests: int
    served_median: float
    served_quiet: float  # the tenth part that was disturbed least
    explain_median: float
    explain_quiet: float
    served_cpu: float  # of the process that serves
    explain_cpu: float

    @property
    def median(self) -> float:
        """What the service adds to the median."""
        return self.served_median - self.explain_median

    @property
    def quiet(self) -> float:
        """What it adds where little disturbs."""
        return self.served_quiet - self.explain_quiet

    @property
    def cpu(self) -> float:
        """What it adds to the time of the processor."""
        return self.served_cpu - self.explain_cpu


@dataclass(frozen=True)
class Load:
    """Answers under load, in milliseconds, and what came back."""

    kind: str
    clients: int
    seconds: float
    answered: int
    p50: float
    p99: float
    statuses: dict[str, int]
    memory_mb: float  # of the service and its workers, afterwards


@dataclass(frozen=True)
class Trouble:
    """What became of a service that was treated badly."""

    what: str
    found: str
    is_well: bool


class Served:
    """`counterlvq serve` in a process of its own."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [sys.executable, "-m", "counterlvq", "serve", str(model), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = 0
        self._listens = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        if not self._listens.wait(600):
            self.process.kill()
            raise TimeoutError("the service does not listen")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if not self.port and (found := re.search(r"open http://127\.0\.0\.1:(\d+)/", line)):
                self.port = int(found[1])
                self._listens.set()

    @property
    def children(self) -> list[int]:
        pid = self.process.pid
        listed = Path(f"/proc/{pid}/task/{pid}/children")
        return [int(child) for child in listed.read_text().split()] if listed.exists() else []

    @property
    def memory(self) -> float:
        """Megabytes of the service and its workers; NaN where the system does not tell."""
        total = 0
        for pid in (self.process.pid, *self.children):
            with suppress(OSError):
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return total * os.sysconf("SC_PAGE_SIZE") / 1e6 if total else float("nan")

    @property
    def cpu(self) -> float:
        """Seconds of the processor that the process that serves has taken."""
        told = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(model: clvq.PrototypeModel, *options: str) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.clvq"
        clvq.save(model, path)
        service = Served(path, *options)
        try:
            yield service
        finally:
            if service.process.poll() is None:
                service.process.kill()
            service.process.wait(60)


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self.link = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, body: bytes, length: int | None = None) -> None:
        head = (
            f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
        )
        self.link.sendall(head.encode() + body)

    def read(self) -> tuple[int, bytes]:
        """Status and body of an answer; 0 if the connection ends before it is whole."""
        came = b""
        while b"\r\n\r\n" not in came:
            more = self.link.recv(1 << 16)
            if not more:
                return 0, came
            came += more
        head, _, body = came.partition(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        size = int(found[1]) if found else 0
        while len(body) < size:
            more = self.link.recv(1 << 16)
            if not more:
                return 0, body
            body += more
        return int(head[9:12]), body

    def ask(self, body: bytes) -> tuple[int, bytes]:
        self.send(body)
        return self.read()

    def close(self) -> None:
        self.link.close()


def houses(kind: str = "real", *, local: bool = False) -> tuple[clvq.PrototypeModel, list[Ask]]:
    """Return the model of the demo and some houses: real or whole numbers, one metric or many."""
    model, _, _ = house_page()
    if kind == "whole":
        named: Any = [clvq.Feature(name, "whole", unit="sq ft") for name in model.features.names]
        model = clvq.PrototypeModel(model.prototypes, model.labels, model.omegas, named)
    if local:
        factor = np.asarray(model.omegas)
        sizes = np.linspace(0.8, 1.2, model.n_prototypes)
        model = clvq.PrototypeModel(
            model.prototypes, model.labels, [size * factor for size in sizes],
            list(model.features.names),
        )  # fmt: skip
    X = load_ames().X
    below = X[model.predict(X) != ABOVE][:200]
    rows = [dict(zip(model.features.names, values.tolist(), strict=True)) for values in below]
    return model, rows


def bodies(rows: Sequence[Ask], **more: Any) -> list[bytes]:
    return [json.dumps({"rows": [one], "target": ABOVE, **more}).encode() for one in rows]


def added(
    service: Served, model: clvq.PrototypeModel, rows: Sequence[Ask], count: int, seconds: float
) -> Added:
    """Measure round trips and `explain` in turns, block by block, until there are enough."""
    explainer = explainer_for(model, model.features, Question())
    asked = bodies(rows)
    for k in range(BLOCK):  # what is loaded once
        explainer.explain(rows[k % len(rows)], ABOVE)
    trips: list[float] = []
    own: list[float] = []
    cpu_served = cpu_own = 0.0
    end = monotonic() + seconds
    for start in range(0, count, BLOCK):
        if start and monotonic() > end:
            break
        block = [k % len(rows) for k in range(start, start + BLOCK)]
        client = Client(service.port)  # the one before may have been idle for too long
        client.ask(asked[0])
        before = service.cpu
        for k in block:
            begun = perf_counter()
            status, _ = client.ask(asked[k])
            trips.append(perf_counter() - begun)
            if status != 200:
                raise RuntimeError(f"a plain question came back with {status}")
        cpu_served += service.cpu - before
        here = process_time()
        for k in block:
            begun = perf_counter()
            explainer.explain(rows[k], ABOVE)
            own.append(perf_counter() - begun)
        cpu_own += process_time() - here
        client.close()
    quantiles = [1e3 * np.quantile(times, q) for times in (trips, own) for q in (0.5, 0.1)]
    each = [1e3 * total / len(trips) for total in (cpu_served, cpu_own)]
    return Added(len(trips), *map(float, quantiles), *each)


def under_load(
    service: Served, kind: str, asked: Sequence[bytes], clients: int, seconds: float
) -> Load:
    """Let so many clients ask one question after the other for some seconds."""
    times: list[list[float]] = [[] for _ in range(clients)]
    statuses: Counter[str] = Counter()
    end = monotonic() + seconds

    def work(number: int) -> None:
        client, k = Client(service.port), number
        while monotonic() < end:
            begun = perf_counter()
            status, _ = client.ask(asked[k % len(asked)])
            if status == 200:
                times[number].append(perf_counter() - begun)
            elif status == 503:
                sleep(0.05)  # told to come back, it does
            else:
                client.close()
                client = Client(service.port)
            statuses[str(status)] += 1
            k += 1
        client.close()

    begun = monotonic()
    in_threads(work, clients)
    took = monotonic() - begun
    found = [1e3 * one for each in times for one in each] or [float("nan")]
    print(f"{kind}, {clients} clients", file=sys.stderr, flush=True)
    return Load(
        kind, clients, took, sum(map(len, times)), float(np.quantile(found, 0.5)),
        float(np.quantile(found, 0.99)), dict(sorted(statuses.items())), service.memory,
    )  # fmt: skip


def in_threads(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def slow_beside_fast(
    service: Served, fast: Sequence[bytes], slow: bytes, seconds: float
) -> list[Load]:
    """Ask plain questions alone, and again while two long searches run."""
    alone = under_load(service, "plain, alone", fast, 1, seconds)
    stop = threading.Event()

    def search(_: int) -> None:
        while not stop.is_set():
            client = Client(service.port)
            client.ask(slow)
            client.close()

    searching = threading.Thread(target=in_threads, args=(search, 2))
    searching.start()
    sleep(0.5)
    beside = under_load(service, "plain, beside two long searches", fast, 1, seconds)
    stop.set()
    searching.join()
    return [alone, beside]


def vanishing(service: Served, slow: bytes, fast: bytes, count: int) -> Trouble:
    """Ask for long searches and leave, again and again; then ask something."""
    for _ in range(count):
        client = Client(service.port)
        client.send(slow)
        sleep(0.01)
        client.close()
    begun = monotonic()
    client = Client(service.port)
    quick = client.ask(fast)[0]
    while (status := client.ask(slow)[0]) == 503 and monotonic() - begun < 60:
        sleep(0.2)
    client.close()
    is_well = (quick, status) == (200, 200) and len(service.children) <= 2
    found = (
        f"a plain question: {quick}; a long one: {status} after {monotonic() - begun:.1f} s; "
        f"{len(service.children)} workers"
    )
    print("vanished", file=sys.stderr, flush=True)
    return Trouble(f"{count} clients that vanish in a search", found, is_well)


def too_large(service: Served, fast: bytes, count: int) -> Trouble:
    """Send bodies that are larger than allowed, and half bodies with a length that is a lie."""
    seen: Counter[int] = Counter()
    for k in range(count):
        client = Client(service.port)
        with suppress(OSError):  # it may close before all is sent
            if k % 2:
                client.send(b" " * (MOST_BODY + 1))
            else:
                client.send(b"{", length=10**12)
        try:
            seen[client.read()[0]] += 1
        except ConnectionError:
            seen[0] += 1
        client.close()
    client = Client(service.port)
    status = client.ask(fast)[0]
    client.close()
    is_well = status == 200 and set(seen) <= {413, 0}
    told = ", ".join(f"{n} times {code or 'closed'}" for code, n in sorted(seen.items()))
    return Trouble(f"{count} bodies that are too large", f"{told}; then {status}", is_well)


def ended(service: Served, asked: Sequence[bytes], clients: int, seconds: float) -> Trouble:
    """Send SIGTERM while clients ask; whoever has sent a question before is answered."""
    lost: list[int] = []
    answers: Counter[int] = Counter()
    told = threading.Event()

    def work(number: int) -> None:
        client, k = Client(service.port), number
        while True:
            before = not told.is_set()
            try:
                status, came = client.ask(asked[k % len(asked)])
            except ConnectionError:
                status, came = 0, b""
            if status == 0:
                # Nothing at all for a question that came too late is no broken promise.
                lost.extend([number] * bool(came or before))
                return
            answers[status] += 1
            k += 1

    threads = [threading.Thread(target=work, args=(k,)) for k in range(clients)]
    for thread in threads:
        thread.start()
    sleep(seconds)
    children, begun = service.children, monotonic()
    told.set()
    service.process.send_signal(signal.SIGTERM)
    code = service.process.wait(60)
    took = monotonic() - begun
    for thread in threads:
        thread.join()
    left = [pid for pid in children if Path(f"/proc/{pid}").exists()]
    found = (
        f"exit code {code} after {took:.1f} s; {sum(answers.values()):,} answers "
        f"({', '.join(f'{n:,} with {s}' for s, n in sorted(answers.items()))}); "
        f"{len(lost)} cut off; {len(left)} workers left"
    )
    return Trouble(f"SIGTERM while {clients} clients ask", found, code == 0 and not left + lost)


def measure(seconds: float, count: int, trouble: int) -> dict[str, Any]:
    """Measure everything; `seconds` for each setting."""
    loads: list[Load] = []
    beside: list[Load] = []
    troubles: list[Trouble] = []
    plain, rows = houses()
    slow = bodies(rows[:1], alternatives=20, text=True, ranges=True)[0]
    with served(plain) as service:
        more = added(service, plain, rows, count, 20 * seconds)
        print("added", file=sys.stderr, flush=True)
        loads += [
            under_load(service, "plain", bodies(rows), clients, seconds) for clients in CLIENTS
        ]
        beside = slow_beside_fast(service, bodies(rows), slow, seconds)
        troubles.append(vanishing(service, slow, bodies(rows)[0], trouble))
        troubles.append(too_large(service, bodies(rows)[0], trouble))
        troubles.append(ended(service, bodies(rows), 8, min(seconds, 2.0)))
    for kind, (model, some) in (
        ("mixed", houses("whole")),
        ("local", houses(local=True)),
    ):
        with served(model, "--max-waiting", "64") as service:
            asked = bodies(some[:50], time_limit=5.0)
            Client(service.port).ask(asked[0])  # a worker is started
            loads += [under_load(service, kind, asked, clients, seconds) for clients in CLIENTS]
            troubles.append(ended(service, asked, 8, min(seconds, 2.0)))
    return {
        "added": asdict(more),
        "loads": [asdict(one) for one in loads],
        "beside": [asdict(one) for one in beside],
        "troubles": [asdict(one) for one in troubles],
    }


def markdown(where: dict[str, Any], seconds: float, found: dict[str, Any]) -> str:
    """Say what was measured."""
    more = Added(**found["added"])
    lines = [
        "# The service\n",
        f"`python -m benchmarks.service`, {where['date']}. Python {where['python']} on "
        f"{where['platform']}, {where['cores']} cores, load average before "
        f"{where['load_before'][0]:.1f}. `counterlvq serve` on loopback, clients in one other "
        f"process; {seconds:g} seconds for each setting.\n",
        "## What it adds to `explain`\n",
        f"A plain question about one row ({more.requests:,} of them, in turns with `explain` of "
        f"the same rows elsewhere), milliseconds. Quiet: the tenth of them that was disturbed "
        f"least. Processor: time of the process that serves, and of `explain`. Asked for: under "
        f"{GOAL:g}.\n",
        row(["", "over HTTP", "`explain`", "added"]),
        row(["---", "---:", "---:", "---:"]),
        row(["median", *_three(more.served_median, more.explain_median, more.median)]),
        row(["quiet", *_three(more.served_quiet, more.explain_quiet, more.quiet)]),
        row(["processor", *_three(more.served_cpu, more.explain_cpu, more.cpu)]),
        "",
        "## Under load\n",
        "Plain: real numbers, one metric. Mixed: whole numbers. Local: a metric for each "
        "prototype; these two are answered by two worker processes. Each client asks again as "
        "soon as it is answered; one that is told to come back (503) does so after 50 ms.\n",
        *_loads(found["loads"]),
        "## A long search beside plain questions\n",
        *_loads(found["beside"]),
        "## Treated badly\n",
        row(["what", "found", "well"]),
        row(["---"] * 3),
        *(row([t["what"], t["found"], "yes" if t["is_well"] else "no"]) for t in found["troubles"]),
    ]
    return "\n".join(lines) + "\n"


def _three(*values: float) -> list[str]:
    return [f"{value:.2f}" for value in values]


def _loads(loads: Sequence[dict[str, Any]]) -> list[str]:
    out = [
        row(["questions", "clients", "a second", "p50, ms", "p99, ms", "came back", "memory, MB"]),
        row(["---", *["---:"] * 4, "---", "---:"]),
    ]
    for one in loads:
        came = ", ".join(f"{count:,} × {status}" for status, count in one["statuses"].items())
        rate = one["answered"] / one["seconds"]
        cells = [one["kind"], f"{one['clients']}", f"{rate:,.0f}", f"{one['p50']:.1f}"]
        out.append(row([*cells, f"{one['p99']:.1f}", came, f"{one['memory_mb']:,.0f}"]))
    return [*out, ""]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write `results/service.json` and `results/service.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a moment of each, written nowhere")
    parser.add_argument("--seconds", type=float, default=50.0, help="for each setting")
    chosen = parser.parse_args(arguments)
    where = environment()
    seconds = 0.5 if chosen.quick else chosen.seconds
    found = measure(seconds, 50 if chosen.quick else 3_000, 4 if chosen.quick else 50)
    told = markdown(where, seconds, found)
    print(told)
    if not chosen.quick:
        content = json.dumps({"environment": where, "seconds": seconds, **found}, indent=1) + "\n"
        for name, text in (("service.json", content), ("service.md", told)):
            write_atomically(
                RESULTS / name, lambda file, text=text: file.write_text(text, encoding="utf-8")
            )
    return 0 if all(one["is_well"] for one in found["troubles"]) else 1


if __name__ == "__main__":
    sys.exit(main())
