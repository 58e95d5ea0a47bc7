"""The page in a real browser: typing, dragging, locking, proofs, a phone, hostile names."""

from __future__ import annotations

import base64
import json
import re
from html import unescape
from importlib.resources import files

import numpy as np
import pytest

import counterlvq as clvq
from counterlvq.page.offering import offline_page, page_file, served_page
from counterlvq.report import report_html
from counterlvq.service.answering import Answering
from tests.support.browser import CHROMIUM, Browser
from tests.support.serving import serving

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")

EVIL = "<img src=x onerror=\"document.title='owned'\">'\"</script><script>document.title='owned'//"
ROWS = [{"income": 1100.0, "savings": 600.0, "age": 40.0}, {"income": 900, "savings": 0, "age": 30}]


def loan_model(names=("income", "savings", "age"), labels=("no", "yes"), unit="EUR"):
    features = [clvq.Feature(names[0], unit=unit), clvq.Feature(names[1], unit=unit), names[2]]
    return clvq.PrototypeModel(
        [[1000, 500, 30], [1500, 900, 50], [3000, 2000, 35], [2600, 3000, 60]],
        [labels[0], labels[0], labels[1], labels[1]],
        omegas=np.diag([1e-3, 1e-3, 1e-2]),
        feature_names=features,
    )


def offline(model=None, rows=ROWS, target="yes", **more) -> str:
    answering = Answering(model or loan_model())
    asked = {"rows": rows, "target": target, "text": True, "certificate": True, **more}
    answers = answering.explain(asked, seconds=60.0)["answers"]
    return offline_page(answering.describe(), rows, answers, "Loans", ["Ada", "Ben"], target)


def told(page: str) -> dict:
    return json.loads(re.search(r'id="config">(.*?)</script>', page, re.DOTALL)[1])


def put(page: str, config: dict) -> str:
    """The page with other data in it, as somebody might hand it on."""
    text = json.dumps(config).replace("<", "\\u003c")
    return page.replace(re.search(r'id="config">(.*?)</script>', page, re.DOTALL)[1], text)


@pytest.fixture
def browser():
    found = Browser()
    yield found
    found.close()
    assert found.console == []
    inside = ("data:", "file:", "about:", "blob:", "http://127.0.0.1:")
    assert [url for url in found.requests if not url.startswith(inside)] == []


def linked(browser) -> str:
    """The address that restores what is on the page, which is written a moment later."""
    browser.run("new Promise((done) => setTimeout(done, 400))")
    return browser.run("location.href")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    pytest.importorskip("fastapi")
    folder = tmp_path_factory.mktemp("page")
    table = np.array([[1000.0, 0.0, 20.0], [3500.0, 4000.0, 70.0]] * 20)
    clvq.save(loan_model(), folder / "loans.clvq", reference=table)
    (folder / "rows.json").write_text(json.dumps(ROWS))
    offered = ("--rows", str(folder / "rows.json"), "--target", "yes")
    with serving(folder / "loans.clvq", *offered, "--suggest", "savings <= income") as s:
        yield s


# --- without a browser ----------------------------------------------------------------------------


def test_hostile_names_stay_inside_their_strings() -> None:
    labels = (EVIL, f"{EVIL}2")
    model = loan_model((EVIL, "b", "c"), labels, unit=EVIL)
    rows = [{EVIL: 1100.0, "b": 600.0, "c": 40.0}]
    page = offline(model, rows, labels[1], constraints=[f"`{EVIL}` <= 9000"])
    assert page.count("</script>") == 2
    assert page.count("<script") == 2
    assert "<img" not in page
    assert told(page)["rows"] == rows
    assert "<img" not in served_page(rows, EVIL)[0]


def test_numbers_that_no_form_can_hold_are_left_open() -> None:
    rows = [{**ROWS[0], "income": float("inf")}, ROWS[1]]
    config = told(offline(rows=rows, bad_rows="report"))
    assert [row["income"] for row in config["rows"]] == [None, 900]
    assert [answer["status"] for answer in config["answers"]] == ["invalid", "optimal"]
    assert "inf" in config["answers"][0]["reason"]
    assert told(served_page(rows, "Loans")[0])["rows"] == config["rows"]


