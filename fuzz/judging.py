"""Every claim of an answer, against points that the model's own `predict` confirms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fuzz import enumeration, quadratics, rays, roundings
from fuzz.answers import (
    DIGITS,
    Answer,
    Fault,
    faults_of_margin,
    faults_of_numbers,
    faults_of_point,
    lead_of,
)
from fuzz.cases import Case, Names
from fuzz.plain import Floats, Plain
from fuzz.rational import Optimum, Vector, exact
from fuzz.regions import Cell, cells
from fuzz.witnesses import is_cheaper, keeps_constraints, on_the_way_inside

# A predict that contradicts scores in rational numbers by more than this share of them is wrong.
_PREDICT_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is to be said of one answer."""

    faults: list[tuple[Fault, Floats | None]]  # each with a point that shows it, if there is one
    remarks: list[tuple[Fault, Floats | None]]
    truth: str  # "infeasible" where rational numbers prove it, "unjudged", or ""


@dataclass(frozen=True, eq=False)
class Court:
    """All that is known of a case, once its text has run."""

    case: Case
    names: Names
    plain: Plain

    @property
    def is_own(self) -> bool:
        """Whether the rule is known in rational numbers to the last bit: no fitted steps."""
        return "fitted" not in self.case.tags

    def says(self, Y: Floats) -> list[Any]:
        """What the model's own `predict` says of rows, together."""
        return np.asarray(self.names["model"].predict(self.case.table(Y))).tolist()

    def says_alone(self, y: Floats) -> Any:
        return self.says(y[None, :])[0]

    @cached_property
    def own_labels(self) -> list[Any]:
        return [self.says_alone(x) for x in self.case.X]

    @cached_property
    def grid(self) -> enumeration.Grid | None:
        return enumeration.grid_of(self.case, self.plain, self.says)

    def wished_labels(self, i: int) -> set[Any]:
        target = self.case.targets[i]
        every = set(self.plain.scores.labels)
        return every - {self.own_labels[i]} if target is None else {target}

    def wished(self, i: int) -> list[bool]:
        labels = self.wished_labels(i)
        return [label in labels for label in self.plain.scores.labels]

    def judge(self, i: int, answer: Answer, label_in_batch: Any) -> Verdict:
        """Judge the answer to row i; `label_in_batch` is what `predict` said among the others."""
        verdict = Verdict([], [], "")
        x = exact(self.case.X[i])
        faults = [*faults_of_numbers(answer, self.plain.gap)]
        if answer.has_point and not any(name == "cost" for name, _ in faults):
            faults += self._faults_of_answer(i, answer, x, label_in_batch)
        verdict.faults.extend((fault, None) for fault in faults)
        if np.isnan(answer.bound) or not any(self.wished(i)) or all(self.wished(i)):
            return verdict
        if self.plain.is_mixed:
            return self._judge_by_points(i, answer, x, verdict)
        if self.plain.scores.is_local:
            return self._judge_by_rays(i, answer, x, verdict)
        return self._judge_by_cells(i, answer, x, verdict)

    def _faults_of_answer(
        self, i: int, answer: Answer, x: Vector, label_in_batch: Any
    ) -> Iterator[Fault]:
        yield from faults_of_point(answer, self.plain, x)
        if not np.isfinite(answer.values).all():
            return
        wished, alone = self.wished_labels(i), self.says_alone(answer.values)
        if alone not in wished:
            yield "rejected alone", f"predict says {alone!r}, wished for {sorted(wished)!r}"
        if label_in_batch not in wished:
            yield "rejected in a batch", f"predict says {label_in_batch!r} of it among others"
        if answer.prediction != alone:
            yield "prediction", f"prediction {answer.prediction!r}, predict says {alone!r}"
        if self.case.levels:
            return
        yield from faults_of_margin(answer, self.plain, x, self.wished(i))
        lead, size = lead_of(self.plain, exact(answer.values), self.wished(i))
        if self.is_own and -lead > _PREDICT_ROUNDING * size:
            words = f"score of the target is behind by {float(-lead):.3g} of {float(size):.3g}"
            yield "predict is wrong", words

    # --- shared metrics, no grid: rational programs ---------------------------------------------

    def _judge_by_cells(self, i: int, answer: Answer, x: Vector, verdict: Verdict) -> Verdict:
        if answer.has_point and answer.bound == 0:
            return verdict
        found = cells(self.plain, x, self.wished(i))
        if not answer.has_point:
            return self._judge_absence(answer, x, verdict, found, i)
        best: tuple[Optimum, Cell] | None = None
        for cell in found:
            optimum = self._cheapest(cell, x)
            if optimum is not None and (best is None or optimum.value < best[0].value):
                if self._is_above(answer.bound, optimum.value) and cell.is_empty:
                    continue
                best = optimum, cell
        if best is None:
            return Verdict(verdict.faults, verdict.remarks, "unjudged")
        optimum, cell = best
        if self._is_above(answer.bound, optimum.value):
            self._blame(i, answer, x, verdict, optimum, cell)
        return verdict

    def _cheapest(self, cell: Cell, x: Vector) -> Optimum | None:
        if self.plain.rounds:
            return quadratics.cheapest(self.plain, cell, x)
        return cell.cheapest(self.plain)

    def _blame(
        self, i: int, answer: Answer, x: Vector, verdict: Verdict, optimum: Optimum, cell: Cell
    ) -> None:
        """Say that a point of a cell is cheaper than a claim; by a confirmed point if possible."""
        limit = answer.bound if answer.status != "infeasible" else np.inf
        y = self._confirmed(i, x, cell, optimum.point, limit)
        name = "bound above a point" if answer.status != "infeasible" else "false infeasible"
        if answer.status == "optimal" and self._exceeds(answer, optimum.value):
            name = "false optimal"
        words = f"{answer.status}, bound {answer.bound!r}, cost {answer.cost!r}; "
        if y is not None:
            cost = float(self.plain.price.of(exact(y), x))
            verdict.faults.append(((name, f"{words}a confirmed point costs {cost!r}"), y))
        elif answer.status != "infeasible" and self._is_rounding(answer, x, optimum):
            words += f"the rational optimum costs {float(optimum.value)!r}"
            verdict.remarks.append(((f"{name} (within rounding of the point)", words), None))
        elif self.is_own:
            words += f"the rational optimum costs {float(optimum.value)!r}"
            verdict.faults.append(((f"{name} (rational)", words), None))
        else:
            words += f"in rational numbers {float(optimum.value)!r}; no double confirms it"
            verdict.remarks.append(((f"{name} (rational map only)", words), None))

    def _is_rounding(self, answer: Answer, x: Vector, optimum: Optimum) -> bool:
        """Whether a bound is above a rational optimum by no more than doubles can resolve there."""
        if answer.bound == np.inf:
            return False
        above = Fraction(answer.bound) - optimum.value * (1 + DIGITS)
        return above <= self.plain.price.rounding(optimum.point, x)

    def _exceeds(self, answer: Answer, value: Fraction) -> bool:
        cost = Fraction(answer.cost)
        return cost - value > max(cost * Fraction(self.plain.gap), Fraction(answer.resolution))

    def _confirmed(self, i: int, x: Vector, cell: Cell, u: Vector, limit: float) -> Floats | None:
        for y in on_the_way_inside(cell, u, x):
            if is_cheaper(self.plain, y, x, limit) and self._is_counterfactual(i, y, x):
                return y
        return None

    def _is_counterfactual(self, i: int, y: Floats, x: Vector, *, by_predict: bool = False) -> bool:
        """Whether `predict` and, unless that alone is to decide, rational scores agree on y."""
        if not np.isfinite(y).all():
            return False
        point = exact(y)
        if not keeps_constraints(self.plain, point, x):
            return False
        if self.says_alone(y) not in self.wished_labels(i):
            return False
        if by_predict and not self.plain.margin:
            return True
        lead, _ = lead_of(self.plain, point, self.wished(i))
        return lead >= Fraction(self.plain.margin or 0.0)

    def _is_above(self, bound: float, value: Fraction) -> bool:
        return bound == np.inf or Fraction(bound) > value * (1 + DIGITS)

    def _judge_absence(
        self, answer: Answer, x: Vector, verdict: Verdict, found: list[Cell], i: int
    ) -> Verdict:
        """Judge INFEASIBLE, and the bound of UNKNOWN."""
        if self.plain.margin and answer.status == "infeasible":
            self._judge_absent_margin(answer, x, verdict, i)
        open_cells = [cell for cell in found if not cell.is_empty]
        if not open_cells:
            return Verdict(verdict.faults, verdict.remarks, "infeasible")
        for cell in open_cells:
            optimum = self._cheapest(cell, x)
            if optimum is None and not self.plain.rounds and cell.inside is not None:
                point = cell.inside.point
                y = [a + b for a, b in zip(x, point, strict=True)]
                optimum = Optimum(self.plain.price.of(y, x), point)
            if optimum is None:
                continue
            false = answer.status == "infeasible" or self._is_above(answer.bound, optimum.value)
            if false:
                self._blame(i, answer, x, verdict, optimum, cell)
                break
        truth = "unjudged" if self.plain.rounds else ""
        return Verdict(verdict.faults, verdict.remarks, truth)

    def _judge_absent_margin(self, answer: Answer, x: Vector, verdict: Verdict, i: int) -> None:
        """A margin that cannot be had says nothing about the class itself."""
        free = [c for c in cells(self.plain, x, self.wished(i), margin=0.0) if not c.is_empty]
        if not free or self.plain.rounds:
            return
        if "never says so" in answer.text:
            words = "says that the model never says so; without the margin it does"
            verdict.faults.append((("margin called impossible class", words), None))

    # --- grids: every point ---------------------------------------------------------------------

    def _judge_by_points(self, i: int, answer: Answer, x: Vector, verdict: Verdict) -> Verdict:
        grid = self.grid
        limit = np.inf if answer.status == "infeasible" else answer.bound
        if grid is not None:
            points = [*grid.cheapest(self.case.X[i], self.wished_labels(i), self.plain)]
        elif self.plain.scores.is_local or self.case.levels:
            return Verdict(verdict.faults, verdict.remarks, "unjudged")
        else:
            points = [*roundings.cheapest(self.plain, x, self.wished(i))]
        for y in points:
            if not is_cheaper(self.plain, y, x, limit):
                continue
            if self._is_counterfactual(i, y, x, by_predict=grid is not None):
                self._blame_for_point(answer, x, verdict, y)
                break
        truth = "infeasible" if grid is not None and grid.is_complete and not points else ""
        return Verdict(verdict.faults, verdict.remarks, truth)

    def _judge_by_rays(self, i: int, answer: Answer, x: Vector, verdict: Verdict) -> Verdict:
        limit = np.inf if answer.status == "infeasible" else answer.bound
        if limit == 0:
            return verdict
        for y in rays.cheapest(self.plain, self.case.X[i], np.array(self.wished(i))):
            if is_cheaper(self.plain, y, x, limit) and self._is_counterfactual(i, y, x):
                self._blame_for_point(answer, x, verdict, y)
                break
        return verdict

    def _blame_for_point(self, answer: Answer, x: Vector, verdict: Verdict, y: Floats) -> None:
        cost = self.plain.price.of(exact(y), x)
        name = "false infeasible" if answer.status == "infeasible" else "bound above a point"
        if answer.status == "optimal" and self._exceeds(answer, cost):
            name = "false optimal"
        words = f"{answer.status}, bound {answer.bound!r}, cost {answer.cost!r}; "
        verdict.faults.append(((name, f"{words}a confirmed point costs {float(cost)!r}"), y))
