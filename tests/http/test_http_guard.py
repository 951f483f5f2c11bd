"""Who may ask: programs of this machine, not pages; with a token file only who has a token, and a tenant sees only what is his."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from http_rig import Got, Server, environment
from store_rig import Journal, event

from guardhook.commands import main
from guardhook.store import TraceRecorder
from guardhook.views.http.context import TokenError, read_tokens
from guardhook.views.http.guard import local_host

TOKEN, ACME, BETA = "owner-token-0123456789", "acme-token-0123456789", "beta-token-0123456789"


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("127.0.0.1", True), ("127.0.0.1:7467", True), ("localhost", True), ("LOCALHOST:1", True), ("[::1]:7467", True), ("[::1]", True), ("127.8.9.1", True), ("mine.example", True),
        ("Mine.Example:80", True), ("evil.example", False), ("127.0.0.1.evil.example", False), ("localhost.evil.example", False), ("0.0.0.0", False), ("10.0.0.1", False),
        ("", False), ("127.0.0.1@evil", False), ("a@127.0.0.1", False), ("127.0.0.1/x", False), ("127.0.0.1:x", False), ("[::1", False), ("::1", False), ("localhost ", False),
        ("127.0.0.1:99999", False), ("[::ffff:10.0.0.1]", False), ("localhost?", False), ("localhost#", False), ("lоcalhost", False),
    ],
)  # fmt: skip
def test_names_of_this_machine(host: str, fits: bool) -> None:
    assert local_host(host, frozenset(("mine.example",))) == fits


def test_another_host_is_refused_before_anything_is_looked_at(shared: Server) -> None:
    for path in ("/v1/traces", "/nothing", "/openapi.json"):
        got = shared.ask(path, Host="evil.example")
        assert (got.status, got.code) == (403, "host_refused")
    twice = shared.raw(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\nConnection: close\r\n\r\n")
    assert twice.split()[1] in (b"400", b"403")
    elsewhere = shared.raw(b"GET http://127.0.0.1/v1/health HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n")
    assert elsewhere.split()[1] == b"403"
    assert shared.raw(b"GET /v1/health HTTP/1.0\r\n\r\n").split()[1] == b"403"


def test_pages_are_refused(shared: Server) -> None:
    for origin in ("https://evil.example", "null", shared.url, "http://localhost:3000"):
        got = shared.ask("/v1/traces", Origin=origin)
        assert (got.status, got.code) == (403, "origin_refused")
        assert "access-control-allow-origin" not in got.headers
    assert shared.ask("/v1/traces", Sec_Fetch_Site="cross-site").status == 403
    assert shared.ask("/v1/traces", Sec_Fetch_Site="none").status == 200
    site = b"Sec-Fetch-Site: none\r\nSec-Fetch-Site: Cross-Site\r\n"
    assert (
        shared.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + site + b"\r\n").split()[1] == b"403"
    )
    assert (
        shared.ask("/v1/traces", "OPTIONS", Origin="https://evil.example", Access_Control_Request_Method="GET").status
        == 403
    )


def test_pages_that_the_owner_named_may_ask(serve: object) -> None:
    server = serve("--allow-origin", "http://localhost:3000", "--allow-host", "dev.example")  # type: ignore[operator]
    got = server.ask("/v1/traces", Origin="http://localhost:3000", Sec_Fetch_Site="cross-site")
    assert (
        got.status == 200
        and got.headers["access-control-allow-origin"] == "http://localhost:3000"
        and got.headers["vary"] == "Origin"
    )
    got = server.ask("/v1/traces", "OPTIONS", Origin="http://localhost:3000", Access_Control_Request_Method="POST")
    assert got.status == 204 and "POST" in got.headers["access-control-allow-methods"]
    assert server.ask("/v1/traces", Origin="http://localhost:3001").status == 403
    assert server.ask("/v1/traces", Host="dev.example:80").status == 200


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(f"# who\n{TOKEN}\n\nacme {ACME}\nbeta\t{BETA}\n")
    file.chmod(0o600)
    return file


def test_a_token_is_needed_where_there_is_a_token_file(serve: object, tokens: Path) -> None:
    server = serve("--token-file", str(tokens))  # type: ignore[operator]
    for header in (
        None,
        "",
        "Bearer",
        "Bearer wrong-token-0123456789",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
    ):
        got = server.ask("/v1/traces", **({} if header is None else {"Authorization": header}))
        assert (got.status, got.code, got.headers["www-authenticate"]) == (401, "unauthorized", "Bearer"), header
    assert server.ask("/nothing").status == 401
    assert server.ask("/v1/health").status == 401
    assert server.ask("/v1/traces", Authorization=f"Bearer {TOKEN}").status == 200
    assert server.ask("/v1/traces", Authorization=f"bearer  {TOKEN}").status == 200
    assert server.ask("/nothing", Authorization=f"Bearer {TOKEN}").status == 404


def test_a_tenant_sees_what_is_his_and_nothing_else(serve: object, tokens: Path, journal: Journal) -> None:
    ids = {}
    for tenant in ("acme", "beta"):
        recorder = TraceRecorder(journal.folders)
        ids[tenant] = recorder.start_trace(f"agent-{tenant}", input={}, metadata={"tenant_id": tenant})
        recorder.end_step(recorder.start_step("tool_call", "x", input={}), output=1)
        recorder.end_trace(output={})
    server = serve("--token-file", str(tokens))  # type: ignore[operator]

    def ask(path: str, token: str) -> tuple[int, dict[str, object]]:
        got = server.ask(path, Authorization=f"Bearer {token}")
        return got.status, got.json

    assert ask("/v1/traces", TOKEN)[1]["total"] == 4
    for tenant, token, other in (("acme", ACME, "beta"), ("beta", BETA, "acme")):
        _, page = ask("/v1/traces", token)
        assert page["total"] == 1 and [t["id"] for t in page["items"]] == [ids[tenant]]  # type: ignore[attr-defined]
        assert ask("/v1/traces?offset=1", token)[1] == {"items": [], "total": 1}
        assert ask("/v1/traces?offset=7", token)[1] == {"items": [], "total": 1}
        assert ask(f"/v1/traces/{ids[tenant]}", token)[0] == 200
        missing = ask("/v1/traces/trc_doesnotexist", token)
        assert missing[0] == 404
        for path in (
            f"/v1/traces/{ids[other]}",
            f"/v1/traces/{ids[other]}/decisions",
            f"/v1/traces/{ids[other]}/why?step=1",
            f"/v1/traces/{ids[other]}/events",
            "/v1/traces/trc",
        ):
            assert ask(path, token) == missing, path
        assert [r["trace_id"] for r in ask("/v1/runs", token)[1]["items"]] == [ids[tenant]]  # type: ignore[attr-defined]
        assert ask(f"/v1/runs/{ids[other]}", token)[0] == ask(f"/v1/runs/{ids[other]}/rollout", token)[0] == 404
        assert ask(f"/v1/runs/{ids[tenant]}", token)[0] == 200
        assert ask("/v1/stats", token) == missing


def test_rollouts_and_copies_belong_to_whom_their_traces_do(serve: object, tokens: Path, journal: Journal) -> None:
    """The machine's own tenant got at what was recorded here for others: by the rollout file, and by copies that the owner made."""
    (journal.base / "config.toml").write_text('[identity]\ntenant = "acme"\n')
    recorder = TraceRecorder(journal.folders)
    made = recorder.start_trace("agent", input={"prompt": "only beta's"}, metadata={"tenant_id": "beta"})
    recorder.end_trace(output={})
    nobodys = recorder.start_trace("agent", input={}, metadata={"tenant_id": 7})
    recorder.end_trace(output={})
    folder = journal.base / "rollouts"
    told = CliRunner().invoke(main, ["rollout", "export", "--all", str(folder), "--dir", str(journal.base)])
    assert told.exit_code == 0, told.output
    server = serve("--token-file", str(tokens), GUARDHOOK_ROLLOUT_DIR=str(folder))  # type: ignore[operator]

    def ask(path: str, token: str, body: object = None) -> Got:
        return server.ask(path, "GET" if body is None else "POST", body, Authorization=f"Bearer {token}")  # type: ignore[no-any-return]

    run = str(ask(f"/v1/runs/{made}", TOKEN).json["run_id"])
    (file,) = folder.glob(f"*/{run}.jsonl")
    assert json.loads(file.read_text().splitlines()[0])["data"]["tenant_id"] == "beta"
    simulate, fork = {"rollout_path": run, "mode": "simulate"}, {"rollout_path": run, "mode": "fork", "fork_step": 0}
    assert [ask("/v1/runs/replay", token, simulate).status for token in (TOKEN, ACME, BETA)] == [200, 404, 200]
    copy = ask("/v1/runs/replay", TOKEN, fork).json["run_id"]
    assert [ask(f"/v1/traces/{copy}", token).status for token in (TOKEN, ACME, BETA)] == [200, 404, 200]
    assert [ask(f"/v1/traces/{nobodys}", token).status for token in (TOKEN, ACME, BETA)] == [200, 404, 404]
    # A file of before says what it says: the trace decides.
    file.write_text(file.read_text().replace('"tenant_id":"beta"', '"tenant_id":"acme"'))
    assert [ask("/v1/runs/replay", token, simulate).status for token in (TOKEN, ACME)] == [200, 404]


