"""An oracle for certificate files: whether what a line states is false, by points that refute it.

It reads the JSON by itself and shares no code with the package or its checker. A point with a
wished-for label that keeps the constraints and costs less than a bound shows the bound to be false;
for absolute costs under shared metrics a simplex method in rational numbers finds the least cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

# Costs of points that differ by less than this share are taken to be the same.
SAME = 1e-9


class World:
    """The model and the question of a file."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.model, self.question = header["model"], header["question"]
        self.columns = self.question["columns"]
        self.d = len(self.columns)
        self.W = np.array(self.model["prototypes"], dtype=float)
        self.labels = np.array(self.model["labels"])
        metric = self.model["metric"]
        self.kind = metric["kind"]
        if self.kind == "local":
            self.factors = [np.array(f, dtype=float) for f in metric["factors"]]
        else:
            F = np.eye(self.W.shape[1])
            if self.kind == "diagonal":
                F = np.diag(np.array(metric["factor"], dtype=float))
            elif self.kind == "shared":
                F = np.array(metric["factor"], dtype=float)
            self.factors = [F] * len(self.W)
        offsets = self.model["offsets"]
        self.offsets = np.zeros(len(self.W)) if offsets is None else np.array(offsets["values"])
        self.numbers = [j for j, c in enumerate(self.columns) if c["kind"] != "levels"]

    def image(self, y: np.ndarray) -> np.ndarray:
        told = self.model["map"]
        if told is None:
            return y
        z = np.array(told["offset"], dtype=float)
        for j, part in enumerate(told["parts"]):
            is_level = part["kind"] == "levels"
            for c, slope in part["weights"][int(y[j])] if is_level else part["weights"]:
                z[c] += slope if is_level else slope * (y[j] - part["base"])
        return z

    def scores(self, y: np.ndarray) -> np.ndarray:
        z = self.image(y)
        away = [F @ (z - w) for F, w in zip(self.factors, self.W, strict=True)]
        return np.array([float(a @ a) for a in away]) + self.offsets

    def lead(self, y: np.ndarray, target: list[int]) -> float:
        """By how much the nearest wished-for prototype is nearer, as a share of the distances."""
        scores = self.scores(y)
        if not np.isfinite(scores).all():
            return -np.inf  # beyond what floats can tell
        mask = np.isin(self.labels, target)
        own = scores[mask].min(initial=np.inf)
        other = scores[~mask].min(initial=np.inf)
        if np.isinf(other):
            return np.inf
        least = self.question["margin"]
        return float((other - own - least) / (abs(own) + abs(other) + 1e-300))

    def cost(self, y: np.ndarray, x: np.ndarray) -> float:
        told = self.question["cost"]
        total = 0.0
        for switch in told["switches"]:
            j = switch["column"]
            if x[j] != y[j]:
                total += switch["prices"][int(x[j])][int(y[j])]
        delta = (y - x)[self.numbers]
        total += float(np.array(told["weights"])[self.numbers] @ np.abs(delta))
        form = told["quadratic"]
        if form is not None:
            values = np.array(form["values"], dtype=float)
            if form["kind"] == "diagonal":
                total += float(values @ delta**2)
            elif form["kind"] == "matrix":
                total += float(delta @ values @ delta)
            else:
                total += float(((values @ delta) ** 2).sum())
        return total

    def holds(self, y: np.ndarray, x: np.ndarray, slack: float) -> bool:
        """Whether all constraints hold; `slack` is a share of the numbers that meet."""
        for j, column in enumerate(self.columns):
            for end, sign in ((column.get("lower"), -1), (column.get("upper"), 1)):
                if end is not None and sign * (y[j] - end) > slack * (abs(end) + abs(y[j])):
                    return False
            if column["kind"] in ("grid", "steps") and y[j] != x[j]:
                size = max(abs(y[j]), abs(x[j]), 1e-3)
                if abs(y[j] - self._tick(j, y, x)) > 1e-12 * size:
                    return False
        return all(self._holds(item, y, x, slack) for item in self.question["constraints"])

    def _tick(self, j: int, y: np.ndarray, x: np.ndarray) -> float:
        """The value of a grid that is nearest to a value of column j."""
        column = self.columns[j]
        is_own = not column.get("whole") or float(x[j]).is_integer()
        base = x[j] if column["kind"] == "steps" and is_own else 0.0
        step = column["step"] / column["parts"]
        return float(base + round((y[j] - base) / step) * column["step"] / column["parts"])

    def _is_in(self, item: dict[str, Any], y: np.ndarray, x: np.ndarray, slack: float) -> bool:
        """Whether a number has a value in one of some intervals."""
        value = y[item["column"]] - sum(a * x[j] for j, a in item["old"])
        give = slack * (abs(value) + np.abs(x).max())
        for part in item["parts"]:
            low = -np.inf if part["lower"] is None else part["lower"]
            high = np.inf if part["upper"] is None else part["upper"]
            above = value > low if part.get("above") else value >= low - give
            if above and (value < high if part.get("below") else value <= high + give):
                return True
        return False

    def _holds(self, item: dict[str, Any], y: np.ndarray, x: np.ndarray, slack: float) -> bool:
        if item["kind"] == "linear":
            parts = [a * y[j] for j, a in item["new"]] + [a * x[j] for j, a in item["old"]]
            size = sum(map(abs, parts)) + abs(item["value"])
            excess = sum(parts) - item["value"]
            if item["sense"] == "==":
                return abs(excess) <= max(slack, 1e-12) * size
            return excess <= slack * size
        if item["kind"] == "stays":
            return bool(y[item["column"]] == x[item["column"]])
        if item["kind"] == "levels":
            return int(y[item["column"]]) in item["allowed"]
        if item["kind"] == "values":
            return self._is_in(item, y, x, slack)
        if item["kind"] == "seen":
            j, give = item["column"], slack * np.abs([*x, *y]).max()
            low = -np.inf if item["lower"] is None else min(item["lower"], x[j])
            high = np.inf if item["upper"] is None else max(item["upper"], x[j])
            return bool(low - give <= y[j] <= high + give)
        if item["kind"] == "implies":
            # Next to a threshold a point is none that shows anything.
            near = {"levels": [0.0], "values": [1e-12, -1e-12]}[item["when"]["kind"]]
            held = [self._holds(item["when"], y, x, each) for each in near]
            if not (all(held) if slack > 1e-13 else any(held)):
                return True
            return all(self._holds(each, y, x, slack) for each in item["then"])
        if item["kind"] == "at most":
            return sum(y[j] != x[j] for j in item["columns"]) <= item["count"]
        form, square_of = item, item["square"]
        away = y[form["columns"]] - np.array(form["center"])
        values = np.array(square_of["values"], dtype=float)
        if square_of["kind"] == "diagonal":
            square = values @ away**2
        elif square_of["kind"] == "matrix":
            square = away @ values @ away
        else:
            square = ((values @ away) ** 2).sum()
        linear = float(np.array(form["linear"]) @ y[form["columns"]])
        size = abs(square) + abs(linear) + abs(form["value"])
        return float(square) + linear - form["value"] <= slack * size

    # --- points ---------------------------------------------------------------------------------

    def points(self, x: np.ndarray, target: list[int], seed: int) -> Iterator[np.ndarray]:
        """Points around the input, and between it and prototypes of a wished-for label."""
        rng = np.random.default_rng(seed)
        yield x
        ends = [w for w, label in zip(self.W, self.labels, strict=True) if label in target]
        spread = np.abs(self.W).max(axis=0) if self.model["map"] is None else np.abs(x) + 1.0
        for _ in range(150):
            if self.model["map"] is None and ends and rng.random() < 0.6:
                y = x + rng.uniform(0, 1.2) * (ends[int(rng.integers(len(ends)))] - x)
            else:
                size = spread[: self.d] if len(spread) >= self.d else np.abs(x) + 1.0
                y = x + rng.normal(size=self.d) * size * 10.0 ** rng.uniform(-3, 0.5)
            keep = rng.random(self.d) < rng.random()
            yield self._settled(np.where(keep, y, x), x, rng)

    def _settled(self, y: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        out = y.copy()
        for j, column in enumerate(self.columns):
            if column["kind"] in ("grid", "steps"):
                out[j] = x[j] if rng.random() < 0.3 else self._tick(j, out, x)
            elif column["kind"] == "levels":
                out[j] = x[j] if rng.random() < 0.5 else rng.integers(len(column["levels"]))
        return out

    def cheapest(self, line: dict[str, Any], seed: int = 0, more: Any = ()) -> float:
        """Cost of the cheapest point that was found; inf if none was."""
        x, target = np.array(line["input"], dtype=float), line["target"]
        best = np.inf
        for y in [*self.points(x, target, seed), *(np.array(row, dtype=float) for row in more)]:
            if len(y) == self.d and self.lead(y, target) > 1e-12 and self.holds(y, x, 1e-14):
                best = min(best, self.cost(y, x))
        return best

    def least(self, x: np.ndarray, target: list[int]) -> Fraction | float:
        """Least cost of an answer by exact linear programs, where they say it all; else inf.

        Cells are closed, but where a rival stands before the prototype it has to be beaten, here
        by next to nothing: what is found is the cost of answers that there are.
        """
        kinds = {item["kind"] for item in self.question["constraints"]}
        is_plain = all(column["kind"] == "real" for column in self.columns)
        is_flat = self.question["cost"]["quadratic"] is None and self.model["map"] is None
        if self.kind == "local" or not is_plain or not is_flat or not kinds <= {"linear", "seen"}:
            return np.inf
        start, factor = [Fraction(v) for v in x.tolist()], _exact(self.factors[0])
        W, offsets = _exact(self.W), [Fraction(v) for v in self.offsets.tolist()]
        if any(len(w) != self.d for w in W):
            return np.inf
        lifted = [_lifted(factor, [a - b for a, b in zip(start, w, strict=True)]) for w in W]
        scores = [sum(v * v for v in z) + o for z, o in zip(lifted, offsets, strict=True)]
        rows, right = self._stated(start)
        wished = [label in target for label in self.labels.tolist()]
        margin, best = Fraction(self.question["margin"]), np.inf
        for i in np.flatnonzero(wished).tolist():
            cell, ends = list(rows), list(right)
            for k in np.flatnonzero(~np.array(wished)).tolist():
                apart = _lifted(factor, [a - b for a, b in zip(W[k], W[i], strict=True)])
                cell.append([2 * sum(f[c] * v for f, v in zip(factor, apart, strict=True))
                             for c in range(self.d)])  # fmt: skip
                ahead = margin or (abs(scores[k]) * Fraction(1, 10**12) if k < i else 0)
                ends.append(scores[k] - scores[i] - ahead)
            weights = [Fraction(w) for w in self.question["cost"]["weights"]]
            both = [[*row, *(-a for a in row)] for row in cell]
            best = min(best, least_cost(weights + weights, both, ends))
        return best

    def _stated(self, x: list[Fraction]) -> tuple[list[list[Fraction]], list[Fraction]]:
        """Constraints and ranges as rows ``a'delta <= b``."""
        rows: list[list[Fraction]] = []
        right: list[Fraction] = []

        def add(new: Any, old: Any, value: float, sign: int = 1) -> None:
            row = [Fraction(0)] * self.d
            for j, a in new:
                row[j] += sign * Fraction(a)
            rows.append(row)
            given = sum((Fraction(a) * x[j] for j, a in [*new, *old]), Fraction(0))
            right.append(sign * (Fraction(value) - given))

        for item in self.question["constraints"]:
            if item["kind"] == "linear":
                for sign in (1, -1) if item["sense"] == "==" else (1,):
                    add(item["new"], item["old"], item["value"], sign)
        ranged = [*enumerate(self.columns)]
        for item in self.question["constraints"]:
            if item["kind"] == "seen":
                own = float(x[item["column"]])
                low, high = item["lower"], item["upper"]
                ends = {"lower": None if low is None else min(low, own),
                        "upper": None if high is None else max(high, own)}  # fmt: skip
                ranged.append((item["column"], ends))
        for j, ends in ranged:
            if ends["upper"] is not None:
                add([(j, 1.0)], [], ends["upper"])
            if ends["lower"] is not None:
                add([(j, 1.0)], [], ends["lower"], -1)
        return rows, right


def _exact(matrix: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(v) for v in row] for row in np.atleast_2d(matrix).tolist()]


