"""The service: answers as in Python, errors with their field, limits, and a graceful end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterlvq as clvq
from tests.support.serving import Service, serving

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

ROW = {"income": 1100.0, "savings": 600.0, "age": 40.0}
SURE = {"probability": 0.9}
SECRET = 123456.789
WIDTH = 40


def loan_model() -> clvq.PrototypeModel:
    features = [clvq.Feature("income", unit="EUR"), clvq.Feature("savings", unit="EUR"), "age"]
    return clvq.PrototypeModel(
        [[1000, 500, 30], [1500, 900, 50], [3000, 2000, 35], [2600, 3000, 60]],
        ["rejected", "rejected", "accepted", "accepted"],
        omegas=np.diag([1e-3, 1e-3, 1e-2]),
        feature_names=features,
    )


def hard_model() -> clvq.PrototypeModel:
    rng = np.random.default_rng(0)
    d, p = WIDTH, 10
    return clvq.PrototypeModel(
        rng.normal(size=(p, d)), [k % 2 for k in range(p)], rng.normal(size=(p, d, d))
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    path = folder / "loans.clvq"
    clvq.save(loan_model(), path)
    with serving(path, "--max-rows", "5", "--max-body", "20000") as service:
        path.unlink()  # what was loaded is what answers, in workers too
        yield service


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """Local metrics, whose proof takes as long as it may: one search at a time, one waits."""
    path = tmp_path_factory.mktemp("hard") / "local.clvq"
    clvq.save(hard_model(), path)
    options = ("--workers", "1", "--max-waiting", "1", "--max-seconds", "4")
    with serving(path, *options) as service:
        yield service


HARD = {"rows": [{f"x{j}": 0.1 * j for j in range(WIDTH)}], "method": "global"}
# Each takes a tenth of a second or more, so that nobody waits for the last one.
MANY_ROWS = [{f"x{j}": 0.1 * j + 0.01 * n for j in range(WIDTH)} for n in range(400)]


# --- answers --------------------------------------------------------------------------------------


def test_answers_are_those_of_python_in_the_order_of_the_rows(plain) -> None:
    rows = [ROW, {**ROW, "income": 2900.0, "savings": 1900.0}, {**ROW, "age": 44.0}]
    asked = {"rows": rows, "target": "accepted", "freeze": ["age"], "bounds": {"income": [0, 2000]}}
    status, told, _ = plain.ask("/explain", {**asked, "constraints": ["savings <= 9000"]})
    assert status == 200
    rules = [clvq.Freeze("age"), clvq.Bounds("income", 0, 2000), "savings <= 9000"]
    explainer = clvq.Explainer(loan_model(), constraints=rules)
    assert told == {"answers": [explainer.explain(row, "accepted").to_dict() for row in rows]}


def test_costs_and_labels_are_read(plain) -> None:
    explainer = clvq.Explainer(loan_model(), clvq.Euclidean())
    told = plain.ask("/explain", {"rows": [ROW], "cost": "euclidean"})[1]
    assert told["answers"][0] == explainer.explain(ROW).to_dict()
    told = plain.ask("/explain", {"rows": [ROW], "target": ["accepted", "rejected"]})[1]
    assert told["answers"][0]["cost"] == 0


def test_other_ways_are_those_of_python(plain) -> None:
    asked = {"rows": [ROW], "target": "accepted", "alternatives": 3, "text": True}
    (answer,) = plain.ask("/explain", asked)[1]["answers"]
    ways = clvq.Explainer(loan_model()).alternatives(ROW, "accepted", count=3)
    assert len(ways) > 1
    told = answer["alternatives"]
    assert told["is_complete"] == ways.is_complete
    assert [way["text"] for way in told["ways"]] == [cf.text() for cf in ways]
    assert told["ways"][0]["x"] == answer["x"]
    status, told, _ = plain.ask("/explain", {**asked, "cost": "euclidean"})
    assert (status, told["field"]) == (422, "alternatives")


def test_certificates_come_along_and_are_verified(plain) -> None:
    asked = {"rows": [ROW], "target": "accepted", "certificate": True, "text": True}
    answer = plain.ask("/explain", asked)[1]["answers"][0]
    assert answer["text"] == clvq.Explainer(loan_model()).explain(ROW, "accepted").text()
    assert answer["shown"]["changes"][0]["after"] in answer["text"]
    status, told, _ = plain.ask("/verify", {"certificate": answer["certificate"]})
    assert (status, told["verified"]) == (200, True)
    assert told["lines"][0]["lower_bound"] <= answer["cost"]
    header, line = answer["certificate"].splitlines()
    better = json.loads(line)
    better["answer"]["lower_bound"] *= 1.01
    told = plain.ask("/verify", {"certificate": f"{header}\n{json.dumps(better)}\n"})[1]
    assert not told["verified"]
    assert "does not follow" in told["lines"][0]["reason"]


def test_clashes_say_where_they_stand(plain) -> None:
    asked = {"rows": [ROW], "target": "accepted", "text": True, "freeze": ["age", "savings"]}
    told = plain.ask("/explain", {**asked, "constraints": ["age >= 0", "income <= 1200"]})[1]
    (answer,) = told["answers"]
    assert answer["status"] == "infeasible"
    fields = {item["field"] for item in answer["conflict_fields"]}
    assert fields == {"freeze:age", "freeze:savings", "rule:1"}


def test_model_is_described_well_enough_for_a_form(plain) -> None:
    status, told, _ = plain.ask("/model")
    assert status == 200
    assert told["classes"] == ["accepted", "rejected"]
    assert [feature["name"] for feature in told["features"]] == ["income", "savings", "age"]
    assert told["features"][0]["unit"] == "EUR"
    assert (told["metric"], told["cost"]) == ("shared", "manhattan")


def test_levels_and_summaries_reach_the_form_and_the_answers(tmp_path) -> None:
    table = pd.DataFrame({"home": ["rent", "own"] * 40, "cards": list(range(8)) * 10})
    y = np.where((table["home"] == "own") & (table["cards"] < 5), "yes", "no")
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    encode = make_column_transformer((OneHotEncoder(), ["home"]), (StandardScaler(), ["cards"]))
    fitted = make_pipeline(encode, clvq.GLVQ(random_state=0)).fit(table, y)
    path = tmp_path / "homes.clvq"
    clvq.save(fitted, path, features=clvq.Features.from_frame(table, None), reference=table)
    with serving(path, "--rows", str(_csv(table, tmp_path))) as service:
        home, cards = service.ask("/model")[1]["features"]
        assert (home["levels"], cards["seen"], cards["step"]) == (["own", "rent"], [0.0, 7.0], 1)
        row = {"home": "rent", "cards": 3}
        (answer,) = service.ask("/explain", {"rows": [row], "target": "yes"})[1]["answers"]
        assert answer["x"]["home"] == "own"
        assert answer["status"] == "optimal"
        page = service.ask("/")[1]
        assert "rent" in page
        assert service.end() == 0


def _csv(table: pd.DataFrame, folder: Path) -> Path:
    table.iloc[:3].to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "field", "words"),
    [
        ({"rows": [ROW], "constraints": ["age >= 0", "age >="]}, 422, "constraints[1]", "expected"),
        ({"rows": [ROW], "constraints": ["agee >= 0"]}, 422, "constraints[0]", "agee"),
        ({"rows": [ROW], "freeze": ["age", "agee"]}, 422, "freeze[1]", "agee"),
        ({"rows": [ROW], "bounds": {"agee": [0, 1]}}, 422, "bounds.agee", "agee"),
        ({"rows": [ROW], "bounds": {"age": [2, 1]}}, 422, "bounds.age", "lower"),
        ({"rows": [ROW], "bounds": {"age": [0]}}, 422, "bounds.age[1]", ""),
        ({"rows": [ROW], "target": "perhaps"}, 422, "target", "accepted, rejected"),
        ({"rows": [ROW], "target": ["accepted", 3]}, 422, "target[1]", "no class"),
        ({"rows": [ROW], "cost": "mad"}, 422, "cost", "summary"),
        ({"rows": [ROW, {"income": 1.0}]}, 422, "rows[1]", "savings"),
        ({"rows": [{**ROW, "age": "old"}]}, 422, "rows[0]", "text"),
        ({"rows": [ROW], "reasons": True}, 422, "reasons", "no range"),
        ({"rows": [ROW, {**ROW, "age": True}]}, 422, "rows[1]", "'age' is true; expected a number"),
        ({"rows": [ROW], "switches": {"age": 2}}, 422, "switches", "levels"),
        ({"rows": [ROW], "freeze": ["age"], "switches": {"income": 2}}, 422, "switches", "levels"),
        ({"rows": [ROW], "confidence": SURE}, 422, "confidence", "probabilities"),
        ({"rows": [ROW], "freeze": ["age"], "confidence": SURE}, 422, "confidence", "scores"),
        ({"rows": [ROW], "confidence": {**SURE, "noise": 1}}, 422, "confidence", "either"),
        ({"rows": [ROW], "confidence": {"norm": "l1"}}, 422, "confidence", "either"),
        ({"rows": []}, 422, "rows", ""),
        ({"row": [ROW]}, 422, "rows", ""),
        ({"rows": [ROW], "surprise": 1}, 422, "surprise", ""),
        ({"rows": [ROW], "time_limit": -1}, 422, "time_limit", ""),
        ({"rows": [ROW], "certificate": 0}, 422, "certificate", "boolean"),
        ({"rows": [ROW], "alternatives": "2"}, 422, "alternatives", "integer"),
        ({"rows": [ROW] * 6}, 413, "rows", "expected 5 at most"),
        ({"rows": [ROW], "target": {}}, 422, "target", "or:"),
        ({"rows": [ROW], "target": []}, 422, "target", "at least 1"),
        ({"rows": [ROW], "bounds": {"\ud800": [0, 1]}}, 422, None, "cannot be read"),
        ({"rows": [{**ROW, "age": 10**4_299}]}, 422, None, ""),
        (b'{"rows": [{"age": 1' + b"0" * 5_000 + b"}]}", 422, None, "cannot be read"),
        (b'{"rows": [', 422, None, "cannot be read"),
        (b"{", 422, None, "JSON"),
        (b'{"rows": [' + b" " * 30_000 + b"]}", 413, None, "20,000 bytes"),
        (b"\xff\xfe", None, None, ""),
        (b"[" * 5_000, None, None, ""),
        (b'{"rows": [{"income": NaN}]}', None, None, ""),
    ],
)  # fmt: skip
def test_problems_name_the_field(plain, body, status, field, words) -> None:
    came, told, headers = plain.ask("/explain", body)
    assert 400 <= came < 500
    if status is not None:
        assert came == told["status"] == status
    assert headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(told)
    if field is not None:
        assert told["field"] == field
    assert words in told["detail"]


@pytest.mark.parametrize("key", ["certificate", "model"])
def test_letters_that_are_none_are_refused(plain, key) -> None:
    status, told, headers = plain.ask("/verify", {"certificate": "{}", key: "\ud800"})
    assert (status, told["title"]) == (422, "invalid request")
    assert headers["content-type"] == "application/problem+json"


def test_body_without_a_length_is_counted(plain) -> None:
    """Nothing is sent behind the part that is too much: the refusal could be lost with it."""
    head = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(_host_and_port(plain), timeout=60) as link:
        link.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for size in (9_000, 9_000, 3_000):
            link.sendall(b"%x\r\n" % size + b" " * size + b"\r\n")
        came = b""
        while more := link.recv(1 << 16):
            came += more
    assert b" 413 " in came.partition(b"\r\n")[0]
    assert b"20,000 bytes" in came


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed by Linux")
def test_worker_that_was_ended_is_replaced(plain) -> None:
    asked = {"rows": [ROW], "target": "accepted", "alternatives": 2}
    first = plain.ask("/explain", asked)
    pid = plain.process.pid
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert workers
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)
    again = plain.ask("/explain", asked)
    assert (first[0], again[0]) == (200, 200)
    assert first[1] == again[1]


def test_unreadable_rows_are_reported_if_asked_for(plain) -> None:
    asked = {"rows": [ROW, {**ROW, "income": None}], "bad_rows": "report"}
    answers = plain.ask("/explain", asked)[1]["answers"]
    assert [answer["status"] for answer in answers] == ["optimal", "invalid"]


def test_strangers_are_kept_out(plain, tmp_path) -> None:
    asked = {"rows": [ROW]}
    assert plain.ask("/explain", asked, headers={"Host": "evil.example"})[0] == 421
    assert plain.ask("/explain", asked, headers={"Content-Type": "text/plain"})[0] == 415
    status, _, headers = plain.ask("/explain", asked, headers={"Origin": "https://evil.example"})
    assert status == 200
    assert not [name for name in headers if name.lower().startswith("access-control")]
    for name in ("[::1]:8000", "[::1]", "LOCALHOST:80"):
        assert plain.ask("/explain", asked, headers={"Host": name})[0] == 200
    assert plain.ask("/nowhere")[0] == 404
    assert plain.ask("/explain/", asked)[0] == 404  # and no redirection
    assert plain.ask("/page/..%2f__init__.py")[0] == 404
    clvq.save(loan_model(), tmp_path / "m.clvq")
    with serving(tmp_path / "m.clvq", environment={"COUNTERLVQ_TOKEN": "s3cret"}) as service:
        assert service.ask("/health")[0] == 200
        assert service.ask("/model")[0] == 401
        assert service.ask("/model", headers={"Authorization": "Bearer s3creT"})[0] == 401
        assert service.ask("/model", headers={"Authorization": "Bearer s3cret"})[0] == 200
        assert "s3cret" not in "".join(service.log)


def test_other_addresses_need_a_token(tmp_path) -> None:
    from counterlvq.cli.app import run

    clvq.save(loan_model(), tmp_path / "m.clvq")
    assert run(["serve", str(tmp_path / "m.clvq"), "--host", "0.0.0.0"]) == 2


def test_rules_that_nobody_could_add_are_refused_at_once(tmp_path, capsys) -> None:
    from counterlvq.cli.app import run

    clvq.save(loan_model(), tmp_path / "m.clvq")
    assert run(["serve", str(tmp_path / "m.clvq"), "--suggest", "agee <= 3"]) == 1
    assert "'agee'" in capsys.readouterr().err


def test_places_where_nothing_can_listen_are_named(tmp_path, capsys) -> None:
    from counterlvq.cli.app import run

    path = str(tmp_path / "m.clvq")
    clvq.save(loan_model(), path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["serve", path, "--port", port]) == 1
    assert f"127.0.0.1:{port}" in capsys.readouterr().err
    assert run(["serve", path, "--host", "nosuch.invalid", "--token", "x"]) == 1
    assert "nosuch.invalid" in capsys.readouterr().err


def test_log_has_no_personal_data(plain) -> None:
    plain.ask("/explain", {"rows": [{**ROW, "income": SECRET}], "constraints": ["age <= 987654"]})
    plain.ask("/explain?name=Ada", {"rows": [{**ROW, "income": str(SECRET)}]})
    text = "".join(plain.log)
    assert not [secret for secret in ("123456", "987654", "Ada") if secret in text]
    entry = next(one for one in reversed(plain.entries()) if one["status"] == 200)
    assert (entry["path"], entry["rows"], entry["statuses"]) == ("/explain", 1, {"optimal": 1})


def test_log_has_values_if_they_are_asked_for() -> None:
    from counterlvq.service.app import make_app

    asked = json.dumps({"rows": [{"income": SECRET}], "target": "yes"})
    model = clvq.PrototypeModel([[0.0], [4.0]], ["no", "yes"], feature_names=["income"])
    for is_asked in (False, True):
        noted = _noted(make_app(model, log_values=is_asked), asked.encode())
        assert noted.get("asked") == (asked if is_asked else None)
        assert noted["rows"] == 1


def _noted(app, body: bytes) -> dict:
    """What the line of the log says of a question besides the usual."""
    head = {"content-type": "application/json", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in head.items()]
    scope = {"type": "http", "method": "POST", "path": "/explain", "headers": headers}
    whole = {"type": "http.request", "body": body, "more_body": False}

    async def receive() -> dict:
        return scope.pop("whole") if "whole" in scope else await asyncio.Event().wait()

    async def send(_: dict) -> None:
        pass

    scope["whole"] = whole
    asyncio.run(app(scope, receive, send))
    return scope["state"]["told"]


def test_other_methods_are_told_which_ones_there_are(plain) -> None:
    for path, method, known in (
        ("/explain", "GET", "POST"),
        ("/verify", "TRACE", "POST"),
        ("/model", "POST", "GET"),
        ("/health", "DELETE", "GET"),
    ):
        link = http.client.HTTPConnection(*_host_and_port(plain), timeout=60)
        link.request(method, path)
        came = link.getresponse()
        assert (came.status, came.headers["allow"]) == (405, known)
        assert json.loads(came.read())["title"] == "method not allowed"
        link.close()


def test_openapi_is_about_this_model(plain) -> None:
    told = plain.ask("/openapi.json")[1]
    asked = told["components"]["schemas"]["ExplainRequest"]
    row = asked["properties"]["rows"]["items"]
    assert list(row["properties"]) == row["required"] == ["income", "savings", "age"]
    assert row["properties"]["income"]["description"] == "income EUR"
    assert asked["properties"]["target"]["anyOf"][0]["enum"] == ["accepted", "rejected", None]
    (example,) = asked["examples"]
    assert plain.ask("/explain", example)[0] == 200


def test_openapi_says_it_all(plain) -> None:
    told = plain.ask("/openapi.json")[1]
    assert set(told["paths"]) == {"/explain", "/model", "/verify", "/health"}
    for path, methods in told["paths"].items():
        for operation in methods.values():
            assert operation["operationId"]
            assert operation["responses"]["200"]["content"]["application/json"]["schema"]
            if path in ("/explain", "/verify"):
                assert set(operation["responses"]) >= {"401", "413", "415", "422", "503", "504"}
    schemas = told["components"]["schemas"]
    assert "rows" in schemas["ExplainRequest"]["required"]
    answer = clvq.Explainer(loan_model()).explain(ROW).to_dict()
    assert set(schemas["Answer"]["required"]) == set(answer)


# --- long searches --------------------------------------------------------------------------------


def later(service: Service, body) -> tuple[threading.Thread, list]:
    out: list = []
    thread = threading.Thread(target=lambda: out.append(service.ask("/explain", body)))
    thread.start()
    return thread, out


def wait_until(holds, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_busy_service_says_when_to_come_back_and_stays_healthy(hard) -> None:
    assert hard.ask("/explain", {**HARD, "time_limit": 0.2})[0] == 200
    threads = [later(hard, HARD) for _ in range(3)]
    time.sleep(1.0)
    assert hard.ask("/health")[0] == 200
    for thread, _ in threads:
        thread.join()
    ends = sorted((out[0][0] for _, out in threads))
    assert 503 in ends
    assert 200 in ends
    refused = next(out[0] for _, out in threads if out[0][0] == 503)
    assert int(refused[2]["retry-after"]) >= 1
    assert refused[1]["title"] == "busy"


def test_search_ends_when_nobody_waits(hard) -> None:
    with socket.create_connection(_host_and_port(hard)) as gone:
        gone.sendall(_posted(json.dumps({**HARD, "rows": MANY_ROWS})))
        time.sleep(0.5)
    wait_until(lambda: any(entry["status"] in (0, 499) for entry in hard.entries()))
    assert hard.ask("/explain", {**HARD, "time_limit": 0.2})[0] == 200


def _host_and_port(service: Service) -> tuple[str, int]:
    host, _, port = service.address.removeprefix("http://").rstrip("/").rpartition(":")
    return host, int(port)


def test_end_waits_for_answers_that_were_promised_and_for_no_body(hard) -> None:
    head = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(_host_and_port(hard), timeout=60) as slow:
        slow.sendall(head + b"Content-Length: 100\r\n\r\n{")
        thread, out = later(hard, {**HARD, "time_limit": 2.0})
        time.sleep(0.7)
        assert hard.end() == 0
        thread.join()
        assert b" 408 " in slow.recv(100)
    assert out[0][0] == 200
    assert out[0][1]["answers"][0]["status"] in ("feasible", "optimal", "unknown")
    assert "Traceback" not in "".join(hard.log)


@pytest.mark.skipif(sys.platform != "linux", reason="signals, and children as Linux lists them")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_service_that_is_ended(tmp_path, number) -> None:
    path = tmp_path / "local.clvq"
    clvq.save(hard_model(), path)
    with serving(path, "--max-seconds", "60") as service:
        pid = service.process.pid
        listed = Path(f"/proc/{pid}/task/{pid}/children")
        wait_until(lambda: listed.read_text().split())
        worker = Path("/proc") / listed.read_text().split()[0]
        with socket.create_connection(_host_and_port(service), timeout=60) as asking:
            asking.sendall(_posted(json.dumps(HARD)))
            for _ in range(2):  # what was sent before has been read then
                assert service.ask("/health")[0] == 200
            if number == signal.SIGTERM:
                service.process.send_signal(number)
                time.sleep(0.3)
            service.process.send_signal(number)
            assert service.process.wait(30) in (128 + number, -number)
        wait_until(lambda: not worker.exists() or " Z " in (worker / "stat").read_text())
        assert "Traceback" not in "".join(service.log)


def _posted(body: str) -> bytes:
    """A whole question, head and body."""
    head = (
        f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


def test_questions_that_arrived_are_answered_when_the_service_ends(tmp_path) -> None:
    """Also those that wait unread in connections that are kept open."""
    path = tmp_path / "m.clvq"
    clvq.save(loan_model(), path)
    asked = _posted(json.dumps({"rows": [ROW] * 3, "target": "accepted"}))
    with serving(path) as service, contextlib.ExitStack() as stack:
        links = [
            stack.enter_context(socket.create_connection(_host_and_port(service), timeout=60))
            for _ in range(12)
        ]
        for link in links:
            link.sendall(asked)
            assert link.recv(100).startswith(b"HTTP/1.1 200")
        for link in links:  # what is left of the first answers
            while b'"found_by"' not in link.recv(1 << 16):
                pass
        for link in links:
            link.sendall(asked)
        service.process.send_signal(signal.SIGTERM)
        for link in links:
            came = b""
            while more := link.recv(1 << 16):
                came += more
            assert b"HTTP/1.1 200" in came
            assert came.endswith(b"}")
        assert service.process.wait(60) == 0
