"""Importing what is damaged or made to do harm: named and counted, never a traceback, nothing else lost."""

from __future__ import annotations

import copy
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from import_rig import FIXTURES, Rig

from guardhook.core.folders import explicit
from guardhook.intake import coverage, detect

SAMPLES = {
    "claude-transcript": FIXTURES / "claude" / "session.jsonl",
    "codex-rollout": FIXTURES / "codex" / "codemode.jsonl",
    "gemini-chat": FIXTURES / "gemini" / "chat.jsonl",
    "qwen-chat": FIXTURES / "qwen" / "chats" / "5e550001-0000-4000-8000-0000000000ff.jsonl",
}
FORMATS = sorted(SAMPLES)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def imported(rig: Rig, format: str, data: bytes, name: str = "x.jsonl") -> dict[str, Any]:
    """Imports bytes as a file; records must add up, and the store must be able to fold all lines."""
    path = rig.files / name
    path.write_bytes(data)
    ran = rig.import_(path, "--format", format, "--replace")
    found = ran.file
    records = found["records"]
    if records is not None:
        assert records["read"] == records["imported"] + records["skipped"] + records["malformed"], records
    if rig.journal():
        rig.traces()
    told: list[tuple[str, str]] = []
    coverage.measure(explicit(str(rig.data)), paths=[str(path)], problem=lambda *problem: told.append(problem))
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_damage_of_single_lines(rig: Rig, format: str) -> None:
    whole = SAMPLES[format].read_bytes()
    good = imported(rig, format, whole)
    bad = [
        b"null",
        b"[1]",
        b"42",
        b'"text"',
        b"{",
        b"\xff\xfe\x00",
        b'{"type": "user", ',
        b"[" * 100_000,
        b"{}" * 3,
    ]
    lines = whole.splitlines(keepends=True)
    found = imported(rig, format, b"\xef\xbb\xbf" + b"\r\n\0\0\n".join([lines[0].strip(), *bad]) + b"\n" + b"".join(lines[1:]), "y.jsonl")  # fmt: skip
    assert found["records"]["malformed"] == len(bad)
    assert [p["line"] for p in found["problems"]] == [3 + 2 * n for n in range(len(bad))]
    assert all(p["file"] == "y.jsonl" and p["reason"] for p in found["problems"])
    assert found["traces"][0]["steps"] == good["traces"][0]["steps"]
    assert found["traces"][0]["total_tokens"] == good["traces"][0]["total_tokens"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_last_line_that_was_torn(rig: Rig, format: str) -> None:
    whole = SAMPLES[format].read_bytes().rstrip(b"\n")
    cut = whole[: whole.rindex(b"\n") + 40]
    assert imported(rig, format, cut)["records"]["malformed"] == 1


@pytest.mark.parametrize("format", FORMATS)
def test_lines_that_are_too_long(rig: Rig, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardhook.intake.records.LINE_BYTES", 1 << 20)
    whole = SAMPLES[format].read_bytes()
    found = imported(rig, format, whole + b'{"text": "' + b"x" * (3 << 20) + b'"}\n' + whole.splitlines(keepends=True)[-1])  # fmt: skip
    assert found["records"]["malformed"] == 1 and "longer than" in found["problems"][0]["reason"]
    assert found["problems"][0]["line"] == len(whole.splitlines()) + 1


def test_half_characters_and_bytes_that_are_no_text(rig: Rig) -> None:
    record = b'{"type":"assistant","uuid":"%s","parentUuid":null,"sessionId":"s","message":{"id":"%s","content":[{"type":"text","text":"%s"}]}}\n'
    data = (
        record % (b"1", b"m1", rb"cut \ud83d off")
        + record % (b"2", b"m2", b"raw \xff byte")
        + record % (b"3", b"m3", rb"nul \u0000 here")
    )
    found = imported(rig, "claude-transcript", data)
    assert found["records"]["malformed"] == 0
    assert [s.output for s in rig.steps()] == [{"text": "cut \ufffd off"}, {"text": "raw \ufffd byte"}, {"text": "nul \0 here"}]  # fmt: skip


def test_half_characters_in_what_is_looked_at_later(rig: Rig) -> None:
    head = b'{"sessionId":"s","projectHash":"ab","startTime":"2026-11-30T10:00:00.000Z"}\n'
    patch = rb'{"$set":{"messages":[{"id":"a","type":"user","content":"go \ud83d"},{"id":"b","type":"gemini","content":"done"}]}}'
    found = imported(rig, "gemini-chat", head + patch)
    assert found["records"]["mended"] == 0 and rig.trace().input == {"prompt": "go \ufffd"}
    assert [s.output for s in rig.steps()] == [{"text": "done"}]


def test_a_very_long_text_loses_its_end_and_says_so(rig: Rig) -> None:
    long = "ab " * 1_500_000 + "ghp_" + "a1B2" * 9
    found = imported(rig, "claude-transcript", json.dumps({
        "type": "assistant", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"id": "m", "content": [{"type": "text", "text": long}]},
    }).encode())  # fmt: skip
    assert found["status"] == "imported"
    (step,) = rig.steps()
    (file,) = rig.journal()
    assert (
        len(str(step.output)) < 1 << 20
        and '"cut":["/output/text"]' in file.read_text()
        and "a1B2" not in file.read_text()
    )


def test_very_many_small_values(rig: Rig) -> None:
    given_ = {str(n): n for n in range(200_000)}
    found = imported(rig, "claude-transcript", json.dumps({
        "type": "assistant", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"id": "m", "content": [{"type": "tool_use", "id": "t", "name": "N", "input": given_}]},
    }).encode())  # fmt: skip
    assert found["status"] == "imported"
    assert rig.steps()[0].name == "N"


