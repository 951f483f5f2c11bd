"""`POST /v1/runs/replay`: the order of its checks, what it may read, and what it answers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_rig import Got, Server, filled
from store_rig import Journal

from guardhook.rollout import replay_api

RUN = "run_" + "0" * 31 + "1"
Item = dict[str, object]


def item(seq: int, type: str, **data: object) -> Item:
    return {"ts": "2026-01-01T00:00:00Z", "seq": seq, "type": type, "data": data}


def sample(tenant: str | None = None, word: str = "one") -> list[Item]:
    started = {
        "step": 0,
        "prompt": "go",
        "system_prompt": "be good",
        **({} if tenant is None else {"tenant_id": tenant}),
    }
    call = {"id": "c1", "name": "Bash", "arguments": '{"command":"ls"}'}
    return [
        item(0, "run.started", **started),
        item(1, "llm.turn.completed", step=1, content=word, tool_calls=[call]),
        item(2, "tool.call.started", step=1, call_id="c1", tool="Bash", arguments='{"command":"ls"}'),
        item(3, "tool.call.completed", step=1, call_id="c1", tool="Bash", output="a"),
        item(4, "run.completed", step=2, output="done"),
    ]


def put(folder: Path, items: list[Item], name: str = RUN, day: str = "2026-01-01") -> Path:
    path = folder / day / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(i) + "\n" for i in items))
    return path


@pytest.fixture
def rollouts(tmp_path: Path) -> Path:
    folder = tmp_path / "rollouts"
    folder.mkdir()
    return folder


@pytest.fixture
def server(serve: object, rollouts: Path) -> Server:
    """A server of the test's own: what it forks or asks about is in its journal."""
    return serve(GUARDHOOK_ROLLOUT_DIR=str(rollouts))  # type: ignore[operator,no-any-return]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """One server for all tests that only read rollouts, and the parent of its rollout folder."""
    base = tmp_path_factory.mktemp("replay")
    server = Server(filled(base / "gh").base, home=base, environment={"GUARDHOOK_ROLLOUT_DIR": str(base / "rollouts")})
    yield server, base
    server.stop()


@pytest.fixture
def reader(standing: tuple[Server, Path]) -> tuple[Server, Path]:
    """That server, and its rollout folder, empty."""
    server, base = standing
    shutil.rmtree(base / "rollouts", ignore_errors=True)
    (base / "rollouts").mkdir()
    return server, base / "rollouts"


def post(server: Server, **body: object) -> Got:
    return server.ask("/v1/runs/replay", "POST", {"mode": "simulate", **body})


def test_simulate(reader: tuple[Server, Path]) -> None:
    server, rollouts = reader
    put(rollouts, sample())
    for path in (
        RUN,
        f"2026-01-01/{RUN}.jsonl",
        str(rollouts / "2026-01-01" / f"{RUN}.jsonl"),
        f"2026-01-01/../2026-01-01/{RUN}.jsonl",
    ):
        got = post(server, rollout_path=path)
        assert got.status == 200, got
        assert got.json == {
            "mode": "simulate",
            "events_replayed": 5,
            "step_count": 2,
            "matched": True,
            "mismatches": [],
        }
    assert post(server, rollout_path=RUN, detail=True).json["detail"]["announcements"] == {
        "independent": 1,
        "synthetic": 0,
    }  # type: ignore[index]
    put(rollouts, [sample()[0], *sample()[2:]])
    got = post(server, rollout_path=RUN, detect_drift=False)
    assert got.json["matched"] is False and len(got.json["mismatches"]) == 2  # type: ignore[arg-type]
    assert not {"drift", "integrity"} & set(got.json)


