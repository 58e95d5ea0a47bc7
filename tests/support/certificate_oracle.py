"""An oracle for certificate files: whether what a line states is false, by points that refute it.

It reads the JSON by itself, in floats, and shares no code with the package or its checker. A point
with a wished-for label that keeps the constraints and costs less than a bound shows the bound to
be false; for absolute costs under shared metrics linear programs of SciPy find the cheapest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linprog

# Costs that differ by less than this share are taken to be the same.
SAME = 1e-6


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
            if part["kind"] == "levels":
                z = z + np.array(part["weights"])[int(y[j])]
            elif part.get("at") is not None:
                z[part["at"]] += part["weights"][0] * (y[j] - part["base"])
            else:
                z = z + np.array(part["weights"]) * (y[j] - part["base"])
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
            for end, sign in ((column["lower"], -1), (column["upper"], 1)):
                if end is not None and sign * (y[j] - end) > slack * (abs(end) + abs(y[j])):
                    return False
            if column["kind"] == "grid":
                step = column["step"] / column["parts"]
                near = round(y[j] / step) * column["step"] / column["parts"]
                if abs(y[j] - near) > 1e-12 * max(abs(y[j]), step):
                    return False
        return all(self._holds(item, y, x, slack) for item in self.question["constraints"])

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
        if item["kind"] == "implies":
            if int(y[item["when"]["column"]]) not in item["when"]["allowed"]:
                return True
            return all(self._holds(each, y, x, slack) for each in item["then"])
        form = item["form"]
        away = y[form["columns"]] - np.array(form["center"])
        values = np.array(form["values"], dtype=float)
        if form["kind"] == "diagonal":
            square = values @ away**2
        elif form["kind"] == "matrix":
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
            if column["kind"] == "grid":
                step = column["step"] / column["parts"]
                out[j] = round(out[j] / step) * column["step"] / column["parts"]
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
        return min(best, self._by_programs(x, target))

    def _by_programs(self, x: np.ndarray, target: list[int]) -> float:
        """Cheapest answer by linear programs, where they say it all; else inf."""
        kinds = {item["kind"] for item in self.question["constraints"]}
        is_plain = all(column["kind"] == "real" for column in self.columns)
        if self.kind == "local" or not is_plain or not kinds <= {"linear"}:
            return np.inf
        if self.question["cost"]["quadratic"] is not None or self.model["map"] is not None:
            return np.inf
        weights = np.array(self.question["cost"]["weights"], dtype=float)
        mask = np.isin(self.labels, target)
        best = np.inf
        M = self.factors[0].T @ self.factors[0]
        for i in np.flatnonzero(mask):
            rows, right = [], []
            scores = self.scores(x)
            for k in np.flatnonzero(~mask):
                rows.append(2 * M @ (self.W[k] - self.W[i]))
                right.append(scores[k] - scores[i] - self.question["margin"])
            best = min(best, self._program(x, weights, rows, right))
        return best

    def _program(self, x: np.ndarray, w: np.ndarray, rows: list[Any], right: list[Any]) -> float:
        d, equal, value = self.d, [], []
        for item in self.question["constraints"]:
            new, old = np.zeros(d), np.zeros(d)
            for j, a in item["new"]:
                new[j] = a
            for j, a in item["old"]:
                old[j] = a
            side = item["value"] - (new + old) @ x
            (equal if item["sense"] == "==" else rows).append(new)
            (value if item["sense"] == "==" else right).append(side)
        bounds = []
        for j, column in enumerate(self.columns):
            low = -np.inf if column["lower"] is None else column["lower"] - x[j]
            high = np.inf if column["upper"] is None else column["upper"] - x[j]
            bounds.append((low, high))
        # delta = plus - minus, in units in which both the weights and the answers are near one
        both = [np.hstack([row, -row]) for row in rows]
        for j, (low, high) in enumerate(bounds):
            unit = np.zeros(d)
            unit[j] = 1.0
            if np.isfinite(high):
                both.append(np.hstack([unit, -unit]))
                right = [*right, high]
            if np.isfinite(low):
                both.append(np.hstack([-unit, unit]))
                right = [*right, -low]
        E = [np.hstack([row, -row]) for row in equal]
        numbers = (w, np.array(both), np.array(right), np.array(E), np.array(value))
        if not all(np.isfinite(part).all() for part in numbers):
            return np.inf
        found = linprog(
            np.hstack([w, w]), A_ub=np.array(both) if both else None, b_ub=right or None,
            A_eq=np.array(E) if E else None, b_eq=value or None, method="highs",
        )  # fmt: skip
        if found.status != 0:
            return np.inf
        # Its own point has to hold up: units from 1e-8 to 1e8 are more than it can tell apart.
        y = x + found.x[:d] - found.x[d:]
        is_there = self.holds(y, x, 1e-9) and all(
            row @ (y - x) <= side + 1e-9 * (np.abs(row) @ (np.abs(x) + np.abs(y)) + abs(side))
            for row, side in zip(rows, right, strict=False)
        )
        return float(found.fun) if is_there else np.inf


def falsehood(
    header: dict[str, Any], line: dict[str, Any], bound: float, witnesses: Any = ()
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
        return f"the bound {bound} is above {cheapest}"
    return None
