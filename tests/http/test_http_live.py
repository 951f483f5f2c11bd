"""Streams: what is recorded shows up, once, in order, and survives the file being rewritten."""

from __future__ import annotations

import os
import socket
import time
from itertools import islice
from pathlib import Path

from http_rig import Server
from store_rig import SESSION, Journal, event

from guardhook.journal import line
from guardhook.store import fold, gc
from guardhook.views.http.context import STREAMS
from guardhook.views.http.tail import Tail


def news(server: Server, path: str, **headers: str) -> object:
    return (e for e in server.events(path, **headers) if e[0] != ":")


def test_what_is_recorded_shows_up(serve: object, journal: Journal) -> None:
    server = serve()  # type: ignore[operator]
    stream = server.events("/v1/events")
    assert next(stream)[0] == ":"
    journal.add(event("notification", message="one \x1b[31m"), event("notification", message="two", session="another"))
    found = list(islice((e for e in stream if e[0] != ":"), 2))
    assert {name for name, _, _ in found} == {"hook.received"}
    by_trace = {value["trace_id"]: value for _, value, _ in found}
    key = line.key("claude-code", SESSION)
    value = by_trace[fold.trace_id(key)]
    assert set(value) == {"trace_id", "ts", "seq", "type", "data"}
    assert value["data"]["payload"]["message"] == "one \x1b[31m"
    assert f"{key}:{value['seq']}" in {ident for _, _, ident in found}
    assert {v["data"]["payload"]["message"] for v in by_trace.values()} >= {"two"}


def test_steps_of_a_trace_as_they_happen(serve: object, journal: Journal) -> None:
    server = serve()  # type: ignore[operator]
    session = "live"
    journal.clock = time.time_ns()
    journal.add(
        event("user_prompt", prompt="go", session=session),
        event("pre_tool", tool="Bash", given={"command": "sleep"}, call="x1", session=session),
        step=0,
    )
    trace = fold.trace_id(line.key("claude-code", session))
    stream = (e for e in server.events(f"/v1/traces/{trace}/events") if e[0] != ":")
    name, step, ident = next(stream)
    assert (name, step["name"], step["ended_at"], ident) == ("step", "Bash", None, "1")
    name, whole, _ = next(stream)
    assert (name, whole["id"], whole["status"]) == ("trace", trace, "running")
    journal.add(
        event("post_tool", tool="Bash", given={"command": "sleep"}, call="x1", tool_response="out", session=session),
        step=0,
    )
    name, step, ident = next(stream)
    assert (name, step["step_number"], step["output"], ident) == ("step_ended", 1, "out", "1")
    journal.add(event("stop", last_assistant_message="done", session=session), step=0)
    rest = list(stream)  # it ends with the turn
    assert [n for n, _, _ in rest] == ["step", "trace"] and rest[-1][1]["status"] == "completed"
    again = list(server.events(f"/v1/traces/{trace}/events", Last_Event_ID="1"))
    assert [(n, v.get("step_number")) for n, v, _ in again if n != ":"] == [("step", 2), ("trace", None)]


def test_streams_are_few(serve: object) -> None:
    server = serve()  # type: ignore[operator]
    streams = [server.events("/v1/events") for _ in range(STREAMS)]
    assert all(next(stream)[0] == ":" for stream in streams)
    got = server.ask("/v1/events")
    assert (got.status, got.code) == (503, "too_many_streams")
    assert server.ask("/v1/health").status == 200
    for stream in streams:
        stream.close()
    deadline = time.monotonic() + 20  # that they were left is noticed at their next look
    while server.ask("/v1/events", "HEAD").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_who_never_reads_loses_the_stream(serve: object, journal: Journal) -> None:
    journal.add(event("user_prompt", prompt="x", session="big"))
    for number in range(14):
        journal.add(event("pre_tool", tool="Bash", given={"command": "y" * 700_000}, call=f"b{number}", session="big"))
    server = serve(changed="from guardhook.views.http import app; app.SEND_SECONDS = 0.2")  # type: ignore[operator]
    (trace,) = (t["id"] for t in server.ask("/v1/traces?session=big").json["items"])
    taken = [server.events("/v1/events") for _ in range(STREAMS - 1)]
    assert all(next(stream)[0] == ":" for stream in taken)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((server.host, server.port))
        deaf.sendall(f"GET /v1/traces/{trace}/events?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert deaf.recv(64).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 20
        while server.ask("/v1/events", "HEAD").status != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def tail_of(journal: Journal) -> Tail:
    return Tail(journal.folders.journal)


def seen(tail: Tail) -> list[int]:
    tail._looked = 0.0  # all files, not only those of lately
    return [found.seq for _, found in tail.look()]


def test_the_tail_gives_each_line_once(journal: Journal) -> None:
    tail = tail_of(journal)
    assert seen(tail) == []
    journal.add(event("notification", message="a"), event("notification", message="b"))
    assert seen(tail) == [7, 8]
    assert seen(tail) == []
    path = journal.path()
    with path.open("ab") as file:
        file.write(journal.bytes_of(event("notification", message="half"))[:-20])
    assert seen(tail) == []


def test_the_tail_survives_rewritten_and_removed_files(journal: Journal) -> None:
    tail = tail_of(journal)
    journal.add(event("notification", message="a"))
    assert seen(tail) == [7]
    path = journal.path()
    data = path.read_bytes()
    path.with_suffix(".new").write_bytes(data.replace(b"done", b"gone"))
    os.replace(path.with_suffix(".new"), path)
    journal.add(event("notification", message="b"))
    assert seen(tail) == [8]
    for file in path.parent.iterdir():
        os.utime(file, (0, 0))
    gc.collect(journal.folders, most_bytes=0)
    assert seen(tail) == []
    journal.add(event("notification", message="c", session="new"))
    assert seen(tail) == [1]


def test_a_tail_where_nothing_was_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "none")
    tail = tail_of(journal)
    assert seen(tail) == []
    journal.add(event("notification", message="first"))
    assert seen(tail) == [1]