def test_fork(server: Server, rollouts: Path, journal: Journal) -> None:
    put(rollouts, sample())
    got = post(server, rollout_path=RUN, mode="fork", fork_step=1)
    assert got.status == 202, got
    made = got.json.pop("run_id") if False else got.json["run_id"]
    assert {k: v for k, v in got.json.items() if k != "run_id"} == {
        "mode": "fork", "from_step": 1, "original_step_count": 2, "original_outcome": "completed", "messages_restored": 2,
    }  # fmt: skip
    trace = server.ask(f"/v1/traces/{made}").json
    assert [(s["name"], s["output"]) for s in trace["steps"]] == [
        ("user_message", {"text": "go"}),
        ("assistant_message", {"text": "one"}),
    ]  # type: ignore[attr-defined]
    assert trace["forked_from_step"] == 1 and trace["metadata"]["copy"] == "never executed"  # type: ignore[index]
    assert server.ask("/v1/stats").json["overall"]["traces"] == 2  # type: ignore[index]
    assert post(server, rollout_path=RUN, mode="fork", fork_step=0).json["messages_restored"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {"rollout_path": RUN, "mode": "fork"}, {"rollout_path": RUN, "mode": "fork", "fork_step": "1"}, {"rollout_path": RUN, "mode": "fork", "fork_step": True},
        {"rollout_path": RUN, "mode": "fork", "fork_step": 1.5}, {"rollout_path": RUN, "mode": "fork", "fork_step": -1}, {"rollout_path": RUN, "mode": "fork", "fork_step": 99},
        {"rollout_path": RUN, "mode": "fork", "fork_step": None}, {"rollout_path": RUN, "mode": "odd"}, {"rollout_path": "run_missing", "mode": "odd"}, {"rollout_path": RUN},
        {"rollout_path": "", "mode": "simulate"}, {"rollout_path": "  ", "mode": "simulate"}, {"mode": "simulate"}, {"rollout_path": 7, "mode": "simulate"}, [],
        {"rollout_path": RUN, "mode": "simulate", "detect_drift": "yes"}, {"rollout_path": RUN, "mode": "simulate", "fork_step": "x"},
    ],
)  # fmt: skip
def test_requests_that_mean_nothing(shared: Server, body: object) -> None:
    put(shared.home / "rollouts", sample())
    got = shared.ask("/v1/runs/replay", "POST", body)
    assert (got.status, got.code) == (400, "invalid_request"), got


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"rollout_path": "a", "rollout_path": "b"}',
        b'{"a": NaN}',
        b"\xff",
        b"{} {}",
        b'{"a":' * 70 + b"1" + b"}" * 70,
    ],
)
def test_bodies_that_are_no_json(shared: Server, body: bytes) -> None:
    got = shared.ask("/v1/runs/replay", "POST", body, Content_Type="application/json; charset=utf-8")
    assert (got.status, got.code) == (400, "invalid_json"), got


