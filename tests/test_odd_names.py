"""Names that are hostile, odd or huge: kept as data, seen and harmless wherever they are shown."""

from __future__ import annotations

import base64
import io
import re
import tomllib
import warnings
import xml.etree.ElementTree as ET
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import counterlvq as clvq
from counterlvq.plots import plot_batch, plot_changes, plot_image, plot_plane
from counterlvq.report import report_html, write_report
from counterlvq.safe_text import LONGEST, encodable, shown_repr, shown_text, visible
from tests.support.odd_names import ODD, harm, several
from tests.support.quick import some

ROOT = Path(__file__).resolve().parents[1]
any_text = st.text(st.characters(exclude_categories=()), max_size=60) | st.sampled_from(ODD)
seeds = pytest.mark.parametrize("seed", some(range(25), quick=10))


@pytest.fixture(autouse=True)
def _closed_figures():
    with mpl.rc_context({"backend": "Agg"}):
        yield
        plt.close("all")


def asked(seed: int, width: int = 4):
    """An explainer whose names, labels, levels and units are all odd, and its two first inputs."""
    rng = np.random.default_rng(seed)
    names = several(rng, width)
    labels = several(rng, 2)
    X = rng.normal(size=(6, width))
    model = clvq.PrototypeModel(X, [labels[k % 2] for k in range(6)], feature_names=names)
    units = several(rng, width)
    features = [clvq.Feature(*pair[:1], unit=pair[1]) for pair in zip(names, units, strict=True)]
    explainer = clvq.Explainer(
        model,
        constraints=[clvq.Freeze(names[-1]), clvq.Bounds(names[0], lower=-9)],
        features=clvq.Features(features),
    )
    return explainer, X[[0, 2]] + 0.1, labels[1]


# --- texts --------------------------------------------------------------------------------------


@given(any_text)
def test_visible_text_is_harmless_and_nothing_else_has_changed(text: str) -> None:
    seen = visible(text)
    assert not harm(seen)
    ET.fromstring(f"<a>{escape(seen)}</a>".encode())
    assert visible(seen) == seen
    unseen = harm(text)
    if not unseen and len(text) < 7:
        assert seen == text
    for letter in set(unseen):
        assert letter.strip("'") in seen


@given(any_text, st.integers(3, 200))
@example("e" + "\u0301" * 500, 3)
@example("aaaaaaaae" + "\u0301" * 8, 3)
@example("e" + "\u0301" * 30 + "\u0301a\u0301\u0301", 9)
def test_long_text_is_cut_in_the_middle(text: str, most: int) -> None:
    whole, seen = visible(text), visible(text, most)
    assert len(seen) <= most
    assert seen == whole or "…" in seen
    if seen != whole and "…" not in whole:
        head, _, tail = seen.partition("…")
        assert whole.startswith(head)
        assert whole.endswith(tail)


@given(any_text)
def test_what_is_shown_of_a_value_is_short_and_harmless(text: str) -> None:
    for seen in (shown_text(text), shown_repr(text), shown_repr((text, 1))):
        assert not harm(seen)
        assert len(seen) <= LONGEST
    encodable(text).encode()
    if not re.search("[\ud800-\udfff]", text):
        assert encodable(text) == text


def test_huge_names_take_no_time() -> None:
    assert len(visible("\x1b" * 10**7, 50)) <= 50
    features = clvq.Features(["a" * 5000 + str(k) for k in range(200)])
    with pytest.raises(clvq.UnknownFeatureError) as caught:
        features.position("a" * 5000)
    assert len(str(caught.value)) < 3000


# --- answers and errors -------------------------------------------------------------------------