def test_files_of_the_page_are_listed_and_no_other_is_handed_out() -> None:
    assert page_file("app.js")[1].startswith("text/javascript")
    assert page_file("page.css")[1].startswith("text/css")
    for name in ("offering.py", "../model.py", "frame.html", ""):
        assert page_file(name) is None
    for name in ("app.js", "form.js", "answer.js", "dom.js", "proof.js"):
        text = page_file(name)[0]
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_one_file_holds_all_modules_once() -> None:
    page = offline()
    assert "import {" not in page
    assert "\nexport " not in page
    assert page.count("function checkCertificate") == 1
    digest = re.search(r"script-src '(sha256-[^']+)'", unescape(page))[1]
    assert len(base64.b64decode(digest.removeprefix("sha256-"))) == 32
    assert "connect-src" not in page


def test_modules_can_be_put_into_one_file() -> None:
    """What stands at the top of a module has a name of its own among all of them."""
    names = re.findall(
        r"^(?:async )?(?:const|let|function|class) (\w+)",
        re.search(r'<script type="module">(.*?)</script>', offline(), re.DOTALL)[1],
        re.MULTILINE,
    )
    assert len(names) > 50
    assert len(set(names)) == len(names)


def test_every_text_is_used_and_every_used_text_is_there() -> None:
    scripts = [path for path in files("counterlvq.page").iterdir() if path.name.endswith(".js")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in scripts}
    known = set(re.findall(r"^  (\w+): \"", texts.pop("texts.js"), re.MULTILINE))
    used = {word for text in texts.values() for word in re.findall(r"\"(\w+)\"", text)}
    statuses = {str(status) for status in clvq.Status} | {"verified", "refuted", "beyond"}
    assert known - used - statuses - {"language"} == set()
    said = {w for text in texts.values() for w in re.findall(r"say\(\"(\w+)\"", text)}
    assert said | statuses <= known


# --- offline --------------------------------------------------------------------------------------


@needs_browser
def test_offline_page_shows_answers_and_checks_their_proofs(browser, tmp_path) -> None:
    page = offline()
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    browser.open(path.as_uri())
    answers = told(page)["answers"]
    assert browser.text("#answer .sentence") == answers[0]["text"]
    browser.click(".check")
    browser.until("document.querySelector('.verdict.verified')")
    assert "The proof holds" in browser.text(".verdict")
    browser.enter("#rows-list", "1")
    assert browser.text("#answer .sentence") == answers[1]["text"]
    link = browser.run("location.href")
    browser.open(link)
    assert browser.text("#answer .sentence") == answers[1]["text"]


@needs_browser
def test_row_that_is_right_already_has_nothing_to_prove(browser, tmp_path) -> None:
    rows = [{"income": 3000.0, "savings": 2000.0, "age": 35.0}, ROWS[1]]
    path = tmp_path / "page.html"
    path.write_text(offline(rows=rows), encoding="utf-8")
    browser.open(path.as_uri())
    assert browser.text("#answer") == "yes nothing to change " + browser.text("#answer .sentence")
    assert "already" in browser.text("#answer .sentence")
    browser.enter("#rows-list", "1")
    assert "no → yes proved closest" in browser.text("#answer")
    assert browser.run("document.querySelectorAll('#answer .check').length") == 1


@needs_browser
def test_tampered_proofs_are_refused(browser, tmp_path) -> None:
    page = offline()
    path = tmp_path / "page.html"

    def changed(change) -> str:
        config = told(page)
        header, line = map(json.loads, config["answers"][0]["certificate"].splitlines())
        change(header, line)
        config["answers"][0]["certificate"] = f"{json.dumps(header)}\n{json.dumps(line)}\n"
        path.write_text(put(page, config), encoding="utf-8")
        browser.open(path.as_uri())
        browser.click(".check")
        browser.until("document.querySelector('.verdict.refuted, .verdict.verified')")
        return browser.text(".verdict")

    assert "The proof holds" in changed(lambda header, line: None)
    cost = 1.01
    for change, words in (
        (lambda h, a: a["answer"].update(lower_bound=a["answer"]["lower_bound"] * cost), "follow"),
        (lambda h, a: a["answer"].update(cost=a["answer"]["cost"] / cost), "costs"),
        (lambda h, a: h["model"]["prototypes"][0].__setitem__(0, 1.0), "hash"),
        (lambda h, a: a["proof"].update(cells=[]), "follow"),
        (lambda h, a: a["input"].__setitem__(0, 1000.0), "costs"),
        (lambda h, a: a.update(surprise=1), "not known"),
    ):
        text = changed(change)
        assert "does not hold" in text
        assert words in text