@pytest.mark.parametrize("depth", [50, 2_000, 20_000])
def test_deep_values(rig: Rig, depth: int) -> None:
    data = b'{"type":"assistant","uuid":"1","parentUuid":null,"sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"N","input":%s}]}}\n'
    told = b'{"type":"user","uuid":"2","parentUuid":null,"sessionId":"s","message":{"content":"go"}}\n'
    found = imported(rig, "claude-transcript", told + data % (b'{"a":' * depth + b"1" + b"}" * depth))
    assert found["status"] in ("imported", "failed"), found
    assert found["status"] == "imported" or found["error"]


@pytest.mark.parametrize("format", ["claude-transcript", "gemini-chat", "qwen-chat"])
def test_folders_of_sub_agents_that_are_links_are_passed_over(rig: Rig, format: str) -> None:
    at, folder = {"claude-transcript": ("p/x.jsonl", "p/x/subagents"), "qwen-chat": ("p/chats/x.jsonl", "p/subagents/x")}.get(format, ("p/x.jsonl", "p/g-1"))  # fmt: skip
    elsewhere = rig.write("elsewhere/y.jsonl", "{}").parent
    path = rig.write(at, {"sessionId": "g-1", "projectHash": "ab", "startTime": "2026-11-30T10:00:00Z"})
    real = rig.files / folder
    real.parent.mkdir(parents=True, exist_ok=True)
    known = detect.importer(format).files
    real.symlink_to(elsewhere)
    assert known(str(path)) == []
    real.unlink()
    elsewhere.rename(real)
    assert known(str(path)) == [str(real / "y.jsonl")]


def test_numbers_beyond_all_bounds(rig: Rig) -> None:
    usage = {
        "input_tokens": 1 << 70,
        "output_tokens": -(1 << 70),
        "cache_read_input_tokens": "1e400",
        "cache_creation_input_tokens": "x",
    }
    message = {"id": "m", "content": [{"type": "text", "text": "hi"}], "usage": usage}
    record = {
        "type": "assistant",
        "uuid": "1",
        "parentUuid": None,
        "sessionId": "s",
        "timestamp": "9999-99-99T99:99:99Z",
        "message": message,
    }
    found = imported(rig, "claude-transcript", json.dumps(record).encode())
    assert found["status"] == "imported"
    (step,) = rig.steps()
    assert step.tokens_used is not None and 0 <= step.tokens_used <= 1 << 62