@seeds
def test_answers_are_shown_harmlessly_and_hold_the_names_as_they_came(seed, tmp_path) -> None:
    explainer, rows, target = asked(seed)
    batch = explainer.explain_batch(rows, target=target)
    for cf in batch:
        for text in (str(cf), repr(cf), cf.text(), *(change.text() for change in cf.changes)):
            assert not harm(text, allowed="\n")
        # The widest line names a class, or a feature and its unit, before some numbers.
        assert max(map(len, str(cf).split("\n"))) < 2 * LONGEST + 150
        assert str(cf).count("\n") == 5 + len(cf.shown_changes)
        told = cf.to_dict()
        assert list(told["original"]) == list(explainer.features.names)
        assert told["target"] == [target]
    for text in (str(batch), repr(batch), repr(batch.summary()), str(batch.summary())):
        assert not harm(text, allowed="\n")
    assert repr(batch.summary()) == str(batch.summary())
    frame = batch.to_frame()
    assert not any(re.search("[\ud800-\udfff]", name) for name in frame.columns)
    clvq.save(explainer.model, tmp_path / "odd.clvq")
    loaded = clvq.load(tmp_path / "odd.clvq")
    assert loaded.features.names == explainer.model.features.names
    assert loaded.labels.tolist() == explainer.model.labels.tolist()


@seeds
def test_answers_that_do_not_exist_are_shown_harmlessly(seed) -> None:
    explainer, rows, target = asked(seed)
    names = explainer.features.names
    stuck = clvq.Explainer(explainer.model, constraints=[clvq.Freeze(*names)])
    cf = stuck.explain(rows[0], target=target)
    if cf.status.has_answer:  # the input has that label
        return
    assert not harm(str(cf), allowed="\n")
    assert cf.conflict == stuck.constraints


@seeds
def test_errors_quote_names_harmlessly(seed) -> None:
    explainer, rows, target = asked(seed)
    names = explainer.features.names
    asks = [
        lambda: explainer.explain(rows[0], target="\x1b[31m" + target),
        lambda: explainer.explain(dict.fromkeys(names[:1], 1.0)),
        lambda: explainer.explain(rows[0][:2]),
        lambda: clvq.Explainer(explainer.model, constraints=[f"{names[0]} <= "]),
        lambda: clvq.Explainer(explainer.model, constraints=[clvq.Freeze(names[0] + "\u202e?")]),
        lambda: clvq.Feature(names[0], levels=[]),
        lambda: clvq.Feature(names[0], levels=[names[1], names[1]]),
        lambda: clvq.Features([names[0], names[0]]),
        lambda: plot_plane(explainer, explainer.explain(rows[0]), [names[0] + "x", names[1]]),
    ]
    told = []
    for ask in asks:
        with pytest.raises(clvq.CounterlvqError) as caught:
            ask()
        told.append(str(caught.value))
    for text in told:
        assert not harm(text)
        assert len(text) <= 2000


def test_error_keeps_what_it_was_given() -> None:
    error = clvq.InvalidInputError("no \x1b[31m\nfile \ud800")
    assert error.args == ("no \x1b[31m\nfile \ud800",)
    assert str(error) == r"no \x1b[31m file \ud800"


# --- pictures and pages -------------------------------------------------------------------------


