from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.core.effect import Effect
from guardhook.core.event import Event
from guardhook.core.verdict import Answer, Match, Verdict
from guardhook.journal import line, recover

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=10), JSON, max_size=5), st.text(max_size=12), st.integers(1, 2**60))
def test_every_line_is_one_line_of_printable_ascii_and_reads_back(
    data: dict[str, object], type_: str, seq: int
) -> None:
    data = {k: v for k, v in data.items() if k not in line.WRITER_KEYS}
    raw = line.build(0, seq, type_, {"v": 1, "run": "run_x", "segment": 1, "root": None}, line.body(data))
    assert raw.endswith(b"\n")
    assert all(0x20 <= byte <= 0x7E for byte in raw[:-1])
    found = line.parse(raw)
    assert (found.seq, found.type) == (seq, type_)
    assert found.data == {"v": 1, "run": "run_x", "segment": 1, "root": None, **data}


@given(st.integers(-(10**9), 10**11), st.integers(0, 999_999))
def test_time_stamps_agree_with_datetime(seconds: int, micro: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=micro)
    text = line.iso((seconds * 1_000_000 + micro) * 1000)
    assert text == expected.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{micro:06d}Z"
    assert line.day(seconds * 10**9) == text[:10]


def test_lone_surrogates_and_terminal_controls_stay_escapes() -> None:
    raw = line.build(0, 1, "note", {"v": 1, "root": None}, line.body({"x": "\ud83d \x1b[31m \u202e \x7f\n"}))
    assert b"\\ud83d" in raw and b"\\u001b" in raw and b"\\u202e" in raw and b"\\u007f" in raw
    assert line.parse(raw).data["x"] == "\ud83d \x1b[31m \u202e \x7f\n"


def test_what_only_the_writer_knows_can_not_come_from_a_payload() -> None:
    raw = line.build(
        0, 1, "note", {"v": 1, "run": "run_real", "root": "/r"}, line.body({"run": "run_forged", "spool": "x", "a": 1})
    )
    assert raw.count(b"run_") == 1
    assert line.parse(raw).data == {"v": 1, "run": "run_real", "root": "/r", "a": 1}


def test_an_empty_data_is_still_an_object() -> None:
    assert json.loads(line.build(0, 1, "note", {"v": 1}, line.body({})))["data"] == {"v": 1}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"ts":"x","seq":"1","type":"gap","data":{}}',
        b'{"ts":"x","seq":true,"type":"gap","data":{}}',
        b'{"ts":"x","seq":1,"type":"gap","data":[]}',
        b'{"ts":"x","seq":1,"type":"gap","data":{}',
        b'{"ts":"x","seq":1,"seq":2,"type":"gap","data":{}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_is_no_line_is_refused_with_one_error(raw: bytes) -> None:
    with pytest.raises(line.BadLine):
        line.parse(raw)


def test_unknown_types_versions_and_keys_can_be_read() -> None:
    found = line.parse(b'{"ts":"t","seq":3,"type":"new.kind","data":{"v":9},"more":1}')
    assert (found.seq, found.type, found.data) == (3, "new.kind", {"v": 9})


def test_a_payload_at_the_depth_limit_can_be_read_back() -> None:
    deep: object = "x"
    for _ in range(64):
        deep = [deep]
    raw = line.build(0, 1, line.RECEIVED, {"v": 1, "root": None}, line.body({"payload": deep}))
    assert line.parse(raw).data["payload"] == deep


def test_keys_name_the_dialect_and_nothing_else_from_outside() -> None:
    one = line.key("claude-code", "../../etc/passwd")
    assert one.startswith("claude-code-") and "/" not in one and "passwd" not in one
    assert line.key("claude-code", "a") != line.key("codex", "a").replace("codex", "claude-code")
    assert line.key("../x", "\ud800") == line.key("../x", "\ud800")
    assert set(line.key("../X\n", "a")) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    # The parts are hashed apart from each other.
    assert line.key("codex", "a")[-32:] != line.key("code", "xa")[-32:]


def test_run_ids_have_their_shape_and_differ_by_segment() -> None:
    ids = {line.run_id("codex", "s", n) for n in range(1, 50)}
    assert len(ids) == 49
    assert all(i.startswith("run_") and len(i) == 36 and int(i[4:], 16) >= 0 for i in ids)


@given(st.text(st.characters(), max_size=40), st.text(st.characters(), max_size=60))
def test_the_writers_part_is_found_without_parsing_the_rest(root: str, text: str) -> None:
    own = {"v": 1, "run": "run_x", "segment": 4, "opens": True, "spool": "00-1-a", "root": root}
    raw = line.build(0, 7, line.RECEIVED, own, line.body({"opens": False, "text": text, "root2": ',"root":'}))
    found = recover.prefix(raw)
    assert found is not None
    assert found[0] == 7
    assert found[1] == {"v": 1, "run": "run_x", "segment": 4, "opens": True, "spool": "00-1-a"}


def test_the_data_of_an_event_has_the_agreed_members() -> None:
    event = Event("codex", "PreToolUse", "pre_tool", {"tool_name": "Bash"})
    event.session, event.call, event.tool, event.kind = "s", "c", "Bash", "shell"
    verdict = Verdict("deny", "no", "p")
    verdict.matches = [Match("p", "deny", "user", "no", "", ""), Match("q", "warn", "user", "hm", "", "")]
    effect = Effect("delete", program="rm", argv=("-rf", "/"), path="/", flags=frozenset(("recursive",)))
    data = line.received(event, [effect], verdict, Answer(2, b"", b"\xff no"))
    for name in (
        "session",
        "dialect",
        "client",
        "native_event",
        "event",
        "call",
        "agent",
        "cwd",
        "payload",
        "effects",
        "verdict",
    ):
        assert name in data
    judged = data["verdict"]
    assert isinstance(judged, dict)
    assert {"action", "policy", "reason", "span", "set", "mode", "degraded", "us", "answer"} <= judged.keys()
    assert judged["answer"] == {"exit": 2, "stdout": "", "stderr": "\ufffd no"}
    assert judged["also"] == [["q", "warn"]]
    assert data["effects"] == [
        {"kind": "delete", "flags": ["recursive"], "program": "rm", "path": "/", "argv": ["-rf", "/"]}
    ]
    assert json.loads(line.build(0, 1, line.RECEIVED, {"v": 1}, line.body(data)))["data"]["verdict"]["policy"] == "p"
    assert line.received(event, [], None, None)["verdict"] is None
