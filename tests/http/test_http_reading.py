"""What the interface tells is what the commands tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from http_rig import Server
from store_rig import SESSION, Journal

from guardhook.commands import main


def command(directory: object, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--json", "--dir", str(directory)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def server(serve: object) -> Server:
    return serve()  # type: ignore[operator,no-any-return]


def test_the_same_as_the_commands_say(server: Server, journal: Journal) -> None:
    base = journal.base
    (first, second) = json.loads(command(base, "list", "--sort", "started_at"))["items"]
    trace = first["id"]
    for path, words in [
        ("/v1/traces", ["list"]),
        ("/v1/traces?limit=1&offset=1", ["list", "--limit", "1", "--offset", "1"]),
        ("/v1/traces?sort=-started_at&status=completed", ["list", "--sort", "-started_at", "--status", "completed"]),
        (f"/v1/traces?session={SESSION}&agent=claude", ["list", "--session", SESSION, "--agent", "claude"]),
        (f"/v1/traces/{trace}", ["show", trace]),
        (f"/v1/traces/{trace[:10]}?from_step=2&to_step=2&snapshots=true", ["show", trace, "--from-step", "2", "--to-step", "2", "--snapshots"]),
        (f"/v1/traces/{trace}?steps_only", ["show", trace, "--steps-only"]),
        (f"/v1/traces/{trace}/decisions", ["decisions", trace]),
        (f"/v1/traces/{trace}/why?step=3", ["why", trace, "--step", "3"]),
        ("/v1/stats", ["stats"]),
        (f"/v1/traces/{second['id']}", ["show", second["id"]]),
    ]:  # fmt: skip
        got = server.ask(path)
        assert got.status == 200, (path, got)
        assert got.headers["content-type"] == "application/json"
        assert got.body.decode("ascii") == command(base, *words), path


def test_a_run_and_its_rollout(server: Server, journal: Journal, tmp_path: Path) -> None:
    page = server.ask("/v1/runs").json
    items = page["items"]
    assert isinstance(items, list) and page["total"] == len(items) == 2
    (run,) = [r for r in items if r["session_id"] == SESSION]
    assert server.ask(f"/v1/runs/{run['run_id']}").json == run
    assert server.ask(f"/v1/runs/{run['trace_id']}").json == run
    got = server.ask(f"/v1/runs/{run['run_id']}/rollout")
    assert got.headers["content-type"] == "application/x-ndjson"
    out = CliRunner().invoke(
        main, ["rollout", "export", run["run_id"], str(tmp_path / "out"), "--dir", str(journal.base)]
    )
    assert out.exit_code == 0, out.output
    (file,) = (tmp_path / "out").rglob("*.jsonl")
    assert got.body == file.read_bytes()
    assert server.ask("/v1/runs?session=" + SESSION).json["total"] == 1
    assert server.ask("/v1/runs?limit=1&offset=1").json["items"] == [items[1]]
    assert server.ask("/v1/runs/run_none").status == server.ask("/v1/runs/run_none/rollout").status == 404


def test_where_nothing_was_recorded(serve: object, tmp_path: Path) -> None:
    server = serve(directory=tmp_path / "empty")  # type: ignore[operator]
    assert server.ask("/v1/traces").json == server.ask("/v1/runs").json == {"items": [], "total": 0}
    assert json.loads(command(tmp_path / "empty", "stats")) == server.ask("/v1/stats").json
    got = server.ask("/v1/traces/trc_x")
    assert got.status == 404 and got.code == "not_found"
    assert not (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/traces/none", 404), ("/v1/traces/t", 400), ("/v1/traces/%00", 404), ("/v1/traces/a%2Fb", 404), ("/v1/traces/none/why?step=1", 404), ("/v1/nothing", 404),
        ("/", 404), ("/v1/traces?limit=0", 400), ("/v1/traces?limit=1001", 400), ("/v1/traces?limit=x", 400), ("/v1/traces?limit=1&limit=2", 400), ("/v1/traces?lmit=1", 400),
        ("/v1/traces?offset=-1", 400), ("/v1/traces?status=odd", 400), ("/v1/traces?status=", 400), ("/v1/traces?since=whenever", 400), ("/v1/traces?sort=odd", 400),
        ("/v1/traces/none?from_step=3&to_step=2", 400), ("/v1/traces/none?snapshots=maybe", 400), ("/v1/traces/none/why", 400), ("/v1/traces/none/events?follow=7", 400),
        ("/v1/traces/none/events", 404),
    ],
)  # fmt: skip
def test_questions_that_have_no_answer(shared: Server, path: str, status: int) -> None:
    got = shared.ask(path)
    assert got.status == status, got
    assert got.code == ("not_found" if status == 404 else "invalid_request")


def test_other_methods(shared: Server) -> None:
    for path, allow in [("/v1/traces", "GET"), ("/v1/health", "GET")]:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            got = shared.ask(path, method)
            assert (got.status, got.headers["allow"], got.code) == (405, allow, "method_not_allowed")
    head = shared.ask("/v1/traces", "HEAD")
    assert head.status == 200 and head.body == b""
    assert shared.ask("/v1/health", "HEAD").status == 200


def test_answers_are_ascii_and_say_how_they_may_be_used(shared: Server) -> None:
    got = shared.ask("/v1/traces")
    assert got.body.isascii() and b"\x1b" not in got.body and b"\\u001b[31m" in got.body
    assert got.headers["cache-control"] == "no-store"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-security-policy"].startswith("default-src 'none'")
    assert "access-control-allow-origin" not in got.headers
    assert "server" not in got.headers


def test_a_long_trace_comes_in_pieces(serve: object, tmp_path: Path) -> None:
    from store_rig import event

    journal = Journal(tmp_path / "long")
    journal.add(
        *[
            event("pre_tool", tool="Bash", given={"command": f"echo {n} " + "x" * 300}, call=f"c{n}")
            for n in range(800)
        ],
        step=0.001,
    )
    server = serve(directory=journal.base)  # type: ignore[operator]
    trace = server.ask("/v1/traces").json["items"][0]["id"]
    got = server.ask(f"/v1/traces/{trace}")
    assert got.headers["transfer-encoding"] == "chunked"
    assert len(got.json["steps"]) == 800
    assert got.body.decode() == command(journal.base, "show", trace)
