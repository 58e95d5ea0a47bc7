"""The report: says what was answered, escapes what it is handed, loads nothing, appears whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterlvq as clvq
from counterlvq.markup.parts import looks
from counterlvq.markup.tags import Safe, tag
from counterlvq.presentation.bounds import proved
from counterlvq.report import report_html, write_report
from counterlvq.report.content import read_answer
from counterlvq.report.row_names import names_in_frame
from tests.support.markup import Elements

EVIL = "<script>alert(1)</script>\" onload='x' & <b>"


class Page(Elements):
    """A page, whose elements are closed in the order in which they are opened."""

    def all(self, name: str) -> list[dict[str, str]]:
        return [attributes for found, attributes in self.elements if found == name]


@pytest.fixture(scope="module")
def loans():
    features = [
        clvq.Feature("income", unit="EUR"),
        clvq.Feature("savings", unit="EUR"),
        clvq.Feature("age"),
    ]
    model = clvq.PrototypeModel(
        [[1000, 500, 30], [1500, 900, 50], [3000, 2000, 35], [2600, 3000, 60]],
        ["rejected", "rejected", "accepted", "accepted"],
        omegas=np.diag([1e-3, 1e-3, 1e-2]),
        feature_names=features,
    )
    constraints = [clvq.Freeze("age"), "income <= 2 * original(income)"]
    cost = clvq.Manhattan([1e-3, 2e-3, 1.0])
    return clvq.Explainer(model, cost=cost, constraints=constraints)


ROWS = np.array([[1100.0, 600.0, 40.0], [1500.0, 1800.0, 50.0], [3100.0, 2000.0, 33.0]])


def test_page_says_what_was_answered(loans) -> None:
    batch = loans.explain_batch(ROWS, target="accepted")
    page = Page(report_html(loans, batch, title="Loans"))
    for cf in batch:
        assert cf.text() in page.text
        if cf.changes:
            assert f"{cf.shown.cost:.6g}" in page.text
            again = proved(cf.cost, cf.lower_bound).again(loans.verify(cf))
            assert f"it gave {again}, the same" in page.text
    assert "1,100 EUR" in page.text
    assert "nothing needs to change" in page.text
    assert "income <= 2 * original(income)" in page.text


def test_price_of_a_constraint_is_the_cost_without_it(loans) -> None:
    cf = loans.explain(ROWS[0], target="accepted")
    freed = clvq.Explainer(loans.model, cost=loans.cost, constraints=[loans.constraints[0]])
    cheaper = freed.explain(ROWS[0], target="accepted").cost
    assert cheaper < cf.cost
    saved = f"{cf.cost - cheaper:.6g} of {cf.cost:.6g}, for a cost of {cheaper:.6g}"
    words = f"{loans.constraints[1]} : lifting it would save {saved}."
    assert words in Page(report_html(loans, cf, pictures=False)).text


def test_a_range_that_holds_a_value_where_it_is_has_a_price() -> None:
    """The answer leaves the income at the end of what was seen; lifting that saves the rest."""
    model = clvq.PrototypeModel([[4.0, 2.0], [9.0, 0.0]], ["bad", "good"], feature_names=["a", "b"])
    features = clvq.Features([clvq.Feature("a", seen=(1, 5)), clvq.Feature("b", seen=(-9, 9))])
    explainer = clvq.Explainer(model, features=features)
    for start in (5.0, 4.9):
        cf = explainer.explain([start, 2.0], target="good")
        page = Page(report_html(explainer, cf, pictures=False)).text
        assert "a from 1 to 5 as usual in the data : lifting it would save" in page
        assert "b from -9 to 9 as usual in the data : lifting" not in page


def test_leads_times_prices_are_what_the_page_says() -> None:
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], ["no", "yes"])
    explainer = clvq.Explainer(model)
    page = Page(report_html(explainer, explainer.explain([1.0, 0.0]), pictures=False))
    # |x - yes|^2 - |x - no|^2 = 13 - 1; along x0, the cheapest way, that falls by 8 per unit.
    assert "0, 'no' 12 0.125" in page.text
    assert "Leads times prices add up to the bound." in page.text


def test_rows_with_gaps_are_asked_about_as_they_came() -> None:
    """The mean of whole numbers is none, and stands in for a missing one all the same."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 10, 60).astype(float), "b": rng.normal(0, 1, 60)})
    labels = np.where(table["a"] / 5 + table["b"] > 1, "good", "bad")
    table.loc[:9, "a"] = np.nan
    steps = SimpleImputer(), StandardScaler(), clvq.GLVQ(random_state=0)
    features = clvq.Features([clvq.Feature("a", "whole"), "b"])
    model = make_pipeline(*steps).fit(table, labels)
    free = clvq.Explainer(model, features=features)
    tight = clvq.Explainer(model, features=features, constraints=["b <= -0.5"])
    cf = tight.explain(table.iloc[0], target="good")
    assert cf.missing.tolist() == [True, False]
    (pressure,) = read_answer(tight, cf, "0").pressures
    best = free.explain(table.iloc[0], target="good").cost
    assert best < cf.cost
    assert pressure.words.endswith(f"for a cost of {best:.6g}")
    assert "for a cost of" in report_html(tight, table.head(2), target="good", pictures=False)