@needs_browser
def test_no_way_is_proved_in_the_browser_too(browser, tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_text(offline(freeze=["age"], constraints=["income <= 1200", "savings <= 700"]))
    browser.open(path.as_uri())
    assert "There is no way, because of these together" in browser.text(".stuck")
    browser.click(".check")
    browser.until("document.querySelector('.verdict.verified, .verdict.beyond')")


@needs_browser
def test_nothing_of_a_hostile_model_runs(browser, tmp_path) -> None:
    names = (EVIL, "\u202eright to left", "a`b</script>")
    labels = (EVIL, f"{EVIL}2")
    model = loan_model(names, labels, unit="</style><script>document.title='owned'</script>")
    rows = [dict(zip(names, (1100.0, 600.0, 40.0), strict=True))]
    path = tmp_path / "page.html"
    path.write_text(offline(model, rows, labels[1]), encoding="utf-8")
    browser.open(path.as_uri())
    browser.click(".check")
    browser.until("document.querySelector('.verdict.verified')")
    assert browser.run("document.title") == "Loans"
    assert browser.run("document.querySelectorAll('img, iframe, script[src]').length") == 0
    assert "\\u202e" in browser.text("#features")
    assert EVIL.split("'", maxsplit=1)[0] in browser.text("#now")


def plane_page(tmp_path, change=lambda certificate: certificate):
    model = clvq.PrototypeModel(
        [[2400, 3], [1500, 1], [4200, 2], [3900, 1]], ["no", "no", "yes", "yes"],
        omegas=[[0.001, 0], [0, 1]], feature_names=["income", "cards"],
    )  # fmt: skip
    page = offline(model, [{"income": 2400.0, "cards": 3.0}], constraints=["cards >= 1"])
    config = told(page)
    config["answers"][0]["certificate"] = change(config["answers"][0]["certificate"])
    path = tmp_path / "page.html"
    path.write_text(put(page, config), encoding="utf-8")
    return path, config["answers"][0]


@needs_browser
def test_two_numbers_make_a_picture_of_the_proof(browser, tmp_path) -> None:
    """The shape of what is ruled out ends at the answer, and no green lies inside it."""
    path, answer = plane_page(tmp_path)
    browser.open(path.as_uri())
    dots = browser.run("""['before', 'after'].map((kind) => {
        const at = document.querySelector(`.plane circle.${kind}`);
        return [Number(at.getAttribute('cx')), Number(at.getAttribute('cy'))]; })""")
    delta = [answer["x"][name] - answer["original"][name] for name in ("income", "cards")]
    moved = [dots[1][0] - dots[0][0], dots[0][1] - dots[1][1]]
    assert [np.sign(a) for a in moved] == [np.sign(a) for a in delta]
    inside = browser.run("""(() => {
        const svg = document.querySelector('.plane svg'), ball = svg.querySelector('.ball');
        const at = (x, y) => Object.assign(svg.createSVGPoint(), {x, y});
        const greens = [...svg.querySelectorAll('rect.wished:not(.barred)')];
        const middles = greens.map((one) => one.getBBox()).flatMap((box) =>
            [0.1, 0.5, 0.9].map((part) => at(box.x + part * box.width, box.y + box.height / 2)));
        return [greens.length, middles.filter((p) => ball.isPointInFill(p)).length,
                svg.querySelectorAll('rect.barred').length];
    })()""")
    assert inside[0] > 0
    assert inside[1] == 0
    assert inside[2] > 0
    assert browser.findings() == []


@needs_browser
@pytest.mark.parametrize("text", ["", "{}\n{}\n", "no json\nat all", '{"model": 1}\n{}'])
def test_certificate_that_cannot_be_drawn_is_refused_all_the_same(browser, tmp_path, text) -> None:
    path, answer = plane_page(tmp_path, lambda _: text)
    browser.open(path.as_uri())
    assert browser.text("#answer .sentence") == answer["text"]
    assert browser.run("document.querySelectorAll('.plane').length") == 0
    if text:
        browser.click(".check")
        browser.until("document.querySelector('.verdict.refuted')")


# --- reports --------------------------------------------------------------------------------------


def report(explainer: clvq.Explainer, rows: int, **more) -> str:
    table = [[900 + 20 * k, 50 * k, 30 + k] for k in range(rows)]
    return report_html(explainer, table, target="yes", pictures=False, **more)


@needs_browser
def test_report_checks_its_proofs_and_finds_rows(browser, tmp_path) -> None:
    path = tmp_path / "report.html"
    page = report(clvq.Explainer(loan_model()), 12)
    path.write_text(page, encoding="utf-8")
    browser.open(path.as_uri(), "document.querySelector('.check')")
    browser.click("section:has(#row-3) .check")
    browser.until("document.querySelector('section:has(#row-3) .verdict.verified')")
    browser.enter("#filter", "row 1")
    assert browser.text(".filter [role=status]") == "3 of 12 rows"
    seen = "[...document.querySelectorAll('.contents tbody tr')].filter(row => !row.hidden).length"
    assert browser.run(seen) == 3
    assert browser.findings() == []

    config = told(page)
    line = json.loads(config["answers"][3]["line"])
    line["answer"]["lower_bound"] *= 1.01
    config["answers"][3]["line"] = json.dumps(line)
    path.write_text(put(page, config), encoding="utf-8")
    browser.open(path.as_uri(), "document.querySelector('.check')")
    browser.click("section:has(#row-3) .check")
    browser.until("document.querySelector('section:has(#row-3) .verdict.refuted')")
    assert browser.findings() == []


def test_report_holds_the_model_only_if_asked_to() -> None:
    explainer = clvq.Explainer(loan_model())
    assert told(report(explainer, 2))["header"].startswith('{"format":"counterlvq certificate"')
    assert "<script" not in report(explainer, 2, certificates=False)
    assert told(report(explainer, 8, certificates=False)) == {"header": None, "answers": []}


# --- live -----------------------------------------------------------------------------------------


@needs_browser
def test_person_types_drags_locks_and_lifts(browser, service) -> None:
    browser.open(service.address)
    assert browser.text("#now") == "no"
    first = browser.text("#answer .sentence")
    browser.enter("[data-feature=income] .control input[type=range]", "1500")
    browser.until(f"document.querySelector('#answer .sentence').innerText !== {json.dumps(first)}")
    assert browser.run("document.querySelector('[data-feature=income] .box').value") == "1500"
    second = browser.text("#answer .sentence")
    browser.enter("[data-feature=savings] .box", "1200")
    browser.until(f"document.querySelector('#answer .sentence').innerText !== {json.dumps(second)}")
    browser.until("document.querySelector('.way')")
    changed = browser.run("document.querySelector('#answer tbody th').innerText.split(' ')[0]")
    browser.click(f"[data-feature={changed}] .lock")
    browser.until(f"!document.querySelector('#answer tbody').innerText.includes('{changed}')")
    for name in ("income", "savings", "age"):
        if (
            browser.run(f"document.querySelector('[data-feature={name}] .lock').ariaPressed")
            != "true"
        ):
            browser.click(f"[data-feature={name}] .lock")
    browser.until("document.querySelectorAll('.stuck .lift').length === 3")
    assert browser.text(".stuck .lift") == "Unlock"
    link = linked(browser)
    browser.click(".stuck .lift")
    browser.until("!document.querySelector('.stuck')")
    browser.open(link)
    browser.until("document.querySelectorAll('.stuck .lift').length === 3")


@needs_browser
def test_rules_are_understood_or_told_what_is_wrong_at_once(browser, service) -> None:
    browser.open(service.address)
    browser.click(".written summary")
    browser.enter("#rule", "income <= ")
    browser.until("document.querySelector('.hint.error')")
    assert "expected a number" in browser.text(".hint")
    refused = [line for line in browser.console if "422" in line]
    assert browser.console == refused  # the browser says so itself
    browser.run("document.querySelector('#rule-form').requestSubmit()")
    browser.until("performance.getEntriesByType('resource').at(-1).responseStatus === 422")
    browser.run("new Promise((done) => setTimeout(done, 300))")
    assert browser.run("document.querySelector('#rule').value") == "income <= "
    assert browser.run("document.querySelectorAll('.rulelist li, .stale').length") == 0
    browser.console.clear()
    browser.enter("#rule", "income <= 1300")
    browser.until("document.querySelector('.hint.good')")
    assert browser.text(".hint") == "understood: income is at most 1,300 EUR"
    browser.run("document.querySelector('#rule-form').requestSubmit()")
    browser.until("document.querySelector('.rulelist li')")
    browser.until("!document.querySelector('#answer tbody').innerText.includes('income')")


@needs_browser
def test_keyboard_is_enough(browser, service) -> None:
    browser.open(service.address)
    before = browser.text("#answer .sentence")
    browser.run("document.querySelector('[data-feature=income] input[type=range]').focus()")
    for _ in range(5):
        browser.press("ArrowRight")
    browser.until(f"document.querySelector('#answer .sentence').innerText !== {json.dumps(before)}")
    browser.run("document.querySelector('[data-feature=income] .lock').focus()")
    browser.press(" ")
    browser.until("document.querySelector('[data-feature=income] .lock').ariaPressed === 'true'")
    assert browser.run("document.activeElement.className") == "lock"


@needs_browser
def test_visitor_gets_to_an_answer_with_two_locks_by_the_tab_key_alone(browser, service) -> None:
    """Nothing is known of the page but what it says of itself, to the eye or to the ear."""
    browser.open(service.address)
    focused = "(document.activeElement.ariaLabel ?? document.activeElement.innerText)"
    for name in ("savings", "age"):
        for _ in range(60):
            browser.press("Tab")
            if browser.run(focused).startswith(f"Lock {name}"):
                break
        browser.press(" ")
        browser.until(
            f"document.querySelector('[data-feature={name}]').innerText.includes('locked')"
        )
    browser.until("/if income were/.test(document.querySelector('#answer .sentence').innerText)")
    sentence = browser.text("#answer .sentence")
    assert "savings" not in sentence
    assert "age" not in sentence
    for _ in range(60):
        browser.press("Tab")
        if browser.run(focused) == "Check the proof here":
            break
    browser.press("Enter")
    browser.until("document.querySelector('.verdict.verified')")


@needs_browser
def test_rules_are_put_together_from_lists(browser, service) -> None:
    browser.open(service.address)
    browser.enter("#rule-what", "0")
    browser.enter("#rule-builder .amount", "1300")
    browser.run("document.querySelector('#rule-builder').requestSubmit()")
    browser.until("!document.querySelector('#answer tbody').innerText.includes('income')")
    assert browser.text(".rulelist .rule") == "income is at most 1,300 EUR"
    browser.enter("#rule-what", "1")
    browser.enter("#rule-builder select[aria-label='With what it compares']", "1")
    browser.run("document.querySelector('#rule-builder').requestSubmit()")
    browser.until("document.querySelectorAll('.rulelist li').length === 2")
    rules = "[...document.querySelectorAll('.rulelist .rule')].map((one) => one.title)"
    assert browser.run(rules) == ["income <= 1300", "savings <= income"]
    browser.until("document.querySelector('.stuck .lift')")
    browser.click(".stuck .lift")
    browser.until("!document.querySelector('.stuck')")


@needs_browser
def test_rules_that_are_suggested_are_one_click_away(browser, service) -> None:
    browser.open(service.address)
    browser.click(".suggested button")
    browser.until("document.querySelector('.rulelist li')")
    assert browser.text(".rulelist li") == "savings is at most income ×"
    assert browser.run("document.querySelectorAll('.suggested').length") == 0
    browser.click(".rulelist button")
    browser.until("document.querySelector('.suggested button')")


@needs_browser
def test_rules_are_read_aloud_only_where_each_of_their_words_is_known(browser, service) -> None:
    browser.open(service.address)
    features = [
        {"name": "first floor", "label": "first floor", "unit": "m"},
        {"name": "a_b", "label": "area", "unit": None},
        {
            "name": "home",
            "label": "home",
            "levels": ["own", "rent"],
            "level_labels": ["Own", "Rent"],
        },
    ]
    rules = {
        "`first floor` <= 1234567.5": "first floor is at most 1,234,567.5 m",
        "2 * a_b >= `first floor` + 10": "2 × area is at least first floor + 10",
        "a_b == 3": "area is exactly 3",
        "home != 'rent'": "home is not Rent",
        "home == 'own'": "home is Own",
        "home == 'lent'": None,
        "a_c <= 3": None,
        "1 <= a_b <= 3": None,
        "a_b <= 1e3": None,
        "a_b <= (a_b)": None,
        "<= 3": None,
        "a_b": None,
    }
    script = f"""import("./page/rules.js").then(({{ ruleWords }}) =>
        {json.dumps(list(rules))}.map((rule) => ruleWords(rule, {json.dumps(features)})))"""
    assert browser.run(script) == list(rules.values())


@needs_browser
def test_page_comes_back_to_a_busy_service_by_itself(browser, service) -> None:
    browser.open(service.address)
    first = browser.text("#answer .sentence")
    browser.run("""(() => { const asked = window.fetch; let times = 0;
        window.fetch = (...all) => (times += 1) > 2 ? asked(...all) : Promise.resolve(new Response(
            '{"detail": "busy"}', {status: 503, headers: {"retry-after": "1"}})); })()""")
    browser.enter("[data-feature=income] .box", "1500")
    browser.until("document.querySelector('#problem').innerText.includes('trying again')")
    browser.until(f"document.querySelector('#answer .sentence').innerText !== {json.dumps(first)}")
    assert browser.text("#problem") == ""


@needs_browser
def test_many_drags_leave_the_address_in_peace(browser, service) -> None:
    """Browsers stop pages that write their address more than about 100 times in 30 seconds."""
    browser.open(service.address)
    browser.run("""(() => { const write = history.replaceState.bind(history); window.written = 0;
        history.replaceState = (...all) => { window.written += 1; write(...all); }; })()""")
    for k in range(30):
        browser.enter("[data-feature=income] .box", str(1100 + k))
    assert "s=" in linked(browser)
    assert 1 <= browser.run("window.written") <= 10


@needs_browser
def test_limits_are_dragged_and_the_link_brings_all_back(browser, service) -> None:
    browser.open(service.address)
    browser.click("[data-feature=income] .limits summary")
    browser.enter("[data-feature=income] [data-side='1']", "1400")
    browser.until(
        "document.querySelector('[data-feature=income] summary').innerText.includes('1,400')"
    )
    browser.enter("[data-feature=age] .box", "44")
    assert browser.run("document.querySelector('#rows-list').value") == "-1"
    browser.until("document.querySelector('#answer').ariaBusy === 'false'")
    told = browser.text("#answer .sentence")
    browser.open(linked(browser))
    assert browser.text("#answer .sentence") == told
    assert "1,400" in browser.text("[data-feature=income] summary")
    assert browser.run("document.querySelector('[data-feature=age] .box').value") == "44"


@needs_browser
def test_axe_finds_nothing(browser, service) -> None:
    browser.open(service.address)
    browser.until("document.querySelector('.way')")
    browser.click(".check")
    browser.until("document.querySelector('.verdict.verified')")
    assert browser.findings() == []
    browser.darken()
    assert browser.findings() == []
    for name in ("income", "savings", "age"):
        browser.click(f"[data-feature={name}] .lock")
    browser.until("document.querySelectorAll('.stuck .lift').length === 3")
    assert browser.findings() == []


@needs_browser
def test_every_control_has_a_name_and_a_phone_is_wide_enough(service) -> None:
    phone = Browser(360, 800)
    try:
        phone.open(service.address)
        assert phone.run("document.documentElement.scrollWidth") <= 360
        nameless = phone.run("""[...document.querySelectorAll('input, select, button')].filter(
            one => !(one.ariaLabel || one.labels?.length || one.textContent.trim())).length""")
        assert nameless == 0
        assert phone.run("document.querySelectorAll('h1').length") == 1
        assert "See the answer" in phone.text("#jump")
        first = phone.text("#answer .sentence")
        assert first in phone.text("#jump")  # seen while one drags
        phone.enter("[data-feature=income] .box", "1500")
        phone.until(f"!document.querySelector('#jump').innerText.includes({json.dumps(first)})")
        assert phone.findings() == []
        assert phone.console == []
    finally:
        phone.close()