def drawing(ax) -> ET.Element:
    """The picture as a file, as outlines and as text, parsed."""
    figure = ax.figure
    for kind in ("path", "none"):
        out = io.BytesIO()
        with mpl.rc_context({"svg.fonttype": kind}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")
            figure.savefig(out, format="svg")
        root = ET.fromstring(out.getvalue())
    for part in root.iter():
        assert not harm(part.text or "", allowed="\n\r\t")
    return root


@pytest.mark.docs
@pytest.mark.parametrize("seed", some(range(4), quick=2))
def test_pictures_stay_xml(seed) -> None:
    explainer, rows, target = asked(seed)
    batch = explainer.explain_batch(rows, target=target)
    cf = next((cf for cf in batch if cf.changes), batch[0])
    drawing(plot_changes(cf, explainer))
    drawing(plot_plane(explainer, cf))
    drawing(plot_batch(batch))
    drawing(plot_image(cf, (2, 2))[0])


class Page(HTMLParser):
    """A page taken apart: its texts, its attributes, its elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.names: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs) -> None:
        self.names.append(tag)
        self.words += [value or "" for _, value in attrs]

    def handle_data(self, data) -> None:
        self.words.append(data)


@pytest.mark.docs
@pytest.mark.parametrize("seed", some(range(5), quick=2))
def test_pages_stay_utf8_and_their_pictures_xml(seed) -> None:
    explainer, rows, target = asked(seed + 100)
    rng = np.random.default_rng(seed)
    batch = explainer.explain_batch(rows, target=target)
    words = {"names": several(rng, 2), "title": several(rng, 1)[0]}
    text = report_html(explainer, batch, certificates=False, **words)
    page = Page(text.encode().decode())
    for shown in page.words:
        assert not harm(shown, allowed="\n")
    assert "script" not in page.names
    whole = Page(report_html(explainer, batch, pictures=False, **words))
    assert whole.names.count("script") == 2  # ours, and what it reads
    for part in re.findall(r"svg\+xml;base64,([A-Za-z0-9+/=]+)", text):
        root = ET.fromstring(base64.b64decode(part))
        for element in root.iter():
            assert not harm(element.text or "", allowed="\n\r\t")
    without_pictures = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert len(without_pictures) < 150_000  # a name of 10,000 letters is not repeated in full


def test_letters_that_the_font_lacks_are_left_to_the_browser() -> None:
    names = ["年収", "貯金"]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["否", "可"], feature_names=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = report_html(clvq.Explainer(model), [[0.5, 0.0]])
    (part,) = re.findall(r"svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    root = ET.fromstring(base64.b64decode(part))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(names) <= set(texts)


def test_labels_of_other_scripts_keep_their_order() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 3.0]], ["לא", "כן"])
    rows = [[0.5, 0.0], [0.2, 0.0]]
    text = report_html(clvq.Explainer(model), rows, pictures=False)
    assert text.count("<bdi>'לא'</bdi> → <bdi>'כן'</bdi>") == 2


def test_refused_pictures_leave_no_figure_behind() -> None:
    model = clvq.PrototypeModel([[0.0], [1.0]], [0, 1])
    line = clvq.Explainer(model)
    cf = line.explain([0.2])
    wide = clvq.Explainer(clvq.PrototypeModel(np.eye(3), [0, 1, 1]))
    for refused in (
        lambda: plot_plane(line, cf),
        lambda: plot_plane(wide, wide.explain([0.9, 0.1, 0.0]), ["x0", "x0"]),
        lambda: plot_plane(wide, wide.explain([0.9, 0.1, 0.0]), "x0"),
        lambda: plot_image(cf, (2, 2)),
        lambda: plot_image(cf, (1, 1), axes=[]),
        lambda: plot_batch(line.explain_batch([[0.2]]), most="many"),
    ):
        with pytest.raises((clvq.CounterlvqError, TypeError)):
            refused()
        assert plt.get_fignums() == []


def test_new_level_has_a_bar_as_long_as_its_price() -> None:
    table = pd.DataFrame({"home": ["rent", "own"] * 20, "income": np.linspace(1, 4, 40)})
    y = np.where(table["home"] == "own", "yes", "no")
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    encode = make_column_transformer((OneHotEncoder(), ["home"]), (StandardScaler(), ["income"]))
    fitted = make_pipeline(encode, clvq.GLVQ(random_state=0)).fit(table, y)
    for price in (0.25, 3.0):
        cost = clvq.Manhattan(switches={"home": price})
        explainer = clvq.Explainer(fitted, cost=cost, constraints=[clvq.Freeze("income")])
        cf = explainer.explain(table.iloc[0], target="yes")
        (bar,) = plot_changes(cf, explainer).patches
        assert bar.get_width() == price == cf.cost
        (bar,) = plot_changes(cf).patches
        assert bar.get_width() > 0


# --- what rows are called -----------------------------------------------------------------------


def called(explainer, rows, **options) -> list[str]:
    page = report_html(explainer, rows, pictures=False, **options)
    return re.findall(r'<h2 id="row-\d+">([^<]*) <span', page)


@pytest.fixture(scope="module")
def loans():
    model = clvq.PrototypeModel(
        [[0.0, 0.0], [4.0, 2.0]], ["no", "yes"], feature_names=["income", "cards"]
    )
    return clvq.Explainer(model)


def test_rows_are_called_as_in_their_table(loans, tmp_path) -> None:
    rows = pd.DataFrame({"income": [0.5, 1.0, 0.7], "cards": [0.0, 0.5, 0.1]})
    assert called(loans, rows) == ["Row 0", "Row 1", "Row 2"]
    assert called(loans, rows.iloc[[2, 0]]) == ["Row 2", "Row 0"]
    assert called(loans, rows.set_axis(["Ada", "Ben", "Cleo"])) == ["Ada", "Ben", "Cleo"]
    named = rows.rename_axis("customer")
    assert called(loans, named) == ["customer 0", "customer 1", "customer 2"]
    dates = rows.set_axis(pd.Index(["1 May", "2 May", "3 May"], name="day"))
    assert called(loans, dates.iloc[1:]) == ["2 May", "3 May"]
    twice = rows.set_index(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]))
    assert called(loans, twice) == ["a, 1", "a, 2", "b, 1"]
    assert called(loans, rows.set_axis(["a", "a", "b"])) == ["Row 0", "Row 1", "Row 2"]


@pytest.mark.parametrize(
    "column", ["id", "ID", "customer_id", "customerId", "Name", "house nr", "Key"]
)
def test_columns_that_tell_rows_apart_name_them(loans, column) -> None:
    rows = pd.DataFrame(
        {"city": ["x", "y", "z"], column: ["a", "b", "c"], "income": 0.5, "cards": [0.0, 0.5, 0.1]}
    )
    assert called(loans, rows) == ["a", "b", "c"]
    assert called(loans, rows.iloc[[2, 0]]) == ["c", "a"]
    assert called(loans, rows, names="city") == ["x", "y", "z"]
    counted = rows.assign(**{column: [7, 9, 8]})
    assert called(loans, counted) == [f"{column} {k}" for k in (7, 9, 8)]
    for useless in (["a", "a", "b"], ["a", None, "b"], [1.5, 2.0, 2.5]):
        assert called(loans, rows.assign(**{column: useless})) == ["Row 0", "Row 1", "Row 2"]
    polars = pytest.importorskip("polars")
    assert called(loans, polars.DataFrame(rows.to_dict("list"))) == ["a", "b", "c"]


def test_unusable_names_are_refused(loans) -> None:
    rows = pd.DataFrame({"income": [0.5], "cards": [0.0]})
    with pytest.raises(clvq.UnknownFeatureError, match="'costumer' does not exist"):
        called(loans, rows, names="costumer")
    with pytest.raises(clvq.InvalidInputError, match="came without names of columns"):
        called(loans, rows.to_numpy(), names="id")
    with pytest.raises(clvq.InvalidInputError, match="single answers know no table"):
        called(loans, loans.explain([0.5, 0.0]), names="id")


def test_paths_of_other_encodings_can_be_written_to(loans, tmp_path) -> None:
    for name in ("\udcff\udcfe.html", "é" * 120 + ".html", "\x1b[31m.html"):
        written = write_report(loans, [[0.5, 0.0]], tmp_path / name, pictures=False)
        assert written.read_bytes().startswith(b"<!DOCTYPE")
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


# --- hints --------------------------------------------------------------------------------------


def test_hints_name_packages_that_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needs = [need for some in (project["dependencies"], *extras.values()) for need in some]
    known = {re.match(r"[\w-]+", need).group() for need in needs} - {"counterlvq"}
    source = ROOT / "src"
    texts = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    hints = [
        hint.split()
        for path, text in texts.items()
        if path.name != "peers.py"  # runs pip itself
        for hint in re.findall(r"pip install ([\w\- {}]+)", text)
    ]
    assert len(hints) >= 7
    for hint in hints:
        for word in hint:
            assert word.startswith("{") or word.partition("{")[0] in known, hint
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for given_extras in re.findall(r'pip install "([^"]+)"', page.read_text(encoding="utf-8")):
            assert re.fullmatch(r"\.\[[a-z,]+\]", given_extras), page
            assert set(given_extras[2:-1].split(",")) <= set(extras), page
