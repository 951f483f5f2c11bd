"""Archives, accounts and assessments over HTTP: who sees what, what is refused, and how large a body may be."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from archive_rig import RUN, Journal, asked, called, guardhook, said_, session, told, turn

from guardhook.archive import plain, reader
from guardhook.archive.envelope import build_recording_envelope
from guardhook.archive.packing import pack_recording
from guardhook.views.http.account import MOST_BYTES
from guardhook.views.http.app import app
from guardhook.views.http.context import Context, Tokens

OWNER, ACME = "owner-token-0123456789", "acme-token-0123456789"


class Asking:
    """Requests to the application, without a socket."""

    def __init__(self, journal: Journal, **more: Any) -> None:
        self.app = app(Context(journal.folders, **more))

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as asking:
                return await asking.request(method, path, **more)

        return asyncio.run(ask())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)


def client(journal: Journal, **more: Any) -> Asking:
    return Asking(journal, **more)


@pytest.fixture
def run(journal: Journal) -> str:
    session(journal)
    return str(told(guardhook(journal, "list", "--json"))["items"][0]["id"])


def test_what_ends_a_run_is_what_the_settings_say(journal: Journal) -> None:
    session(journal, end=False)
    name = str(told(guardhook(journal, "list", "--json"))["items"][0]["id"])
    refused = client(journal).post(f"/v1/runs/{name}/archive", json={})
    assert refused.status_code == 422 and "complete" in refused.text
    made = client(journal, close_on="stop").post(f"/v1/runs/{name}/archive", json={})
    assert made.status_code == 200 and made.json()["run"]["basis"]["complete"] == "stop-event"


def test_accounts_and_assessments_are_those_of_the_command(journal: Journal, run: str) -> None:
    asking = client(journal)
    got = asking.get(f"/v1/runs/{run}/account").json()
    assert got["account"] == told(guardhook(journal, "account", run, "--json"))
    assert got["shown"]["event:0:data/prompt"] == {"value": "tidy up the project"}
    assert asking.get(f"/v1/runs/{run}/account?turn=1").json() == got
    assert asking.get(f"/v1/runs/{run}/assessment").json()["assessment"] == told(guardhook(journal, "account", run, "--standing", "--json"))  # fmt: skip
    hidden = asking.get(f"/v1/runs/{run}/account?paths=hidden").text
    assert "/home/user/project/a.py" not in hidden and "/home/user/project/a.py" in json.dumps(got)


def test_leaves(journal: Journal, run: str) -> None:
    asking = client(journal)
    for pointer, expected in (
        ("event:0:data/prompt", {"value": "tidy up the project"}), ("event:0:data/session", {"withheld": "not-allowed"}), ("nonsense", {"withheld": "missing"}),
    ):  # fmt: skip
        got = asking.get(f"/v1/runs/{run}/account/shown", params={"pointer": pointer})
        assert got.status_code == 200 and got.json() == {"pointer": pointer, **expected}
    assert asking.get(f"/v1/runs/{run}/account/shown").json() == {"pointer": "", "withheld": "missing"}


def test_archives(journal: Journal, run: str) -> None:
    asking = client(journal)
    got = asking.post(f"/v1/runs/{run}/archive", json={})
    assert got.status_code == 200 and got.headers["content-type"] == "application/json"
    document = reader.open_document(got.content)
    assert document.run["complete"] is True and document.run["basis"]["complete"] == "session-end-event"  # type: ignore[index]
    packed = asking.post(f"/v1/runs/{run}/archive", json={"packed": True, "run_id": "mine", "tenant": "x", "max_events": 3}).json()  # fmt: skip
    assert packed["run"]["runId"] == "mine" and packed["recording"]["format"].startswith("guardhook.recording.packed")
    assert packed["run"]["droppedEvents"] > 0
    assert not (journal.base / "archives").exists()
    for body, status, error in (
        ({"privacy": "redacted"}, 422, {"code": "ERR_UNSUPPORTED_PRIVACY_MODE", "mode": "redacted"}),
        ({"started_at": "soon"}, 422, {"code": "ERR_INDETERMINATE_RUN_FACT", "field": "startedAt"}),
        ({"complete": 1}, 422, {"code": "invalid_request"}), ({"colour": 1}, 400, {"code": "invalid_request"}), ([], 400, {"code": "invalid_request"}),
        ({"max_events": 0}, 400, {"code": "invalid_request"}), ({"packed": "yes"}, 400, {"code": "invalid_request"}),
    ):  # fmt: skip
        got = asking.post(f"/v1/runs/{run}/archive", json=body)
        found = got.json()["error"]
        assert (got.status_code, {k: found.get(k) for k in error}) == (status, error)


def test_unknown_runs(journal: Journal, run: str) -> None:
    asking = client(journal)
    for path in ("account", "assessment", "account/shown?pointer=x"):
        assert asking.get(f"/v1/runs/nosuch/{path}").status_code == 404
    assert asking.post("/v1/runs/nosuch/archive", json={}).status_code == 404
    for query in ("turn=9", "turn=0", "turn=x", "paths=some"):
        assert asking.get(f"/v1/runs/{run}/account?{query}").status_code == 400


def test_tenants_see_their_own(journal: Journal, run: str) -> None:
    asking = client(journal, tokens=Tokens([(OWNER, None), (ACME, "acme")]), tenant="other")
    for token, status in ((OWNER, 200), (ACME, 404), ("wrong", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        for path in ("account", "assessment", "account/shown?pointer=x"):
            assert asking.get(f"/v1/runs/{run}/{path}", headers=headers).status_code == status
        assert asking.post(f"/v1/runs/{run}/archive", json={}, headers=headers).status_code == status
    mine = client(journal, tokens=Tokens([(ACME, "acme")]), tenant="acme")
    got = mine.post(f"/v1/runs/{run}/archive", json={"tenant": "other"}, headers={"Authorization": f"Bearer {ACME}"})
    assert got.status_code == 422 and got.json()["error"]["field"] == "tenant"


def test_bodies(journal: Journal) -> None:
    asking = client(journal)
    recording = turn(asked("hello"), called("mcp__db__search", output=[{"a": 1}] * 5), said_("ok"))
    envelope = build_recording_envelope(recording, run={"complete": True, "dropped_events": 0})
    answers = []
    for body in (recording, pack_recording(recording), envelope, {**envelope, "recording": pack_recording(recording)}):
        got = asking.post("/v1/account", content=plain.encode(body), headers={"Content-Type": "application/json"})
        assert got.status_code == 200, got.text
        answers.append(got.json())
    assert all(a == answers[0] for a in answers) and answers[0]["account"]["run"]["runId"] == RUN
    assert answers[0]["account"]["standing"] == "consistent" and len(answers[0]["account"]["rows"]) == 7
    assert not journal.base.exists()


def test_bodies_that_are_refused(journal: Journal) -> None:
    asking = client(journal)

    def post(data: bytes, kind: str = "application/json") -> tuple[int, dict[str, Any]]:
        got = asking.post("/v1/account", content=data, headers={"Content-Type": kind})
        error = got.json()["error"]
        assert isinstance(error, dict)
        return got.status_code, error

    values: list[Any] = ["x" * 100]
    values += [[{"$gh:ref": k}] * 10 for k in range(40)]
    bomb = {"format": "guardhook.recording.packed.v1", "values": values, "recording": {"events": [{"$gh:ref": 40}]}}
    status, error = post(plain.encode(bomb))
    assert (status, error["code"], error["max_bytes"]) == (413, "ERR_PACKED_RECORDING_TOO_LARGE", MOST_BYTES)
    assert post(b" " * (MOST_BYTES + 1))[0] == 413
    just = packed_to(MOST_BYTES)
    assert asking.post("/v1/account", content=just, headers={"Content-Type": "application/json"}).status_code == 200
    assert post(packed_to(MOST_BYTES + 1))[0] == 413
    for data, code in (
        (b"nonsense", "ERR_UNREADABLE"), (b"[]", "ERR_UNREADABLE"), (b'{"format":"guardhook.recording.v9"}', "ERR_UNKNOWN_FORMAT"),
        (b'{"a":1}', "ERR_MISSING_MEMBER"), (b"[" * 100_000, "ERR_UNREADABLE"), (b'{"format":"guardhook.recording.packed.v1"}', "ERR_PACKED_RECORDING"),
    ):  # fmt: skip
        status, error = post(data)
        assert (status, error["code"]) == (422, code)
    assert post(b"{}", "text/plain")[0] == 415
    assert asking.get("/v1/account").status_code == 405


def packed_to(size: int) -> bytes:
    """A small packed recording that stands for exactly so many bytes."""
    text = "x" * 1_000_000
    events: list[Any] = [{"seq": n, "type": "t", "data": {"text": text}} for n in range(16)]
    recording = {"snapshot": "", "events": events, "structure": None}
    recording["snapshot"] = "y" * (size - len(plain.encode(recording)))
    packed = pack_recording(recording)
    data = plain.encode(packed)
    assert len(data) < 4_000_000
    return data