def test_what_was_recorded_here_belongs_to_the_machine_s_tenant(serve: object, tokens: Path, journal: Journal) -> None:
    (journal.base / "config.toml").write_text('[identity]\ntenant = "acme"\n')
    server = serve("--token-file", str(tokens))  # type: ignore[operator]
    assert server.ask("/v1/traces", Authorization=f"Bearer {ACME}").json["total"] == 2
    assert server.ask("/v1/traces", Authorization=f"Bearer {BETA}").json["total"] == 0


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o600, "there is no token"), ("# nothing\n", 0o600, "there is no token"), ("short\n", 0o600, "line 1: the token is shorter"), (f"{TOKEN}\na b c\n", 0o600, "line 2"),
        (f"{TOKEN}\nacme {TOKEN}\n", 0o600, "line 2: this token stands"), (f"{TOKEN}\n", 0o644, "others can read it"), (f"{TOKEN}\n\udcff\n", 0o600, "line 2: not UTF-8"),
    ],
)  # fmt: skip
def test_token_files_that_cant_be_used(tmp_path: Path, text: str, mode: int, said: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text, errors="surrogateescape")
    file.chmod(mode)
    with pytest.raises(TokenError, match=said) as caught:
        read_tokens(str(file))
    assert TOKEN not in str(caught.value)


