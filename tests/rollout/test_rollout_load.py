"""The loader: every rule, by the line that breaks it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from rollout_rig import Item, item, numbered, written

from guardhook.rollout import limits
from guardhook.rollout.load import Gap, Rollout, RolloutError, load

START = '{"ts":"2026-01-01T00:00:00Z","seq":0,"type":"run.started"}'


def raw(path: Path, *lines: str | bytes, end: str = "\n") -> Rollout:
    path.write_bytes((end.encode()).join(x if isinstance(x, bytes) else x.encode() for x in lines))
    return load(str(path))


def line(seq: int, kind: str = "x", data: str = '{"step":1}') -> str:
    return f'{{"ts":"2026-01-01T00:00:00Z","seq":{seq},"type":"{kind}","data":{data}}}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


def refused(file: Path, *lines: str | bytes, end: str = "\n") -> str:
    with pytest.raises(RolloutError) as caught:
        raw(file, *lines, end=end)
    return caught.value.message.replace(json.dumps(str(file)) + ": ", "")


def test_files_without_events(file: Path) -> None:
    assert raw(file, "") == Rollout(str(file), [], [])
    assert raw(file, "", "  ", "\t", "").events == []


def test_line_ends(file: Path) -> None:
    assert [e.seq for e in raw(file, START, line(1)).events] == [0, 1]
    assert [e.type for e in raw(file, START, line(1), "", end="\r\n").events] == ["run.started", "x"]
    found = raw(file, START, line(1, data='{"step":1,"a":"x\u2028y\u2029z\x85"}'))
    assert found.events[1].payload == {"step": 1, "a": "x\u2028y\u2029z\x85"}


def test_empty_lines_are_counted_and_cost_next_to_nothing(file: Path) -> None:
    """A file of nothing but line feeds took two seconds for each 8 MiB."""
    file.write_bytes(b"\n" * (3 << 20) + START.encode() + b"\n\n" + b"x\n")
    with pytest.raises(RolloutError) as error:
        load(str(file))
    assert error.value.line == (3 << 20) + 3


def test_lines_that_are_no_event(file: Path) -> None:
    assert refused(file, b"\xef\xbb\xbf" + START.encode()).startswith("line 1: a byte-order mark")
    assert "text after the JSON value" in refused(file, START + START)
    assert refused(file, START, "", line(1)[:-2]).startswith("line 3: not a JSON object")
    assert refused(file, "null") == "line 1: not a JSON object"
    assert refused(file, "[1]") == "line 1: not a JSON object"
    assert "type must be" in refused(file, START.replace('"type":"run.started"', '"Type":"run.started"'))
    assert "type must be" in refused(file, START.replace("run.started", ""))
    assert "type must be" in refused(file, START.replace('"run.started"', "7"))
    for bad in ('"seq":1.0', '"seq":-1', '"seq":"1"', '"seq":true', '"seq":null', '"s":1'):
        assert "seq must be" in refused(file, START.replace('"seq":0', bad))
    for bad in ("2026-13-01T00:00:00Z", "2026-01-01", "yesterday", "2026-01-01T00:00:00"):
        assert "ts must be" in refused(file, START.replace("2026-01-01T00:00:00Z", bad))
    for bad in ("[]", '"a"', "1", "true"):
        assert "data must be an object" in refused(file, START[:-1] + f',"data":{bad}}}')
    assert raw(file, START[:-1] + ',"data":null,"more":1}').events[0].payload is None


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ('{"a":1,"a":2}', "twice"), ('{"a":{"b":1,"b":1}}', "twice"), ('{"a":[{"c":1},{"d":1,"d":2}]}', "twice"), ('{"a":NaN}', "NaN"),
        ('{"a":-Infinity}', "Infinity"), ('{"a":1e400}', "too large"), ('{"a":"\\ud800"}', "surrogate"), ('{"a":01}', "JSON"), ("{'a':1}", "JSON"),
    ],
)  # fmt: skip
def test_json_that_is_not_trusted(file: Path, data: str, word: str) -> None:
    assert word in refused(file, START, line(1, data=data))


def test_a_member_named_twice_beside_data(file: Path) -> None:
    assert "twice" in refused(file, START[:-1] + ',"seq":1}')


def test_colons_in_strings_are_no_members(file: Path) -> None:
    assert raw(file, START, line(1, data='{"step":1,"a\\\\":"b:\\"c\\":{","d":":"}')).events[1].payload == {
        "step": 1,
        "a\\": 'b:"c":{',
        "d": ":",
    }


def test_how_a_run_starts(file: Path) -> None:
    assert raw(file, START).events[0].payload is None and raw(file, START).events[0].step == 0
    assert raw(file, START[:-1] + ',"data":{}}').events[0].step == 0
    assert refused(file, START, line(1, "run.started", "{}")) == "line 2: duplicate run.started"
    assert "must have step 0" in refused(file, line(0, "run.started"))
    assert refused(file, line(0)) == "line 1: the first event must be run.started"
    file.write_text(line(0) + "\n" + line(1, "run.started", '{"step":0}'))
    with pytest.raises(RolloutError, match="must be the first event"):
        load(str(file), allow_headless=True)
    file.write_text(line(3) + "\n" + line(4))
    assert [e.seq for e in load(str(file), allow_headless=True).events] == [3, 4]


@pytest.mark.parametrize(
    "kind",
    ["llm.turn.completed", "tool.call.started", "tool.call.completed", "steering.received", "conversation.continued", "run.completed", "run.failed"],
)  # fmt: skip
def test_events_that_need_a_step(file: Path, kind: str) -> None:
    assert refused(file, START, line(1, kind, "{}")) == f"line 2: {kind} requires data.step"
    assert refused(file, START, line(1, kind, "0").replace(',"data":0', "")) == f"line 2: {kind} requires data.step"
    assert refused(file, START, line(1, kind, '{"step":0}')) == f"line 2: {kind} must have step >= 1"
    assert raw(file, START, line(1, kind)).events[1].step == 1


@pytest.mark.parametrize(
    ("text", "step"), [("1", 1), ("1.0", 1), ("1e0", 1), ("-0.0", 0), ("0", 0), ("1000000", 1_000_000)]
)
def test_steps_as_json_writes_them(file: Path, text: str, step: int) -> None:
    assert raw(file, START, line(1, data=f'{{"step":{text}}}')).events[1].step == step


@pytest.mark.parametrize("text", ["1.5", "-0.5", "-1", "1000001", '"1"', "true", "null", "{}", "1e300"])
def test_steps_that_are_none(file: Path, text: str) -> None:
    assert refused(file, START, line(1, data=f'{{"step":{text}}}')).startswith(
        "line 2: data.step must be a whole number"
    )


def test_order_of_steps_and_the_end(file: Path) -> None:
    assert "non-decreasing: 1 after 2" in refused(file, START, line(1, data='{"step":2}'), line(2))
    assert "non-decreasing: 0 after 1" in refused(file, START, line(1), line(2, data="{}"))
    for end in ("run.completed", "run.failed", "run.cancelled"):
        assert refused(file, START, line(1, end), "", line(2)).startswith('line 4: "x" comes after the run\'s end')
    assert raw(file, START, line(1, "tool.call.completed"), line(2, "run.completed"), "", " ").outcome == "completed"
    assert raw(file, START, line(1)).outcome == "unknown"
    assert raw(file, START, line(1, "run.cancelled")).outcome == "cancelled"


def test_sequence_numbers_and_gaps(file: Path) -> None:
    assert "strictly increasing: 0 after 0" in refused(file, START, line(0))
    assert "strictly increasing: 1 after 2" in refused(file, START, line(2), line(1))
    marker = line(1, "recorder.drop_detected", '{"step":1,"dropped_seq":1,"count":3}')
    found = raw(file, START, marker, line(4), line(7), line(8))
    assert found.gaps == [Gap(1, 3, True), Gap(5, 6, False)]
    assert [e.seq for e in found.events] == [0, 1, 4, 7, 8]


def test_nesting(file: Path) -> None:
    for depth, good in ((98, True), (99, False)):
        data = f'{{"step":1,"a":{"[" * depth}{"]" * depth}}}'
        if good:
            assert raw(file, START, line(1, data=data)).events
        else:
            assert refused(file, START, line(1, data=data)) == "line 2: JSON nested deeper than 100 levels"
    brackets = json.dumps("[" * 500 + '"\\' + "{" * 500)
    assert raw(file, START, line(1, data=f'{{"step":1,"a":{brackets}}}')).events[1].step == 1
    assert "nested deeper" in refused(file, START, line(1, data="]" * 200 + "[" * 101))


def test_elements(file: Path) -> None:
    many = ",".join("0" * 100_000)
    assert (
        refused(file, START, line(1, data=f'{{"step":1,"a":[{many}]}}'))
        == "line 2: more than 100000 JSON elements in one line"
    )
    assert raw(file, START, line(1, data=f'{{"step":1,"a":"{"," * 200_000}"}}')).events[1].step == 1


def test_elements_of_the_whole_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.FILE_ELEMENTS == 10_000_000
    monkeypatch.setattr(limits, "FILE_ELEMENTS", 4 + 20 * 100)
    body = f'{{"step":1,"a":[{",".join("0" * 95)}],"text":",,,,"}}'  # 99 commas and the text's
    lines = [START, *(line(n, data=body) for n in range(1, 22))]
    assert len(raw(file, *lines[:21]).events) == 21
    assert refused(file, *lines).startswith("line 22: the total element budget")


def test_long_lines(file: Path) -> None:
    head, tail = line(1, data='{"step":1,"a":"').rstrip("}"), '"}}'
    room = (16 << 20) - len(head) - len(tail)
    assert len(raw(file, START, head + "x" * room + tail).events) == 2
    assert refused(file, START, head + "x" * (room + 1) + tail) == "line 2: longer than 16777216 bytes"


def test_a_line_that_never_ends_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as made:
        made.write(START.encode() + b"\n")
        made.truncate(1 << 40)
    with pytest.raises(RolloutError, match="line 2: longer than"):
        load(str(path))


def test_too_many_bytes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join([START, "", line(1), ""])
    monkeypatch.setattr(limits, "FILE_BYTES", len(text))
    assert len(raw(file, text).events) == 2
    assert "the file is larger than" in refused(file, text + "\n")


def test_too_many_events(file: Path) -> None:
    file.write_text("\n".join([START, *(line(n) for n in range(1, 100_001))]))
    with pytest.raises(RolloutError, match="line 100001: more than 100000 events"):
        load(str(file))


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.jsonl"
    os.mkfifo(fifo)
    for path in (str(fifo), str(tmp_path), "/dev/zero"):
        found: list[str] = []

        def attempt(path: str = path, found: list[str] = found) -> None:
            try:
                load(path)
            except RolloutError as error:
                found.append(error.reason)

        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()
        thread.join(20)
        assert found == ["not a regular file"]
    with pytest.raises(RolloutError) as caught:
        load(str(tmp_path / "not\x1b[31mthere.jsonl"))
    assert caught.value.missing and "\x1b" not in caught.value.message


def test_only_files_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    good = written(folder / "2026-01-01" / "r.jsonl", item(0, "run.started"))
    outside = written(tmp_path / "a" / "bc" / "r.jsonl", item(0, "run.started"))
    (folder / "link.jsonl").symlink_to(outside)
    (folder / "inner.jsonl").symlink_to(good)
    assert len(load("2026-01-01/r.jsonl", within=str(folder)).events) == 1
    assert len(load("inner.jsonl", within=str(folder)).events) == 1
    for path in (
        str(outside),
        "../bc/r.jsonl",
        "link.jsonl",
        "/etc/passwd",
        ".",
        "2026-01-01/../../bc/r.jsonl",
        "nul\0l",
    ):
        with pytest.raises(RolloutError) as caught:
            load(path, within=str(folder))
        assert caught.value.missing or "null" in caught.value.reason
    (tmp_path / "alias").symlink_to(folder)
    assert len(load("2026-01-01/r.jsonl", within=str(tmp_path / "alias")).events) == 1


def test_the_example_of_a_whole_run(file: Path) -> None:
    events: list[Item] = numbered(
        ("run.started", {"step": 0, "prompt": "p"}), ("llm.turn.completed", {"step": 1}), ("run.completed", {"step": 1})
    )
    found = load(str(written(file, *events)))
    assert (found.steps, found.outcome, found.start) == (1, "completed", {"step": 0, "prompt": "p"})
    assert [e.id for e in found.events] == ["0", "1", "2"]