def _lifted(factor: list[list[Fraction]], v: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, v, strict=True)), Fraction(0)) for row in factor]


def least_cost(
    cost: list[Fraction], rows: list[list[Fraction]], right: list[Fraction]
) -> Fraction | float:
    """Least ``cost'u`` over ``rows u <= right``, ``u >= 0``, by the dual simplex method, exactly.

    No cost is negative, so that the slacks are a dual feasible basis; Bland's rule ends it.
    """
    n, m = len(cost), len(rows)
    table = [[*row, *(Fraction(i == k) for k in range(m)), b]
             for i, (row, b) in enumerate(zip(rows, right, strict=True))]  # fmt: skip
    top = [*cost, *[Fraction(0)] * (m + 1)]
    basis = list(range(n, n + m))
    while True:
        broken = [i for i in range(m) if table[i][-1] < 0]
        if not broken:
            return -top[-1]
        i = min(broken, key=lambda row: basis[row])
        steps = [(-top[j] / table[i][j], j) for j in range(n + m) if table[i][j] < 0]
        if not steps:
            return np.inf
        j = min(steps)[1]
        pivot = table[i][j]
        table[i] = [value / pivot for value in table[i]]
        for k, row in enumerate([*table, top]):
            if k != i and row[j]:
                share = row[j]
                row[:] = [a - share * b if b else a for a, b in zip(row, table[i], strict=True)]
        basis[i] = j


def falsehood(
    header: dict[str, Any], line: dict[str, Any], bound: Fraction | float, witnesses: Any = ()
) -> str | None:
    """Say what is false about a line that was verified, with the bound that was printed."""
    world, answer = World(header), line["answer"]
    x = np.array(line["input"], dtype=float)
    if answer["row"] is not None:
        y = np.array(answer["row"], dtype=float)
        if not world.holds(y, x, 2.0**-39):
            return "the row breaks a constraint"
        told = 1e-8 if line.get("told") else 1e-11
        is_finite = bool(np.isfinite(world.scores(y)).all())
        if is_finite and not np.array_equal(x, y) and world.lead(y, line["target"]) < -told - 1e-11:
            return "the row has another label"
        cost = world.cost(y, x)
        if abs(cost - answer["cost"]) > 1e-8 * (cost + np.abs(x).max() * 1e-6):
            return f"the row costs {cost}"
    cheapest = world.cheapest(line, more=witnesses)
    if bound > cheapest * (1 + SAME) + 1e-300:
        return f"the bound {float(bound)} is above {cheapest}"
    least = world.least(x, line["target"])
    if bound > least:
        return f"the bound {float(bound)} is above {float(least)}, in rational numbers"
    return None