def test_bars_are_as_long_as_the_changes_weigh(loans) -> None:
    cf = loans.explain(ROWS[0], target="accepted")
    moves = abs(cf.shown.values - cf.original_values)  # of the row that the page shows
    weights = sorted((moves * loans.cost.weights).tolist(), reverse=True)[:2]
    page = Page(report_html(loans, cf, pictures=False))
    widths = [float(rect["width"]) for rect in page.all("rect")]
    assert np.allclose(np.array(widths) / widths[0], np.array(weights) / weights[0], atol=1e-3)


def test_page_can_be_read_by_everyone(loans) -> None:
    stuck = clvq.Explainer(loans.model, constraints=[clvq.Freeze("age", "income", "savings")])
    for explainer in (loans, stuck):
        page = Page(report_html(explainer, ROWS, target="accepted"))
        assert page.all("html")[0]["lang"] == "en"
        assert page.all("title")
        assert len(page.all("h1")) == 1
        assert all(image["alt"].strip() for image in page.all("img"))
        assert len(page.all("img")) == len(ROWS)
        assert all(head.get("scope") in ("row", "col") for head in page.all("th"))
        assert len(page.all("caption")) == len(page.all("table"))
        levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
        assert all(b - a <= 1 for a, b in pairwise(levels))
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        named = {link["href"] for link in page.all("a")}
        named |= {f"#{part['aria-labelledby']}" for part in page.all("section")}
        assert named <= {f"#{name}" for name in ids}


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(a: str, b: str) -> float:
    high, low = sorted([luminance(a), luminance(b)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_stands_out_in_light_dark_and_print() -> None:
    css = looks()
    pairs = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css)
    printed = css[css.index("@media print") :]
    schemes = [
        {name: light for name, light, _ in pairs},
        {name: dark for name, _, dark in pairs},
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", printed)),
    ]
    assert schemes[0].keys() == schemes[1].keys() == schemes[2].keys()
    for colours in schemes:
        for ground in ("paper", "card"):
            for ink in ("ink", "muted", "accent"):
                assert contrast(colours[ink], colours[ground]) >= 4.5
            for fill in ("up", "down"):
                assert contrast(colours[fill], colours[ground]) >= 3.0
        for kind in ("good", "warn", "bad"):
            assert contrast(colours[kind], colours[f"{kind}-ground"]) >= 4.5


def test_everything_from_outside_is_escaped() -> None:
    model = clvq.PrototypeModel(
        [[0.0, 0.0], [4.0, 2.0]],
        [EVIL, f"{EVIL}2"],
        feature_names=[clvq.Feature(EVIL, unit="<i>"), "plain"],
    )
    rules = [clvq.Bounds("plain", upper=3), f"`{EVIL}` <= 9"]
    explainer = clvq.Explainer(model, constraints=rules)
    stuck = clvq.Explainer(model, constraints=[f"`{EVIL}` <= 0", "plain <= 0"])
    for asked in (explainer, stuck):
        html = report_html(asked, [[0.5, 0.0]], title=EVIL, names=[EVIL])
        assert html.count("<script") == html.count("</script") == 2  # ours, and what it reads
        assert "<b>" not in html
        assert "<i>" not in html
        page = Page(html)
        assert EVIL in page.text
        handlers = [key for _, found in page.elements for key in found if key.startswith("on")]
        assert not handlers


def test_markup_escapes_all_but_its_own() -> None:
    assert tag("p", "<a>", tag("b", "&"), None) == "<p>&lt;a&gt;<b>&amp;</b></p>"
    assert tag("a", href='"><x') == '<a href="&quot;&gt;&lt;x"></a>'
    assert tag("p", str(Safe("<i>"))) == "<p>&lt;i&gt;</p>"


@pytest.mark.parametrize("certificates", [True, False])
def test_page_names_no_address_and_allows_none(loans, certificates: bool) -> None:
    html = report_html(loans, ROWS[:1], target="accepted", certificates=certificates)
    # The name of SVG is nothing to load.
    plain = re.sub(r"base64,[A-Za-z0-9+/=]+|http://www.w3.org/2000/svg", "", html)
    assert not re.search(r"https?:|[^:]//[a-z]|@import|url\(", plain)
    policies = [meta["content"] for meta in Page(html).all("meta") if "http-equiv" in meta]
    strict = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    if not certificates:
        assert policies == [strict]
        assert not Page(html).all("script")
        return
    (script,) = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policies == [f"{strict}; script-src 'sha256-{digest}'"]


def test_infeasible_row_shows_its_conflict(loans) -> None:
    stuck = clvq.Explainer(
        loans.model, constraints=["income <= 1200", clvq.Decrease("savings"), "age <= 45"]
    )
    cf = stuck.explain(ROWS[0], target="accepted")
    assert cf.status == "infeasible"
    page = Page(report_html(stuck, cf))
    assert "proved: none exists" in page.text
    assert "leave no room together" in page.text
    assert "no increase of savings" in page.text


def test_unknown_and_unproved_are_not_sold_as_proved() -> None:
    rng = np.random.default_rng(4)
    model = clvq.PrototypeModel(
        rng.normal(size=(4, 2)), ["a", "b", "a", "b"], rng.normal(size=(4, 2, 2))
    )
    loose = clvq.Explainer(model, method="ccp")
    page = Page(report_html(loose, loose.explain(model.prototypes[0])))
    assert "Nothing is proved about closer counterfactuals" in page.text
    assert "proved closest 0" in page.text or "0 proved closest" in page.text.replace("  ", " ")
    late = clvq.Explainer(model, time_limit=0)
    page = Page(report_html(late, late.explain(model.prototypes[0])))
    assert "none found" in page.text
    tight = clvq.Explainer(model, method="global")
    page = Page(report_html(tight, tight.explain(model.prototypes[0])))
    assert re.search(r"cuts all cheaper changes into [\d,]+ box", page.text)


def test_rows_answers_and_batches_give_the_same_page(loans) -> None:
    batch = loans.explain_batch(ROWS, target="accepted")
    from_rows = report_html(loans, ROWS, target="accepted", pictures=False)
    assert from_rows == report_html(loans, batch, pictures=False)
    assert from_rows == report_html(loans, list(batch), pictures=False)
    picked = Page(report_html(loans, batch[[2, 0]], pictures=False))
    assert picked.text.index("Row 2") < picked.text.index("Row 0")


def test_page_is_the_same_every_time(loans) -> None:
    first, second = (report_html(loans, ROWS[:1], target="accepted") for _ in range(2))
    assert first == second


def test_more_rows_than_the_limit_are_counted(loans) -> None:
    page = Page(report_html(loans, ROWS, target="accepted", pictures=False, limit=1))
    assert "2 more rows are counted above and not shown below." in page.text
    assert len([part for part in page.all("section") if part.get("class") == "row"]) == 1


def test_single_feature_has_no_plane() -> None:
    explainer = clvq.Explainer(clvq.PrototypeModel([[0.0], [2.0]], [0, 1]))
    assert not Page(report_html(explainer, [[0.5]])).all("img")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ["one"]}, "names has 1; expected 3"),
        ({"target": "accepted"}, "target is given with answers that are there already"),
    ],
)
def test_unusable_requests_are_refused(loans, arguments, words) -> None:
    batch = loans.explain_batch(ROWS, target="accepted")
    with pytest.raises(clvq.InvalidInputError, match=words):
        report_html(loans, batch, pictures=False, **arguments)


