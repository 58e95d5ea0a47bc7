"""Proofs as plain values that JSON can hold; `told` reads them back.

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

from counterlvq.certificates.at_most import CountedCertificate, CountedQuestion
from counterlvq.certificates.box_questions import BoxQuestion
from counterlvq.certificates.boxes import BoxCertificate, BoxTree
from counterlvq.certificates.cellwise import CellCertificate, Exclusion
from counterlvq.certificates.certificate import Certificate
from counterlvq.certificates.duality import Proof
from counterlvq.certificates.questions import Question
from counterlvq.numeric.arrays import Floats
from counterlvq.numeric.tolerances import HUGE
from counterlvq.programs.nonconvex import Box, FormSides, LiftedMultipliers
from counterlvq.programs.program import Multipliers

__all__ = ["Numbering", "proof_values"]

Values = dict[str, Any]


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
            cell: Values = {"prototype": int(tree.prototype), "kind": "tree"}
            if _uses_forms(nodes):
                forms = [_listed(np.arange(form.size), form) for form in tree.forms]
                cell |= {"kind": "form tree", "forms": forms}
            cells.append({**cell, "nodes": nodes})
    return {"cells": cells}


def _uses_forms(nodes: list[Values]) -> bool:
    """Whether linear forms are cut or charged for: other trees are written without them."""
    charged = {key for node in nodes for key in node.get("charges", ())}
    return any(node["kind"] == "form cut" for node in nodes) or any(
        key.startswith("form_") for key in charged
    )


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
        out["rivals"] = [[k, y] for k, y in rivals if 0.0 < y < HUGE]
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
    return np.where(np.abs(values) < HUGE, values, 0.0)


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
        waiting: list[tuple[int, Box, Box, Values | None, str]]
        everything = Box.whole(self.question.x.size), Box.whole(len(self.tree.forms))
        waiting = [(0, *everything, None, "")]
        while waiting:
            at, outer, within, parent, side = waiting.pop()
            if parent is not None:
                parent[side] = len(nodes)
            own = max(float(self.tree.caps[at]), self.cap)
            box = self.question.inside(outer, own)
            node = self._node(at, box, own, self.tree.sides(self.question, within, box, own))
            nodes.append(node)
            if np.isfinite(self.cap) and own > self.cap:
                node["cap"] = own if np.isfinite(own) else None
            if node["kind"] in ("cut", "form cut"):
                below, above = self.tree.parts(self.question, at, box, within)
                waiting += [(*above, node, "high"), (*below, node, "low")]
        return nodes

    def _node(self, at: int, box: Box, own: float, sides: FormSides | None) -> Values:
        question, i, prices = self.question, self.tree.prototype, self.tree.prices[at]
        is_open = box.is_empty or (sides is not None and sides.is_empty)
        if is_open or question.is_ruled_out(box) or question.loses_ties(i, box):
            return {"kind": "open" if is_open else "lost"}
        told = (i, prices, box, own, self.margin)
        is_whole = bool(self.tree.feature[at] < 0)
        if np.isfinite(self.goal) and question.bound(*told, sides=sides) >= self.goal:
            return {"kind": "bound", "charges": self._charges(told, sides, with_cost=True)}
        if (is_whole or not np.isfinite(self.goal)) and question.contradicts(*told, sides=sides):
            return {"kind": "empty", "charges": self._charges(told, sides, with_cost=False)}
        if is_whole:
            return {"kind": "bound", "charges": self._charges(told, sides, with_cost=True)}
        feature, place = int(self.tree.feature[at]), float(self.tree.at[at])
        if feature >= question.x.size:
            return {"kind": "form cut", "form": feature - question.x.size, "at": place}
        return {"kind": "cut", "coordinate": feature, "at": self._place(feature, place)}

    def _place(self, feature: int, at: float) -> float:
        """Where a cut is; on a grid half way between the values that it parts, without a doubt."""
        if self.question.template.grid.step[feature] == 0:
            return at
        ticks = self.question.ticks
        below = ticks.below(np.full(self.question.x.size, at))
        middle = float(0.5 * (below[feature] + ticks.next_above(below)[feature]))
        return middle if np.isfinite(middle) else at

    def _charges(
        self, told: tuple[int, LiftedMultipliers, Box, float, float], sides: FormSides | None,
        *, with_cost: bool,
    ) -> Values:  # fmt: skip
        """Write what is charged for in one box."""
        i, prices, box, own, _ = told
        problem = self.question.problem(i, box)
        out: Values = {}
        forms = np.maximum(_usable(prices.forms), 0.0)
        out["rivals"] = _listed(self.question.cells.rivals, forms[: problem.rivals])
        out |= _linear(prices.linear, self.numbering)
        out |= self._on_grid(forms[problem.rivals :])
        named = ("low", "high", "cross", "signs", "form_low", "form_high", "form_cross")
        for name in named:
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
        point = self.question.tangency(*told, with_cost=with_cost, sides=sides)
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
