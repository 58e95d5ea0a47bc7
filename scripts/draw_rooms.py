"""The picture of the rooms in `docs/design.md`, drawn from the imports: part of `make pictures`.

A room is a module or a package at the top of `src/counterlvq`, or another import package in `src`.
It stands one level above the highest room that it imports. A line leads from a room down to one
that it imports; lines that follow from others are left out, so that the picture can be read.
The same sources always give the same bytes, and a test compares them with the stored picture.

Takes the file to write; by default the one that the page shows.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
MAIN = "counterlvq"

Imports = dict[str, set[str]]

# --- who imports whom ---------------------------------------------------------------------------


def room_of(module: str) -> str | None:
    """Name the room of a dotted module; None for what is not ours, and for the surface itself."""
    package, _, rest = module.partition(".")
    if package == MAIN:
        return rest.partition(".")[0] or None
    return package if package.startswith(f"{MAIN}_") else None


def modules(source: Path) -> Iterator[tuple[str, Path]]:
    """Every module below a folder, by its dotted name."""
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(path: Path, known: set[str]) -> Iterator[str]:
    """Modules that a file imports, wherever in the file it does so. Imports are absolute here."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def imports(source: Path = SOURCE) -> Imports:
    """For each room the rooms that it imports."""
    files = list(modules(source))
    known = {module for module, _ in files}
    out: Imports = {}
    for module, path in files:
        room = room_of(module)
        if room is None or room == "__main__":
            continue
        others = {room_of(name) for name in imported(path, known)}
        out.setdefault(room, set()).update(other for other in others if other not in (None, room))
    return out


# --- levels -------------------------------------------------------------------------------------


def levels(graph: Imports) -> dict[str, int]:
    """Level of each room: 0 imports nothing, others stand above all that they import."""
    found: dict[str, int] = {}

    def visit(room: str, path: tuple[str, ...]) -> int:
        if room in path:
            raise SystemExit(f"imports go in a circle: {' -> '.join([*path, room])}")
        if room not in found:
            below = [visit(other, (*path, room)) for other in sorted(graph[room])]
            found[room] = 1 + max(below, default=-1)
        return found[room]

    for room in sorted(graph):
        visit(room, ())
    return found


def reduced(graph: Imports) -> Imports:
    """The same imports without those that follow from others."""
    reach: Imports = {}
    for room in sorted(graph, key=levels(graph).__getitem__):
        reach[room] = graph[room].union(*(reach[other] for other in graph[room]))
    return {
        room: {
            other
            for other in others
            if not any(other in reach[between] for between in others - {other})
        }
        for room, others in graph.items()
    }


def rows(graph: Imports) -> list[list[str]]:
    """Rooms by level, lowest first; within a level, near to what they import."""
    level = levels(graph)
    out: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for room in sorted(graph):
        out[level[room]].append(room)
    place: dict[str, float] = {}
    for row in out:
        here = {room: [place[other] for other in graph[room]] for room in row}
        row.sort(key=lambda room: (sum(here[room]) / len(here[room]) if here[room] else 0.5, room))
        place |= {room: (k + 0.5) / len(row) for k, room in enumerate(row)}
    return out


# --- the picture --------------------------------------------------------------------------------

LETTER, HIGH, GAP, RISE, EDGE = 7.3, 24, 14, 62, 20


def drawn(graph: Imports, packages: set[str]) -> str:
    """Draw rooms and lines as SVG."""
    lines, layers = reduced(graph), rows(reduced(graph))
    wide = {room: round(LETTER * len(label(room, packages)) + 18) for room in graph}
    length = [sum(wide[room] for room in row) + GAP * (len(row) - 1) for row in layers]
    width = max(length) + 2 * EDGE
    height = RISE * (len(layers) - 1) + HIGH + 2 * EDGE
    at: dict[str, tuple[float, int]] = {}
    for k, row in enumerate(layers):
        x = (width - length[k]) / 2
        y = height - EDGE - HIGH - RISE * k
        for room in row:
            at[room] = x, y
            x += wide[room] + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="ui-monospace, monospace" font-size="12">',
        "<title>Rooms of counterlvq: a line leads down from a room to one that it imports</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<g fill="none" stroke="#8c959f" stroke-width="1">',
    ]
    for room in sorted(graph):
        x, y = at[room][0] + wide[room] / 2, at[room][1] + HIGH
        for other in sorted(lines[room]):
            u, v = at[other][0] + wide[other] / 2, at[other][1]
            bend = (v - y) / 2
            out.append(
                f'<path d="M{x:.1f} {y} C{x:.1f} {y + bend} {u:.1f} {v - bend} {u:.1f} {v}"/>'
            )
    out.append("</g>")
    for room in (room for row in layers for room in row):
        x, y = at[room]
        fill = "#ddf4ff" if room in packages else "#f6f8fa"
        told = ", ".join(sorted(graph[room])) or "nothing of this package"
        out.append(
            f'<g><title>{escape(room)} imports {escape(told)}</title><rect x="{x:.1f}" y="{y}" '
            f'width="{wide[room]}" height="{HIGH}" rx="4" fill="{fill}" stroke="#57606a"/>'
            f'<text x="{x + wide[room] / 2:.1f}" y="{y + 16}" text-anchor="middle" '
            f'fill="#1f2328">{escape(label(room, packages))}</text></g>'
        )
    return "\n".join([*out, "</svg>", ""])


def label(room: str, packages: set[str]) -> str:
    """Packages end with a slash, as folders do."""
    return f"{room}/" if room in packages else room


def picture(source: Path = SOURCE) -> str:
    """The picture of the rooms below a folder."""
    folders = {path.parent.name for path in (source / MAIN).glob("*/__init__.py")}
    folders |= {path.parent.name for path in source.glob(f"{MAIN}_*/__init__.py")}
    return drawn(imports(source), folders)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    path.write_text(picture(), encoding="utf-8")
    print(f"{path.parent.name}/{path.name}")


if __name__ == "__main__":
    main()