def test_mixed_lists_are_refused(loans) -> None:
    cf = loans.explain(ROWS[0])
    with pytest.raises(clvq.InvalidInputError, match=r"answers\[1\] is a str"):
        report_html(loans, [cf, "cf"])


def test_price_of_a_rule_about_levels_is_the_cost_without_it() -> None:
    features = clvq.Features(["pay", clvq.Feature("grade", levels=[0, 2, 4])])
    names = ["pay", "grade"]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], feature_names=names)
    rules = ["grade != 4", "grade in [0, 2, 4]"]
    explainer = clvq.Explainer(
        model, clvq.Manhattan(switches={"grade": 1.0}), constraints=rules, features=features
    )
    cf = explainer.explain({"pay": 1.5, "grade": 0}, "yes")
    assert cf.cost == pytest.approx(1.5)  # grade 2, and half a unit of pay; grade 4 alone would do
    saving = Page(report_html(explainer, cf)).text.partition("What lifting")[2]
    assert f"{rules[0]} : lifting it would save 0.5 of 1.5, for a cost of 1." in saving
    assert rules[1] not in saving  # which rules nothing out, and so saves nothing
    priced = clvq.Explainer(model, clvq.Manhattan(switches={"grade": 0.5}), features=features)
    assert "another grade costs 0.5" in Page(report_html(priced, priced.explain([1.5, 0]))).text