def test_a_number_larger_than_any_costs_no_record(rig: Rig) -> None:
    given_ = '{"type":"assistant","uuid":"1","parentUuid":null,"sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"N","input":{"n":1e999}}]}}'  # fmt: skip
    found = imported(rig, "claude-transcript", given_.encode())
    assert found["records"]["malformed"] == 0 and rig.steps()[0].input == {"n": "1e999"}


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20),
    st.just([]), st.just({}), st.just([None]), st.just({"a": {"b": [1]}}), st.just("2026-99-99T00:00:00Z"), st.just("\x1b[2J\0\ud83d"),
)  # fmt: skip


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Paths of everything in a JSON value."""
    out = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        out += places(inner, (*path, key))
    return out


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_wrong_types_in_every_field(format: str, data: st.DataObject) -> None:
    records: list[Any] = [json.loads(raw) for raw in SAMPLES[format].read_text().splitlines()]
    for _ in range(data.draw(st.integers(1, 4))):
        number = data.draw(st.integers(0, len(records) - 1))
        record = copy.deepcopy(records[number])
        path = data.draw(st.sampled_from(places(record)))
        junk = data.draw(JUNK)
        if not path:
            record = junk
        else:
            holder = record
            for key in path[:-1]:
                holder = holder[key]
            if data.draw(st.booleans()):
                holder[path[-1]] = junk
            else:
                del holder[path[-1]]
        records[number] = record
    if data.draw(st.booleans()):
        order = data.draw(st.permutations(range(len(records))))
        records = [records[n] for n in order]
    with tempfile.TemporaryDirectory() as folder:
        found = imported(Rig(Path(folder)), format, "\n".join(map(json.dumps, records)).encode())
        assert found["status"] in ("imported", "empty"), found
        assert found["records"]["read"] == len(records)


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_bytes_changed_anywhere(format: str, data: st.DataObject) -> None:
    whole = bytearray(SAMPLES[format].read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with tempfile.TemporaryDirectory() as folder:
        found = imported(Rig(Path(folder)), format, bytes(whole))
        assert found["status"] in ("imported", "empty"), found


@pytest.mark.parametrize("format", FORMATS)
def test_a_field_that_is_wrong_costs_only_itself(rig: Rig, format: str) -> None:
    """The record is used without it, and it is named."""
    records = [json.loads(raw) for raw in SAMPLES[format].read_text().splitlines()]
    good = imported(rig, format, SAMPLES[format].read_bytes())["traces"][0]["steps"]
    for number, record in enumerate(records):
        record["timestamp"] = number
    found = imported(rig, format, "\n".join(map(json.dumps, records)).encode(), "y.jsonl")
    assert found["traces"][0]["steps"] == good
    assert found["records"]["mended"] > 0 and "timestamp" in found["problems"][0]["reason"]


@pytest.mark.parametrize("format", FORMATS)
def test_sound_records_need_no_mending(rig: Rig, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patient way of reading costs many times the quick one; no field of a captured record may send it there."""

    def never(*_: object) -> None:
        raise AssertionError("a sound record was read the patient way")

    monkeypatch.setattr("guardhook.intake.records.mend", never)
    lines = [raw for raw in SAMPLES[format].read_bytes().splitlines(keepends=True) if b"omitted" not in raw]
    assert imported(rig, format, b"".join(lines))["status"] == "imported"


@pytest.mark.parametrize("name", ["a\0b", "\ud83d", "../x", "..", ""])
@pytest.mark.parametrize("format", FORMATS)
def test_a_session_id_that_names_no_folder(rig: Rig, format: str, name: str) -> None:
    """Sub-agents' chats lie in a folder named like the session, and the name is whatever the file says."""
    records = [json.loads(raw) for raw in SAMPLES[format].read_text().splitlines()]
    for record in records:
        for holder in (record, record.get("payload")):
            if isinstance(holder, dict):
                holder.update({key: name for key in ("sessionId", "session_id", "id") if key in holder})
    assert imported(rig, format, "\n".join(map(json.dumps, records)).encode())["status"] in ("imported", "empty")
