"""Proofs as plain values that JSON can hold, and back.

The other way round from `cellwise` and `boxes`: a proof that leaves this process. Nothing that
can be derived is written: no half-space, no quadratic form, no box. What a file looks like, and
what follows from it, is in `docs/certificates.md`; `check_certificate` reads it without this
package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.certificates.cellwise import CellCertificate, Exclusion, Singles
from counterlvq.certificates.certificate import Certificate
from counterlvq.certificates.counted import CountedCertificate, CountedQuestion
from counterlvq.certificates.duality import Proof
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.programs.nonconvex import Box, LiftedMultipliers
from counterlvq.programs.program import Multipliers

__all__ = ["Numbering", "certificate_of", "proof_values"]

Values = dict[str, Any]
# Larger numbers charge for nothing, here as in `duality` and `lifted`.
_HUGE = 1e100


@final
@dataclass(frozen=True, eq=False)
class Numbering:
    """Which linear condition of a file each row of a program stands for."""

    inequalities: NDArray[np.int64]  # those on several features, then the conditional ones
    equalities: NDArray[np.int64]
    numbers: NDArray[np.int64]  # coordinates of columns that are numbers: what the cost squares


def proof_values(
    certificate: Certificate | None,
    question: Question | BoxQuestion | CountedQuestion,
    numbering: Numbering,
    cap: float,
    goal: float,
    margin: float,
) -> Values:
    """Write out of a certificate what shows `goal`; inf for that there is no answer at all.

    `cap` is the cost of the answer, inf without one.
    """
    if isinstance(certificate, CountedCertificate) and isinstance(question, CountedQuestion):
        return {"counted": _counted(certificate, question, numbering, cap, goal, margin)}
    cells: list[Values] = []
    if isinstance(certificate, CellCertificate) and isinstance(question, Question):
        cells = _Cells(certificate, question, numbering, cap, goal, margin).values()
    elif isinstance(certificate, BoxCertificate) and isinstance(question, BoxQuestion):
        for tree in certificate.trees:
            nodes = _Nodes(tree, question, numbering, cap, goal, margin).values()
            cells.append({"prototype": int(tree.prototype), "kind": "tree", "nodes": nodes})
    return {"cells": cells}


def _counted(
    tree: CountedCertificate,
    question: CountedQuestion,
    numbering: Numbering,
    cap: float,
    goal: float,
    margin: float,
) -> list[Values]:
    """Write a tree of columns that are held or counted, and the proofs of the parts left whole."""
    out: list[Values] = []
    stays = tree.held_at(question.limits)
    for node, (column, part) in enumerate(zip(tree.column, tree.parts, strict=True)):
        if column >= 0:
            ends = {"held": tree.held[node], "changed": tree.changed[node]}
            out.append({"kind": "count", "column": column, **ends})
            continue
        held = stays[node]
        told: Values = {"cells": []}
        if held is not None:
            asked = question.holding(held)
            told = proof_values(part, asked, numbering, cap, goal, margin)
        out.append({"kind": "cells", **told})
    return out


@final
@dataclass(frozen=True, eq=False)
class _Cells:
    """Proofs under a shared metric: for each cell the shortest that is enough."""

    certificate: CellCertificate
    question: Question
    numbering: Numbering
    cap: float
    goal: float
    margin: float

    def values(self) -> list[Values]:
        out: list[Values] = []
        singles = self._singles()
        asked = self._asked
        grounds = self.question.grounds
        for i in self.question.cells.targets.tolist():
            if singles.get(i, (0.0, -1))[0] >= self.goal and np.isfinite(self.goal):
                out.append({"prototype": i, "kind": "single", "rival": singles[i][1]})
                continue
            proofs = [p for p in self.certificate.proofs if p.prototype == i]
            empties = [e.proof for e in self.certificate.exclusions if e.proof.prototype == i]
            enough = []
            if np.isfinite(self.goal):
                enough = [p for p in proofs if grounds.lower_bound(p, self.cap, asked) >= self.goal]
            if enough:
                out.append(self._written("bound", enough[0]))
                continue
            shown = [p for p in empties if Exclusion(p, 0.0).holds(self.question, asked, self.cap)]
            if shown:
                out.append(self._written("empty", shown[0]))
                continue
            # Rounding, or exact arithmetic, decides: whoever checks has all there is.
            out += [self._written("bound", p) for p in proofs]
            out += [self._written("empty", p) for p in empties]
            if i in singles:
                out.append({"prototype": i, "kind": "single", "rival": singles[i][1]})
        return out

    @property
    def _asked(self) -> float:
        overlooked = self.question.overlooked(self.cap)
        return self.margin - (overlooked if np.isfinite(overlooked) else 0.0)

    def _singles(self) -> dict[int, tuple[float, int]]:
        far = self.certificate.singles
        bounds = far.lower_bounds(self.question, self._asked)
        best: dict[int, tuple[float, int]] = {}
        for i, k, bound in zip(far.prototypes.tolist(), far.rivals.tolist(), bounds, strict=True):
            best[i] = max(best.get(i, (-1.0, -1)), (float(bound), k))
        return best

    def _written(self, kind: str, proof: Proof) -> Values:
        linear, out = proof.constraint_prices, {"prototype": proof.prototype, "kind": kind}
        rivals = zip(proof.rivals.tolist(), proof.rival_prices.tolist(), strict=True)
        out["rivals"] = [[k, y] for k, y in rivals if 0.0 < y < _HUGE]
        out |= _linear(linear, self.numbering)
        if self.question.template.L.shape[0] or np.any(linear.nu):
            out["point"] = _usable(proof.point).tolist()
        return out


def _linear(prices: Multipliers, numbering: Numbering) -> Values:
    """Multipliers of linear and quadratic conditions, those that charge for something."""
    out: Values = {}
    rows = _listed(numbering.inequalities, np.maximum(_usable(prices.y), 0.0))
    rows += _listed(numbering.equalities, _usable(prices.z))
    quadratics = _listed(np.arange(prices.nu.size), np.maximum(_usable(prices.nu), 0.0))
    if rows:
        out["rows"] = rows
    if quadratics:
        out["quadratics"] = quadratics
    return out


def _listed(at: NDArray[np.int64], values: Floats) -> list[list[Any]]:
    return [[int(at[n]), float(values[n])] for n in np.flatnonzero(values)]


def _usable(values: Floats) -> Floats:
    return np.where(np.abs(values) < _HUGE, values, 0.0)


@final
@dataclass(frozen=True, eq=False)
class _Nodes:
    """A tree of boxes without the parts that nothing hangs on."""

    tree: BoxTree
    question: BoxQuestion
    numbering: Numbering
    cap: float
    goal: float
    margin: float

    def values(self) -> list[Values]:
        nodes: list[Values] = []
        waiting: list[tuple[int, Box, Values | None, str]]
        waiting = [(0, Box.whole(self.question.x.size), None, "")]
        while waiting:
            at, outer, parent, side = waiting.pop()
            if parent is not None:
                parent[side] = len(nodes)
            own = max(float(self.tree.caps[at]), self.cap)
            box = self.question.inside(outer, own)
            node = self._node(at, box, own)
            nodes.append(node)
            if np.isfinite(self.cap) and own > self.cap:
                node["cap"] = own if np.isfinite(own) else None
            if node["kind"] == "cut":
                below, above = self.question.split(box, node["coordinate"], node["at"])
                waiting.append((int(self.tree.high[at]), above, node, "high"))
                waiting.append((int(self.tree.low[at]), below, node, "low"))
        return nodes

    def _node(self, at: int, box: Box, own: float) -> Values:
        question, i, prices = self.question, self.tree.prototype, self.tree.prices[at]
        if box.is_empty:
            return {"kind": "open"}
        if question.is_ruled_out(box) or question.loses_ties(i, box):
            return {"kind": "lost"}
        told = (i, prices, box, own, self.margin)
        is_whole = bool(self.tree.feature[at] < 0)
        if np.isfinite(self.goal) and question.bound(*told) >= self.goal:
            return {"kind": "bound", "charges": self._charges(told, with_cost=True)}
        if (is_whole or not np.isfinite(self.goal)) and question.contradicts(*told):
            return {"kind": "empty", "charges": self._charges(told, with_cost=False)}
        if is_whole:
            return {"kind": "bound", "charges": self._charges(told, with_cost=True)}
        return {
            "kind": "cut",
            "coordinate": int(self.tree.feature[at]),
            "at": self._place(int(self.tree.feature[at]), float(self.tree.at[at])),
        }

    def _place(self, feature: int, at: float) -> float:
        """Where a cut is; on a grid half way between the values that it parts, without a doubt."""
        if self.question.template.grid.step[feature] == 0:
            return at
        ticks = self.question.ticks
        below = ticks.below(np.full(self.question.x.size, at))
        middle = float(0.5 * (below[feature] + ticks.next_above(below)[feature]))
        return middle if np.isfinite(middle) else at

    def _charges(
        self, told: tuple[int, LiftedMultipliers, Box, float, float], *, with_cost: bool
    ) -> Values:
        """Write what is charged for in one box."""
        i, prices, box, own, _ = told
        problem = self.question.problem(i, box)
        out: Values = {}
        forms = np.maximum(_usable(prices.forms), 0.0)
        out["rivals"] = _listed(self.question.cells.rivals, forms[: problem.rivals])
        out |= _linear(prices.linear, self.numbering)
        out |= self._on_grid(forms[problem.rivals :])
        for name in ("low", "high", "cross", "signs"):
            values = _usable(getattr(prices, name))
            values = values if name == "signs" else np.maximum(values, 0.0)
            if values.any() and (name != "signs" or prices.share.any()):
                pairs = zip(*np.nonzero(values), strict=True)
                out[name] = [[int(a), int(b), float(values[a, b])] for a, b in pairs]
        share = np.maximum(_usable(prices.share), 0.0)
        if share.any() and np.isfinite(own):
            out["share"] = _listed(np.arange(share.size), share)
        for name in ("from_low", "from_high"):
            vectors = _usable(getattr(prices, name))
            if vectors.any() and np.isfinite(own):
                pulls = (vectors @ problem.convex.L)[:, self.numbering.numbers]
                out[name] = [[int(j), pulls[j].tolist()] for j in np.flatnonzero(pulls.any(axis=1))]
        point = self.question.tangency(*told, with_cost=with_cost)
        if point is not None:
            out["point"] = point.tolist()
        return {key: value for key, value in out.items() if value}

    def _on_grid(self, charges: Floats) -> Values:
        at = self.question.ticks.columns.tolist()
        one, other = self.question.template.grid.together
        names: list[list[Any]] = [["first", c] for c in at] + [["last", c] for c in at]
        names += [[int(a), int(b)] for a, b in zip(one, other, strict=True)]
        told = [[*names[n], float(charges[n])] for n in np.flatnonzero(charges)]
        sides = [item for item in told if isinstance(item[0], str)]
        return {"neighbours": sides, "pairs": [item for item in told if item not in sides]}


def certificate_of(
    proof: Values, question: Question | BoxQuestion, numbering: Numbering
) -> Certificate:
    """Read a proof back, for the checks of this package."""
    if isinstance(question, BoxQuestion):
        trees = [_tree_of(cell, question, numbering) for cell in proof["cells"]]
        return BoxCertificate(tuple(trees))
    proofs, exclusions, far = [], [], []
    for cell in proof["cells"]:
        if cell["kind"] == "single":
            far.append((cell["prototype"], cell["rival"]))
            continue
        read = _proof_of(cell, question, numbering)
        if cell["kind"] == "bound":
            proofs.append(read)
        else:
            exclusions.append(Exclusion(read, 0.0))
    pairs = np.array(far, dtype=np.int64).reshape(-1, 2)
    singles = Singles(pairs[:, 0].copy(), pairs[:, 1].copy())
    return CellCertificate(tuple(proofs), tuple(exclusions), singles)


def _proof_of(cell: Values, question: Question, numbering: Numbering) -> Proof:
    template, rivals = question.template, cell.get("rivals", [])
    d = question.x.size
    return Proof(
        cell["prototype"],
        np.array([k for k, _ in rivals], dtype=np.int64),
        np.array([y for _, y in rivals], dtype=np.float64),
        _multipliers(cell, numbering, len(template.quadrics)),
        np.array(cell.get("point", [0.0] * d), dtype=np.float64),
    )


def _multipliers(told: Values, numbering: Numbering, quadrics: int) -> Multipliers:
    given = {int(n): float(y) for n, y in told.get("rows", [])}
    y, z = (
        np.array([given.get(int(n), 0.0) for n in part], dtype=np.float64)
        for part in (numbering.inequalities, numbering.equalities)
    )
    nu = np.zeros(quadrics)
    for n, price in told.get("quadratics", []):
        nu[n] = price
    return Multipliers(y, z, nu)


def _tree_of(cell: Values, question: BoxQuestion, numbering: Numbering) -> BoxTree:
    nodes = cell["nodes"]
    count = len(nodes)
    feature, low, high = (np.full(count, -1, dtype=np.int64) for _ in range(3))
    at, caps = np.zeros(count), np.zeros(count)
    prices = []
    for n, node in enumerate(nodes):
        caps[n] = np.inf if node.get("cap", 0.0) is None else node.get("cap", 0.0)
        if node["kind"] == "cut":
            feature[n], at[n] = node["coordinate"], node["at"]
            low[n], high[n] = node["low"], node["high"]
        prices.append(_prices_of(node.get("charges", {}), cell["prototype"], question, numbering))
    return BoxTree(cell["prototype"], 0.0, feature, at, low, high, tuple(prices), caps)


def _prices_of(
    told: Values, prototype: int, question: BoxQuestion, numbering: Numbering
) -> LiftedMultipliers:
    problem = question.problem(prototype, question.root(np.inf))
    d, L = question.x.size, problem.convex.L
    forms = np.zeros(problem.forms.r.size)
    place = {int(k): n for n, k in enumerate(question.cells.rivals)}
    for k, y in told.get("rivals", []):
        if k in place:
            forms[place[k]] = y
    _put_grid(forms[problem.rivals :], told, question)
    squares = {}
    for name in ("low", "high", "cross", "signs"):
        squares[name] = np.zeros((d, d))
        for i, j, y in told.get(name, []):
            squares[name][i, j] = y
    share = np.zeros(d)
    for j, y in told.get("share", []):
        share[j] = y
    vectors = {}
    for name in ("from_low", "from_high"):
        vectors[name] = np.zeros((d, L.shape[0]))
        for j, pull in told.get(name, []):
            whole = np.zeros(d)
            whole[numbering.numbers] = pull
            # The vector before it was drawn back by the factor of the cost, about.
            vectors[name][j] = np.linalg.lstsq(L.T, whole, rcond=None)[0]
    linear = _multipliers(told, numbering, len(question.template.quadrics))
    point = np.array(told.get("point", [0.0] * d), dtype=np.float64)
    return LiftedMultipliers(
        forms, linear, squares["low"], squares["high"], squares["cross"], share, squares["signs"],
        vectors["from_low"], vectors["from_high"], point,
    )  # fmt: skip


def _put_grid(charges: Floats, told: Values, question: BoxQuestion) -> None:
    """Put the charges for products on a grid in their places."""
    at = question.ticks.columns.tolist()
    one, other = question.template.grid.together
    names: list[tuple[Any, int]] = [("first", c) for c in at] + [("last", c) for c in at]
    names += zip(one.tolist(), other.tolist(), strict=True)
    places: dict[tuple[Any, ...], int] = {name: n for n, name in enumerate(names)}
    for *name, y in told.get("neighbours", []) + told.get("pairs", []):
        if tuple(name) in places and charges.size:
            charges[places[tuple(name)]] = y
