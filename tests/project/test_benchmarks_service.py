"""The benchmark of the service: its client reads answers, and its report says what was measured."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from benchmarks.service import Client, bodies, houses, markdown

pytestmark = pytest.mark.docs

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_stored_report_says_what_was_measured() -> None:
    stored = json.loads((RESULTS / "service.json").read_text("utf-8"))
    told = markdown(stored["environment"], stored["seconds"], stored)
    assert told == (RESULTS / "service.md").read_text("utf-8")
    assert {one["kind"] for one in stored["loads"]} == {"plain", "mixed", "local"}
    assert {one["clients"] for one in stored["loads"]} == {1, 8, 64}
    assert all(one["is_well"] for one in stored["troubles"])


def test_kinds_of_questions_are_what_they_are_called() -> None:
    plain, whole, local = (houses()[0], houses("whole")[0], houses(local=True)[0])
    assert [model.is_local for model in (plain, whole, local)] == [False, False, True]
    assert [all(one.is_real for one in model.features) for model in (plain, whole)] == [True, False]
    assert json.loads(bodies([{"a": 1.0}], text=True)[0])["text"] is True


@pytest.mark.parametrize("parts", [[b"{}"], [b"{", b"}"], [b"{"]])
def test_client_tells_whole_answers_from_others(parts: list[bytes]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            link, _ = server.accept()
            with link:
                link.recv(1 << 16)
                for part in (head[:10], head[10:], *parts):
                    link.sendall(part)

        thread = threading.Thread(target=answer)
        thread.start()
        client = Client(server.getsockname()[1])
        whole = b"".join(parts) == b"{}"
        assert client.ask(b"{}") == ((200, b"{}") if whole else (0, b"{"))
        client.close()
        thread.join()