def test_a_token_file_that_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "fifo"):
        with pytest.raises(TokenError):
            read_tokens(str(path))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"), (["--host", "0.0.0.0", "--allow-remote"], "--token-file"), (["--host", "::", "--allow-remote"], "--token-file"),
        (["--host", "192.0.2.1"], "--allow-remote"), (["--allow-origin", "localhost:3000"], "origin"), (["--allow-origin", "http://x/"], "origin"),
        (["--allow-origin", "*"], "origin"), (["--port", "70000"], "70000"), (["--token-file", "/does/not/exist"], "/does/not/exist"),
    ],
)  # fmt: skip
def test_nothing_beyond_the_loopback_unless_told_so_twice(tmp_path: Path, words: list[str], said: str) -> None:
    out = CliRunner().invoke(main, ["serve", "--dir", str(tmp_path), *words])
    assert out.exit_code == 2 and said in out.stderr


@pytest.mark.parametrize(
    "config",
    [
        '[serve]\nport = "x"\n',
        "[serve]\nport = 70000\n",
        "[serve]\nallow_origins = 7\n",
        "[serve]\ntoken_file = 7\n",
        "[serve\n",
    ],
)
def test_settings_that_cant_be_used(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.toml").write_text(config)
    out = CliRunner().invoke(main, ["serve", "--dir", str(tmp_path), "--json"])
    assert out.exit_code == 2 and json.loads(out.stdout)["ok"] is False


def test_a_port_that_is_taken(shared: Server, tmp_path: Path) -> None:
    out = CliRunner().invoke(main, ["serve", "--dir", str(tmp_path), "--port", str(shared.port)])
    assert out.exit_code == 1 and "can't listen" in out.stderr


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_quietly_and_takes_its_streams_along(serve: object, by: int) -> None:
    server = serve()  # type: ignore[operator]
    stream = server.events("/v1/events")
    assert next(stream)[0] == ":"
    assert server.stop(by)[::2] == (0, "stopped\n")
    assert [e for e in stream if e[0] != ":"] == []


def test_the_address_is_told_to_people_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "guardhook", "serve", "--port", "0", "--dir", str(tmp_path)], stdout=subprocess.PIPE, env=environment(tmp_path), text=True
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on http://127.0.0.1:")
    process.terminate()
    assert process.wait(20) == 0


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://evil.example/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/runs/replay HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["another host's", "no path", "tunnel", "two lengths"],
)
def test_what_a_proxy_may_read_differently_is_refused_and_ends_the_connection(shared: Server, request_: bytes) -> None:
    answer = shared.raw(request_)
    assert answer.split()[1] == b"400" and answer.count(b"HTTP/1.1 ") == 1 and b'"invalid_request"' in answer