def test_method_then_kind_then_size(shared: Server) -> None:
    server = shared
    got = server.ask("/v1/runs/replay")
    assert (got.status, got.headers["allow"], got.code) == (405, "POST", "method_not_allowed")
    assert server.ask("/v1/runs/replay", "DELETE").status == 405
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
        got = server.ask("/v1/runs/replay", "POST", b"{}", Content_Type=kind)
        assert (got.status, got.code) == (415, "unsupported_media_type")
    big = b'{"rollout_path": "' + b"x" * (4 << 20) + b'"}'
    got = server.ask("/v1/runs/replay", "POST", big, Content_Type="application/json")
    assert (got.status, got.code) == (413, "request_too_large")
    head = b"POST /v1/runs/replay HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    said = server.raw(head + b"Content-Length: 99999999999999\r\n\r\n{")
    assert said.startswith(b"HTTP/1.1 413")
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    said = server.raw(
        head + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunk * 4 + b"1\r\n \r\n0\r\n\r\n"
    )
    assert said.startswith(b"HTTP/1.1 413")
    exact = b'{"rollout_path": ""}'
    got = server.ask(
        "/v1/runs/replay", "POST", exact + b" " * ((4 << 20) - len(exact)), Content_Type="application/json"
    )
    assert (got.status, got.code) == (400, "invalid_request")


def test_missing_and_outside_are_one_answer(reader: tuple[Server, Path]) -> None:
    server, rollouts = reader
    tmp_path = rollouts.parent
    outside = put(tmp_path / "outside", sample())
    (tmp_path / "rollouts2").mkdir()
    beside = put(tmp_path / "rollouts2", sample())
    (rollouts / "link.jsonl").symlink_to(outside)
    (rollouts / "2026-01-02").symlink_to(tmp_path / "outside" / "2026-01-01")
    (rollouts / "loop.jsonl").symlink_to(rollouts / "loop.jsonl")
    answers = []
    for path in (
        "run_missing", "2026-01-01/none.jsonl", str(outside), "/etc/passwd", "../outside/2026-01-01/" + outside.name, "link.jsonl", f"2026-01-02/{RUN}.jsonl", RUN, str(beside),
        "../rollouts2/2026-01-01/" + beside.name, "..", ".", "a\0b", "loop.jsonl/x", "x" * 5000,
    ):  # fmt: skip
        got = post(server, rollout_path=path)
        assert (got.status, got.code) == (404, "rollout_not_found"), path
        answers.append(got.body)
    assert len(set(answers)) == 1
    os.unlink(rollouts / "link.jsonl")
    (rollouts / "inner.jsonl").symlink_to(put(rollouts, sample()))  # a link that stays inside
    assert post(server, rollout_path="inner.jsonl").status == 200


def test_a_rollout_folder_that_is_a_link_itself(serve: object, rollouts: Path, tmp_path: Path) -> None:
    put(rollouts, sample())
    (tmp_path / "named").symlink_to(rollouts)
    server = serve(GUARDHOOK_ROLLOUT_DIR=str(tmp_path / "named"))  # type: ignore[operator]
    assert post(server, rollout_path=RUN).status == 200


def test_the_newest_day_counts_for_a_bare_id(reader: tuple[Server, Path]) -> None:
    server, rollouts = reader
    put(rollouts, sample()[:1], day="2026-01-01")
    put(rollouts, sample(), day="2026-01-03")
    put(rollouts, sample()[:2], day="2026-01-02")
    put(rollouts, sample()[:3], day="not-a-day")
    assert post(server, rollout_path=RUN).json["events_replayed"] == 5


@pytest.mark.parametrize("path", ["run_a/b", "run_a.jsonl", "run_a\\b", "/run_a", "a"])
def test_what_is_no_bare_id(path: str) -> None:
    assert not replay_api.bare(path)


def test_files_that_break_the_format_are_named_with_their_line(reader: tuple[Server, Path]) -> None:
    server, rollouts = reader
    path = put(rollouts, sample())
    path.write_text(path.read_text().replace('"step": 2', '"step": 0'))
    got = post(server, rollout_path=RUN)
    assert (got.status, got.code) == (422, "rollout_invalid") and "line 5" in got.json["error"]["message"]  # type: ignore[index]
    path.unlink()
    os.mkfifo(path)
    assert post(server, rollout_path=RUN).code == post(server, rollout_path="2026-01-01").code == "rollout_not_found"
    (rollouts / "empty.jsonl").write_text("")
    got = post(server, rollout_path="empty.jsonl")
    assert got.json == {"mode": "simulate", "events_replayed": 0, "step_count": 0, "matched": True, "mismatches": []}
    got = post(server, rollout_path="empty.jsonl", mode="fork", fork_step=0)
    assert (got.status, got.code) == (400, "invalid_request")


def test_without_a_rollout_folder(serve: object) -> None:
    server = serve()  # type: ignore[operator]
    got = post(server, rollout_path=RUN)
    assert (got.status, got.code) == (501, "not_configured")
    assert post(server, rollout_path=" ").status == 400


def test_another_tenant_s_rollout_is_not_there(serve: object, rollouts: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("owner-token-0123456789\nacme acme-token-0123456789\nbeta beta-token-0123456789\n")
    tokens.chmod(0o600)
    server = serve("--token-file", str(tokens), GUARDHOOK_ROLLOUT_DIR=str(rollouts))  # type: ignore[operator]
    put(rollouts, sample("acme"), name="run_acme")
    put(rollouts, sample(), name="run_nobody")
    put(rollouts, sample(7), name="run_odd")  # type: ignore[arg-type]

    def ask(token: str, path: str, **body: object) -> Got:
        return server.ask(
            "/v1/runs/replay",
            "POST",
            {"mode": "simulate", "rollout_path": path, **body},
            Authorization=f"Bearer {token}-token-0123456789",
        )  # type: ignore[no-any-return]

    assert ask("acme", "run_acme").status == 200
    missing = ask("beta", "run_missing")
    assert missing.status == 404
    for token, path in (("beta", "run_acme"), ("acme", "run_nobody"), ("beta", "run_nobody"), ("acme", "run_odd")):
        got = ask(token, path)
        assert (got.status, got.body) == (404, missing.body)
        assert ask(token, path, mode="fork", fork_step=1).status == 404
    assert ask("owner", "run_acme").status == ask("owner", "run_nobody").status == 200
    made = ask("acme", "run_acme", mode="fork", fork_step=1).json["run_id"]
    for token, status in (("acme", 200), ("beta", 404), ("owner", 200)):
        assert server.ask(f"/v1/traces/{made}", Authorization=f"Bearer {token}-token-0123456789").status == status


def exported(journal: Journal, folder: Path) -> str:
    """The ended run of the journal as a file in the rollout folder; gives its id."""
    from click.testing import CliRunner

    from guardhook.commands import main

    out = CliRunner().invoke(main, ["rollout", "export", "--all", str(folder), "--dir", str(journal.base)])
    assert out.exit_code == 0, out.output
    (file,) = [
        p for p in folder.rglob("run_*.jsonl") if "session_end" in p.read_text() or "run.completed" in p.read_text()
    ]
    return file.stem


def test_drift(server: Server, rollouts: Path, journal: Journal) -> None:
    run = exported(journal, rollouts)
    got = post(server, rollout_path=run, detect_drift=True)
    assert got.status == 200, got
    assert list(got.json) == ["mode", "matched", "integrity", "drift"] and got.json["mode"] == "simulate"
    assert set(got.json["integrity"]) == {"events_replayed", "step_count", "matched", "mismatches"}  # type: ignore[call-overload]
    drift = got.json["drift"]
    assert isinstance(drift, dict)
    assert {
        "added_steps",
        "removed_steps",
        "changed_steps",
        "divergent_tool_calls",
        "cost_delta_usd",
        "outcome_diff",
        "score",
        "matched",
        "policy",
    } <= set(drift)
    assert drift["policy"]["evaluated"] == 1  # the other call was never judged
    put(rollouts, sample())
    got = post(server, rollout_path=RUN, detect_drift=True)
    assert (got.status, got.code) == (500, "replay_error")
    started = sample()
    started[0]["data"]["run_id"] = "run_unknown"  # type: ignore[index]
    put(rollouts, started)
    assert post(server, rollout_path=RUN, detect_drift=True).code == "replay_error"


def test_a_third_drift_at_once_is_refused_before_anything_is_read(tmp_path: Path, journal: Journal) -> None:
    from guardhook.views.http import replay
    from guardhook.views.http.answers import Refusal
    from guardhook.views.http.call import Call
    from guardhook.views.http.context import DRIFTS, OWNER, Context

    folder = tmp_path / "rollouts"
    run = exported(journal, folder)
    context = Context(journal.folders, rollout_dir=str(folder))
    assert DRIFTS == 2 and context.drifts.take() and context.drifts.take()
    body = {"rollout_path": "run_missing", "mode": "simulate", "detect_drift": True}
    with pytest.raises(Refusal) as caught:
        replay.replay(Call(context, OWNER, {}, {}, body, None))
    assert (caught.value.status, caught.value.code) == (503, "replay_busy")
    simulated = replay.replay(Call(context, OWNER, {}, {}, {**body, "rollout_path": run, "detect_drift": False}, None))
    assert simulated.status == 200
    context.drifts.give()
    for _ in range(3):  # a slot is given back, whatever comes of it
        with pytest.raises(Refusal) as caught:
            replay.replay(Call(context, OWNER, {}, {}, body, None))
        assert caught.value.status == 404
