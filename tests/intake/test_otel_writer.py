"""The thread between requests and the journal."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path

import pytest
from otel_rig import Json, lines, reading, span, traces

from guardhook.core.folders import explicit
from guardhook.intake.otel import writer as module
from guardhook.intake.otel.writer import JSON, Reply, Writer
from guardhook.store.errors import Unusable


def submit(writer: Writer, request: Json) -> Future[Reply]:
    return writer.submit("traces", JSON, json.dumps(request).encode())


def test_what_waits_is_written_before_it_ends(tmp_path: Path) -> None:
    writer = Writer(explicit(str(tmp_path)))
    futures = [submit(writer, traces(span("x", id=f"{n:016x}"))) for n in range(1, 50)]
    writer.close()
    assert all(future.result(0).state == "ok" for future in futures)
    assert len(lines(tmp_path)) == 49
    assert submit(writer, traces(span("late"))).result(0).state == "unavailable"


def test_too_many_records_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORDS_MOST", 3)
    writer = Writer(explicit(str(tmp_path)))
    assert submit(writer, traces(*[span("x")] * 4)).result(30).state == "large"
    assert submit(writer, traces(*[span("x")] * 3)).result(30).state == "ok"
    writer.close()
    assert writer.account.refused == 1 and len(lines(tmp_path)) == 3


def test_a_mistake_of_ours_is_said_and_the_others_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = module.spans.mapped

    def broken(found: list[module.Span]) -> object:
        if found[0].name == "bad":
            raise KeyError("oh")
        return plain(found)

    monkeypatch.setattr(module.spans, "mapped", broken)
    told: list[str] = []
    writer = Writer(explicit(str(tmp_path)), on_error=told.append)
    futures = [submit(writer, traces(span(name, id="a" * 16))) for name in ("good", "bad", "good")]
    assert [future.result(30).state for future in futures] == ["ok", "failed", "ok"]
    writer.close()
    assert len(told) == 1 and "KeyError" in told[0]


def test_a_request_that_nobody_waits_for_is_not_written(tmp_path: Path) -> None:
    writer = Writer(explicit(str(tmp_path)))
    with writer._news:  # it can't begin meanwhile
        future = Future[Reply]()
        writer._waiting.append(module._Job("traces", JSON, json.dumps(traces(span("x"))).encode(), future))
        assert future.cancel()
    assert submit(writer, traces(span("y"))).result(30).state == "ok"
    writer.close()
    assert [one.names for one in reading(tmp_path)] == [["y"]]


def test_only_so_many_parts_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KNOWN_MOST", 2)
    writer = Writer(explicit(str(tmp_path)))
    for number in (1, 2, 3, 3, 2, 1):
        assert submit(writer, traces(span("x", id=f"{number:016x}"))).result(30).state == "ok"
    writer.close()
    assert (writer.account.parts, writer.account.again) == (4, 2)
    assert [one.trace.step_count for one in reading(tmp_path)] == [3]


def test_long_texts_are_cut_and_it_is_said(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    own: Json = {"gen_ai.prompt": "x" * 300_000 + secret + "y" * 3_000_000, "gen_ai.completion": "z" * 2_000_000}
    writer = Writer(explicit(str(tmp_path)))
    assert submit(writer, traces(span("chat", own, id="a" * 16))).result(30).state == "ok"
    writer.close()
    (line,) = lines(tmp_path)
    assert len(line) < 1_100_000 and secret not in line and secret[:20] not in line
    ((step,),) = [one.steps for one in reading(tmp_path)]
    assert step["metadata"]["cut"] == ["/input/messages", "/output/messages"]  # type: ignore[index]


def test_what_was_written_of_a_request_that_failed_is_recognised_when_it_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = module.Appender.put
    broken = [True]

    def put(self: module.Appender, trace: str, *rest: object, **more: object) -> int:
        if broken[0] and written:
            raise Unusable("full", "journal")
        written.append(trace)
        return plain(self, trace, *rest, **more)  # type: ignore[arg-type]

    written: list[str] = []
    monkeypatch.setattr(module.Appender, "put", put)
    told: list[str] = []
    writer = Writer(explicit(str(tmp_path)), on_error=told.append)
    request = traces(span("one", id="a" * 16, trace="1" * 32), span("two", id="a" * 16, trace="2" * 32))
    assert submit(writer, request).result(30).state == "unavailable"
    assert (len(lines(tmp_path)), told) == (1, ["full"])
    broken[0] = False
    assert submit(writer, request).result(30).state == "ok"
    writer.close()
    assert len(lines(tmp_path)) == 2
    assert sorted(str(name) for one in reading(tmp_path) for name in one.names) == ["one", "two"]