def test_who_only_holds_connections_is_sent_away(serve: object) -> None:
    server = serve(changed="from guardhook.views.http import server; server.HEAD_SECONDS = 0.2; server.CONNECTIONS = 8")  # type: ignore[operator]
    held = [socket.create_connection((server.host, server.port), timeout=20) for _ in range(9)]
    for number, connection in enumerate(held):
        with contextlib.suppress(OSError):
            connection.sendall(b"" if number % 2 else b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: ")
    for connection in held:
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
        connection.close()
    assert server.ask("/v1/health").status == 200


def test_two_hundred_at_once(shared: Server) -> None:
    with ThreadPoolExecutor(200) as pool:
        assert {got.status for got in pool.map(shared.ask, ["/v1/health"] * 400)} == {200}


def test_nonsense_on_the_socket_harms_nobody(serve: object) -> None:
    server = serve(changed="from guardhook.views.http import server; server.HEAD_SECONDS = 0.2")  # type: ignore[operator]
    for data in (
        b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"\x00" * 1000 + b"\r\n\r\n",
    ):
        answer = server.raw(data)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert server.ask("/v1/health").status == 200
    assert server.ask("/v1/traces/" + "x" * 5000).status == 404
    assert server.process.poll() is None


def test_hostile_names_come_back_harmless(shared: Server) -> None:
    got = shared.ask("/v1/traces?status=%1b%5b31m%e2%80%ae")
    assert got.status == 400 and got.body.isascii() and b"\x1b" not in got.body


def test_live_lines_of_others_are_not_seen(serve: object, tokens: Path, journal: Journal) -> None:
    server = serve("--token-file", str(tokens))  # type: ignore[operator]
    stream = server.events("/v1/events", Authorization=f"Bearer {ACME}")
    assert next(stream)[0] == ":"
    journal.add(event("notification", message="not for acme"))
    recorder = TraceRecorder(journal.folders)
    made = recorder.start_trace("agent", input={}, metadata={"tenant_id": "acme"})
    name, value, _ = next(e for e in stream if e[0] != ":")
    assert (name, value["trace_id"]) == ("trace.started", made) or value["trace_id"] == made