def test_bar_of_a_switch_is_as_long_as_its_price() -> None:
    features = clvq.Features(["pay", clvq.Feature("grade", levels=[0, 2, 4])])
    names = ["pay", "grade"]
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 4.0]], ["no", "yes"], feature_names=names)
    for cost, weight in (
        (clvq.Manhattan([1.0, 0.4]), 0.8),  # a difference of 2
        (clvq.Manhattan(switches={"grade": {(0, 2): 0.25}}, default=1.0), 0.25),
        (clvq.Euclidean(switches={"grade": 0.25}), 0.5),
    ):
        explainer = clvq.Explainer(model, cost, ["grade != 4"], features=features)
        cf = explainer.explain({"pay": 1.0, "grade": 0}, "yes")
        assert [change.feature for change in cf.changes] == names
        assert abs(cf.changes[0].difference) == pytest.approx(1.0, rel=1e-4)
        found = {value.feature: value.weight for value in read_answer(explainer, cf, "").values}
        shown = float(cf.shown.values[0]) - 1.0  # the longer bar, whose length is 1
        assert found == pytest.approx({"pay": 1.0, "grade": weight / shown}, rel=1e-3)


# --- the file -----------------------------------------------------------------------------------


def test_file_is_replaced_whole(loans, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")
    assert write_report(loans, ROWS[:1], path, target="accepted", pictures=False) == path
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]


def test_failed_write_leaves_the_old_file_and_no_other(
    loans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_report(loans, ROWS[:1], path, pictures=False)
    assert path.read_text(encoding="utf-8") == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]


def test_missing_folder_is_named(loans, tmp_path: Path) -> None:
    with pytest.raises(clvq.InvalidInputError, match="nowhere does not exist"):
        write_report(loans, ROWS[:1], tmp_path / "nowhere" / "page.html", pictures=False)


def test_without_matplotlib_the_page_has_no_pictures_or_says_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
import counterlvq as clvq
from counterlvq.report import report_html
explainer = clvq.Explainer(clvq.PrototypeModel([[0.0, 1.0], [2.0, 2.0]], [0, 1]))
assert "<img" not in report_html(explainer, [[0.5, 1.0]], pictures=False)
try:
    report_html(explainer, [[0.5, 1.0]])
except clvq.NotSupportedError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install matplotlib, or leave the pictures out" in done.stderr
    assert "Traceback" not in done.stderr


# --- in a real browser --------------------------------------------------------------------------

FOUND = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
BROWSER = next((path for path in FOUND if path), None)
in_a_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium on this machine; the page is not opened in a browser"
)


def visit(page: Path, folder: Path) -> tuple[str, list[str], list[str]]:
    """Open a page: what became of it, what it asked the network for, and what it complained of."""
    log = folder / "net.json"
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
        "--disable-background-networking", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
        f"--log-net-log={log}", "--virtual-time-budget=2000", "--window-size=1000,1400",
        f"--screenshot={folder / 'shot.png'}", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    parameters = [event.get("params", {}) for event in events]
    # The browser has errands of its own; those of the page carry where it came from.
    asked = [p["url"] for p in parameters if "file://" in str(p.get("network_isolation_key"))]
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, asked, complaints


@in_a_browser
def test_browser_loads_nothing_else_and_has_nothing_to_complain_of(loans, tmp_path: Path) -> None:
    page = write_report(loans, ROWS, tmp_path / "page.html", target="accepted")
    dom, asked, complaints = visit(page, tmp_path)
    assert asked == []
    assert complaints == []
    assert dom.count("<section") == 1 + len(ROWS)


@in_a_browser
def test_the_last_test_would_notice(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<!DOCTYPE html><img src="http://example.org/a.png"><script>missing()</script>',
        encoding="utf-8",
    )
    _, asked, complaints = visit(page, tmp_path)
    assert "http://example.org/a.png" in asked
    assert any("missing is not defined" in line for line in complaints)


@in_a_browser
def test_scripts_in_names_do_not_run(tmp_path: Path) -> None:
    name = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
    model = clvq.PrototypeModel([[0.0, 0.0], [4.0, 2.0]], [name, "b"], feature_names=[name, "c"])
    page = write_report(
        clvq.Explainer(model), [[0.5, 0.0]], tmp_path / "page.html", title=name, names=[name]
    )
    dom, asked, complaints = visit(page, tmp_path)
    assert (asked, complaints) == ([], [])
    assert "<title>taken" not in dom


def test_rows_of_a_table_are_called_by_the_column_that_names_them() -> None:
    frame = pd.DataFrame({"income": [1, 2], "customer_id": ["Ada", "Ben"], "city": ["B", "B"]})
    assert names_in_frame(frame, ["income"]) == ["Ada", "Ben"]
    assert names_in_frame(frame.drop(columns="customer_id"), ["income"]) is None
    assert names_in_frame(frame, ["income", "customer_id"]) is None
