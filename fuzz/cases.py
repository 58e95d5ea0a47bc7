"""A case: source text that builds a model and an explainer, and the same question in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.plain import Floats, Plain

HEADER = "import numpy as np, counterlvq as clvq\n"

Names = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Case:
    """Rows to ask one explainer about.

    What is asked is text, so that a failure can be handed on as a script that asks exactly the
    same. `plain` reads the names that the text defines (`model`, `explainer`) only where a model
    had to be fitted to know its numbers.
    """

    kind: str
    code: str
    X: Floats  # (n, d), levels by their positions
    targets: list[Any]  # one label per row, or None for any other
    plain: Callable[[Names], Plain]
    levels: tuple[tuple[Any, ...], ...] = ()  # of each column of a frame; () for numbers
    tags: frozenset[str] = field(default_factory=frozenset)

    def names(self) -> Names:
        """Run the text."""
        found: Names = {}
        exec(compile(HEADER + self.code, f"<{self.kind}>", "exec"), found)
        return found

    def table(self, values: Floats) -> Any:
        """Rows as the user would give them: an array, or a frame where there are levels."""
        if not self.levels:
            return values
        import pandas as pd

        columns = {}
        for j, levels in enumerate(self.levels):
            column = values[:, j]
            columns[f"x{j}"] = [levels[int(v)] for v in column] if levels else column
        return pd.DataFrame(columns)

    def row(self, values: Floats) -> Any:
        """One row as the user would give it."""
        if not self.levels:
            return values
        return {
            f"x{j}": levels[int(v)] if levels else float(v)
            for (j, levels), v in zip(enumerate(self.levels), values, strict=True)
        }

    def numbers(self, table: Any) -> Floats:
        """Rows of the user's table as numbers, levels by their positions; NaN for gaps."""
        if not self.levels:
            return np.atleast_2d(np.asarray(table, dtype=float))
        columns = []
        for j, levels in enumerate(self.levels):
            values = table[f"x{j}"]
            listed_values = [values] if isinstance(table, dict) else list(values)
            if levels:
                listed_values = [_position(v, levels) for v in listed_values]
            columns.append(np.array(listed_values, dtype=float))
        return np.stack(columns, axis=1)

    def wish(self) -> Any:
        """The target of the batch: one for all rows, or one for each."""
        first = self.targets[0]
        return first if all(target == first for target in self.targets) else self.targets

    def script(self, i: int, y: Floats | None) -> str:
        """A script that asks about row i alone, and in a batch, and shows a point to compare."""
        target, x = self.targets[i], self.row(self.X[i])
        given = x if isinstance(x, dict) else x.tolist()
        ask = f"explainer.explain({given!r}, target={target!r})"
        lines = [HEADER + self.code.rstrip(), f"cf = {ask}"]
        shown = 'print(cf.status, cf.x, "cost", cf.cost, "bound", cf.lower_bound, "gap", cf.gap)'
        lines.append(shown)
        table = "model.predict([cf.x])"
        if self.levels:
            lines.insert(0, "import pandas as pd")
            table = "model.predict(pd.DataFrame([dict(zip(explainer.features.names, cf.x))]))"
        lines.append(f'print("predict", {table} if cf.status.has_answer else None)')
        every = [self.row(row) for row in self.X]
        every = every if self.levels else self.X.tolist()
        rows = f"pd.DataFrame({every!r})" if self.levels else repr(every)
        lines.append(f"batch = explainer.explain_batch({rows}, target={self.wish()!r})")
        shown = ", ".join(f"batch.{name}[{i}]" for name in ("status", "cost", "lower_bound", "gap"))
        lines.append(f'print("in the batch", {shown})')
        if y is not None:
            other = self.row(y)
            shown_y = other if isinstance(other, dict) else other.tolist()
            lines.append(f"y = {shown_y!r}  # a point to compare")
            asked = "pd.DataFrame([y])" if self.levels else "[y]"
            lines.append(f'print("y has the label", model.predict({asked}))')
        return "\n".join(lines)


def _position(value: Any, levels: tuple[Any, ...]) -> float:
    """Position of a level; NaN for a gap, whatever a table has there."""
    is_level = isinstance(value, str | int | float | np.number) and value in levels
    return float(levels.index(value)) if is_level else np.nan


def listed(values: Any) -> str:
    """Numbers as text that reads back as the same numbers."""
    return repr(np.asarray(values).tolist())
