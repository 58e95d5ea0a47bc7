"""Write the page about some answers to a file."""

from __future__ import annotations

import os
import re
import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterlvq.batch.result import CounterfactualBatch
from counterlvq.certificate_files.lines import Writer, text_of
from counterlvq.errors import InvalidInputError
from counterlvq.explainer import Explainer
from counterlvq.files import whole_file
from counterlvq.numeric.arrays import told
from counterlvq.plots.plane import PLANE_SIZE, draw_plane
from counterlvq.plots.style import require_matplotlib
from counterlvq.presentation.numbers import bound_text, cost_text
from counterlvq.presentation.rules import called_by
from counterlvq.presentation.wording import Wording
from counterlvq.report.content import read_answer
from counterlvq.report.html import Picture, Section, page
from counterlvq.report.row_names import row_names
from counterlvq.report.summary import read_summary
from counterlvq.results import Counterfactual
from counterlvq.types import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["report_html", "write_report"]

_NO_GLYPH = re.compile(r"Glyph .* missing from font|.* does not have a glyph")


def write_report(
    explainer: Explainer,
    answers: Any,
    path: str | os.PathLike[str],
    *,
    target: Any = None,
    title: str = "What would have to change",
    names: str | Sequence[str] | None = None,
    pictures: bool = True,
    limit: int = 50,
    certificates: bool = True,
    text: Mapping[str, Any] | None = None,
) -> Path:
    """Write one HTML page about some answers; it opens offline and loads nothing.

    For each row: the answer in a sentence, before and after in a table with the changes as
    bars, the plane of the proof, and the certificate in plain words; for a row without an
    answer, why. The file appears whole or not at all.

    Parameters
    ----------
    explainer : Explainer
        The one that gave the answers.
    answers : Counterfactual, sequence of them, CounterfactualBatch, or rows
        Rows (an array of shape (n, d) or a DataFrame) are explained first; such that cannot be
        read are told apart.
    path : path
        An existing file is replaced.
    target : label, labels, or None
        For rows that are explained here, as in `Explainer.explain_batch`.
    title : str
    names : str or sequence of str, optional
        What to call the rows: the name of a column of their table, or a name for each. By
        default as the index of a pandas frame says, or a column that the model does not see and
        that tells rows apart, such as ``id`` or ``name``; else by their position.
    pictures : bool, default True
        Whether to draw the planes, for which matplotlib is needed.
    limit : int, default 50
        How many rows are shown in full; the page says so if there are more.
    certificates : bool, default True
        Whether the proofs are on the page as certificates, which a button adds up in the browser.
        They hold the model: the prototypes of a nearest neighbour are training rows.
    text : mapping, optional
        How answers are worded: arguments of `Counterfactual.text`, such as
        ``{"subject": "Your application", "numbers": "1.234,5"}``.

    Returns
    -------
    Path

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.report import write_report
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    >>> page = write_report(clvq.Explainer(model), [[1.0, 0.0]], getfixture("tmp_path") / "a.html")
    >>> page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    html = report_html(
        explainer,
        answers,
        target=target,
        title=title,
        names=names,
        pictures=pictures,
        limit=limit,
        certificates=certificates,
        text=text,
    )
    return _written(Path(path), html)


def report_html(
    explainer: Explainer,
    answers: Any,
    *,
    target: Any = None,
    title: str = "What would have to change",
    names: str | Sequence[str] | None = None,
    pictures: bool = True,
    limit: int = 50,
    certificates: bool = True,
    text: Mapping[str, Any] | None = None,
) -> str:
    """Build the page of `write_report` as text.

    Examples
    --------
    >>> import counterlvq as clvq
    >>> from counterlvq.report import report_html
    >>> model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    >>> explainer = clvq.Explainer(model)
    >>> "x0 were 1.51 higher" in report_html(explainer, explainer.explain([1.0, 0.0]))
    True
    """
    if not isinstance(explainer, Explainer):
        raise InvalidInputError(
            f"explainer is {told(explainer)}; expected the Explainer that gave the answers. It "
            f"comes first, the answers second."
        )
    said = Wording(**(text or {})).checked(explainer.model.classes.tolist())
    wording = called_by(said, explainer.constraints, explainer.features)
    if pictures:
        require_matplotlib(", or leave the pictures out (pictures=False, --no-pictures)")
    column = names if isinstance(names, str) else None
    cfs, called = _answers_of(explainer, answers, target, column)
    if names is not None and not isinstance(names, str):
        if len(names) != len(cfs):
            raise InvalidInputError(f"names has {len(names)}; expected {len(cfs)}, one per row.")
        called = [str(name) for name in names]
    writer = Writer.of(explainer) if certificates else None
    sections = [
        Section(
            read_answer(explainer, cf, name, wording),
            _picture(explainer, cf) if pictures and _has_plane(explainer, cf) else None,
            writer.text(cf) if writer and cf.status is not Status.INVALID else None,
        )
        for cf, name in zip(cfs[:limit], called, strict=False)
    ]
    header = None
    if writer is not None and any(section.line is not None for section in sections):
        header = text_of(writer.header(apart=False))
    return page(title, read_summary(explainer, cfs, wording), sections, header)


def _has_plane(explainer: Explainer, cf: Counterfactual) -> bool:
    features = explainer.features
    if cf.status is Status.INVALID or explainer.scales:
        return False
    return len(features) > 1 and all(feature.is_number for feature in features)


def _answers_of(
    explainer: Explainer, answers: Any, target: Any, column: str | None
) -> tuple[list[Counterfactual], list[str]]:
    single = isinstance(answers, Counterfactual)
    several = isinstance(answers, Sequence) and any(isinstance(a, Counterfactual) for a in answers)
    if column is not None and (single or several):
        raise InvalidInputError(
            f"names is {column!r}, and single answers know no table; expected a list with a name "
            f"for each answer, or a batch."
        )
    if single:
        return [answers], ["Answer"]
    if several:
        for k, cf in enumerate(answers):
            if not isinstance(cf, Counterfactual):
                raise InvalidInputError(
                    f"answers[{k}] is a {type(cf).__name__}; expected a Counterfactual, as the "
                    f"others."
                )
        return list(answers), [f"Row {k}" for k in range(len(answers))]
    if not isinstance(answers, CounterfactualBatch):
        answers = explainer.explain_batch(answers, target=target, on_bad_rows="report")
    elif target is not None:
        raise InvalidInputError(
            "target is given with answers that are there already; expected rows to explain, or "
            "no target."
        )
    return list(answers), row_names(answers, column)


def _picture(explainer: Explainer, cf: Counterfactual) -> Picture:
    from matplotlib.figure import Figure

    # A figure of our own, which no window and no other drawing knows of. The salt makes the
    # names inside the file, and so the page, the same every time.
    figure = Figure(figsize=PLANE_SIZE, layout="constrained")
    ax = draw_plane(figure.subplots(), explainer, cf, None, fill_figure=True)
    drawn, lacks = _svg(figure, "path")
    if lacks:
        # The browser has, or finds, other fonts than the one that outlines are taken from.
        drawn, _ = _svg(figure, "none")
    # Axis labels carry no mathematics, so that the escape of the dollar sign is all there is.
    across, up = (text.replace(r"\$", "$") for text in (ax.get_xlabel(), ax.get_ylabel()))
    return Picture(
        b64encode(_lean(drawn)).decode("ascii"),
        f"Slice through the model's cells; across: {across}; up: {up}. {_seen(cf)}",
    )


def _svg(figure: Figure, text: str) -> tuple[bytes, bool]:
    """Draw text as outlines ("path") or as text ("none"); say whether the font lacks letters."""
    import matplotlib as mpl

    drawn = BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with mpl.rc_context({"svg.hashsalt": "counterlvq", "svg.fonttype": text}):
            figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    missing = [bool(_NO_GLYPH.match(str(warning.message))) for warning in caught]
    for warning, is_missing in zip(caught, missing, strict=True):
        if not is_missing:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return drawn.getvalue(), any(missing)


def _lean(svg: bytes) -> bytes:
    """Cut coordinates of outlines to hundredths of a point, which is half of the file."""

    def cut(outline: re.Match[bytes]) -> bytes:
        return re.sub(rb"(\.\d\d)\d+", rb"\1", outline.group())

    return re.sub(rb' d="[^"]*"', cut, svg)


def _seen(cf: Counterfactual) -> str:
    if not cf.status.has_answer or not cf.changes:
        return cf.text()
    shape = f"All that costs less than {bound_text(cf.lower_bound)} lies around the input"
    if cf.status is Status.OPTIMAL:
        if cf.kept_words:
            return f"{shape} and reaches the counterfactual; it holds no other{cf.kept_words}."
        return f"{shape} and reaches the counterfactual without entering the cells wished for."
    return f"{shape} and does not reach the counterfactual, which costs {cost_text(cf.cost)}."


def _written(path: Path, text: str) -> Path:
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"the page cannot be written to {path}: the folder {path.parent} does not exist. "
            f"Make it first, or choose another path."
        )
    with whole_file(path) as file:
        file.write(text.encode())
    return path
