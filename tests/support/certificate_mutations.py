"""Certificate files with one thing changed."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

from counterlvq.certificates import check_certificate as checker


def mutated(
    header: dict[str, Any], line: dict[str, Any], rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Change one number, sign, index, label, row, box or status; hashes are put right as a rule."""
    header, line = copy.deepcopy(header), copy.deepcopy(line)
    whole: Any = {
        "header": {key: header[key] for key in ("model", "question")},
        "line": {key: line[key] for key in ("input", "target", "answer", "proof")},
    }
    part = ["header", "line"][int(rng.random() < 0.7)]
    places = list(_places(whole[part]))
    # Numbers of the answer and indices are few among many multipliers: each depth has its turn.
    groups = sorted({str(path[:2]) for path, _ in places})
    group = groups[int(rng.integers(len(groups)))]
    chosen = [place for place in places if str(place[0][:2]) == group]
    path, _ = chosen[int(rng.integers(len(chosen)))]
    parent = whole[part]
    for key in path[:-1]:
        parent = parent[key]
    old = parent[path[-1]]
    parent[path[-1]] = new = _other(old, rng)
    if new is Ellipsis:
        del parent[path[-1]]
    if part == "header" and rng.random() < 0.9:
        exact = checker.parsed(json.dumps(header)) if _is_plain(header) else header
        try:
            line["hashes"] = {key: checker.fingerprint(exact[key]) for key in ("model", "question")}
        except (TypeError, OverflowError, ValueError):
            line["hashes"] = {}
    return header, line, f"{part} {path}: {str(old)[:40]} -> {str(new)[:40]}"


def _is_plain(header: Any) -> bool:
    try:
        checker.parsed(json.dumps(header))
    except checker.Refused:
        return False
    return True


def _places(item: Any, path: tuple[Any, ...] = ()) -> Any:
    pairs = item.items() if isinstance(item, dict) else enumerate(item)
    for key, value in list(pairs):
        yield (*path, key), value
        if isinstance(value, dict | list):
            yield from _places(value, (*path, key))


def _other(old: Any, rng: np.random.Generator) -> Any:
    choice = int(rng.integers(8))
    if isinstance(old, bool) or old is None:
        return [0.0, 1, "x", [], not old][int(rng.integers(5))]
    if isinstance(old, int):
        return [old + 1, old - 1, -old, 0, 10**6, 0.5, "1", ...][choice]
    if isinstance(old, float):
        return [
            -old, old * (1 + 1e-3), old * (1 - 1e-3), 0.0, old + 1.0, 1e300, old * 1e-6, ...
        ][choice]  # fmt: skip
    if isinstance(old, str):
        words = ["optimal", "infeasible", "feasible", "unknown", "empty", "bound", "lost", "=="]
        return words[choice]
    if isinstance(old, list) and old:
        n = int(rng.integers(len(old)))
        return [
            old[::-1], old[:n] + old[n + 1 :], [*old, old[n]], [], old[n:] + old[:n], {}, ..., [old]
        ][choice]  # fmt: skip
    return [{}, [], None, 0][choice % 4]
