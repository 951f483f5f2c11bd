"""The audit trail's file: its hashes, what its writer does to it and refuses to do."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.journal import audit, audit_json

DAY = "2026-01-01"
HARD = "echo <a&b> \u2028 \\u00e9 é \b \f \x7f"
VECTORS: list[tuple[audit.Entry, str]] = [
    (("2026-01-01T00:00:00Z", "run_1", "run.started", {"prompt": "hello"}), "fbb2197b893e1383813bc87ea48919c5a84ea376f1dfa8d5139d1f2543053f89"),
    (
        ("2026-01-01T00:00:01.5Z", "run_1", "audit.action",
         {"tool": "bash", "call_id": "c1", "step": 1, "arguments": f'{{"command":"{HARD}"}}'}),
        "a2c5b8be96087ffd92bf47b15f7dbeb63849c55cc12cf349c753079a8a8d61ad",
    ),
    (("2026-01-01T00:00:02.00012Z", "run_1", "run.completed", None), "8d4c977a3b195a0530d4e0c27923f9abd55dd7352e400df8213b35772f06d559"),
    (
        ("2026-01-01T00:00:00Z", "run_1", "x",
         {"f": 1e16, "g": 0.1, "h": 1e21, "i": 1e-7, "k": 100.0, "b": True, "n": None, "z": {"b": 1, "a": [1, "x"]}}),
        "b4d026076cdab1a95061ca80c595fa986ea9804a49620edf5f3458b1a97cf076",
    ),
]  # fmt: skip


def entry(number: int = 0, payload: dict[str, object] | None = None) -> audit.Entry:
    return (
        f"2026-01-01T00:00:{number % 60:02d}Z",
        "run_1",
        "audit.action",
        {"n": number} if payload is None else payload,
    )


def file_of(folder: Path, day: str = DAY) -> Path:
    return folder / day / audit.FILE


def hashes(folder: Path) -> list[tuple[str, str]]:
    """(prev_hash, entry_hash) of each entry, recomputed by other means than the writer's."""
    found = []
    for line in file_of(folder).read_text("ascii").splitlines():
        value = json.loads(line)
        found.append((value["prev_hash"], value["entry_hash"]))
    return found


def whole(folder: Path) -> int:
    """Asserts that the chain holds and gives its length."""
    before = audit.GENESIS
    found = hashes(folder)
    for line, (prev, own) in zip(file_of(folder).read_bytes().splitlines(), found, strict=True):
        value = json.loads(line)
        assert prev == before
        assert own == audit.entry_hash(
            value["timestamp"], value["run_id"], value["event_type"], value.get("payload"), prev
        )
        before = own
    return len(found)


def test_the_vectors_of_the_format(tmp_path: Path) -> None:
    log = audit.Log(str(tmp_path), DAY)
    for given_, expected in VECTORS:
        assert log.append([given_]) == expected
    log.close()
    lines = [json.loads(line) for line in file_of(tmp_path).read_text().splitlines()]
    assert list(lines[0]) == ["timestamp", "run_id", "event_type", "payload", "prev_hash", "entry_hash"]
    assert lines[0]["prev_hash"] == "genesis" and "payload" not in lines[2]
    assert [line["entry_hash"] for line in lines] == [expected for _, expected in VECTORS]


def test_fields_are_no_concatenation() -> None:
    assert audit.entry_hash("a", "bc", "x", None, "g") != audit.entry_hash("ab", "c", "x", None, "g")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e16, "10000000000000000"), (123456789012345680000.0, "123456789012345680000"), (1e21, "1e+21"), (1.5e300, "1.5e+300"), (1e-6, "0.000001"), (1.25e-7, "1.25e-7"),
        (-0.5, "-0.5"), (100.0, "100"), (0.0, "0"), (5e-324, "5e-324"), (-123.456, "-123.456"), (1e20, "100000000000000000000"), (999999999999999900000.0, "999999999999999900000"),
    ],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    assert audit_json.canonical(value) == text
    assert float(text) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=200)
def test_a_number_keeps_its_value(value: float) -> None:
    assert float(audit_json.canonical(value)) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-(2.0**53), 2.0**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
@settings(max_examples=100)
def test_canonical_text_is_json_of_the_same_value_and_knows_no_order_of_keys(value: object) -> None:
    text = audit_json.canonical(value)
    assert json.loads(text) == value
    assert not {"<", ">", "&", "\u2028", "\u2029"} & set(text)
    assert audit_json.canonical(json.loads(json.dumps(value, sort_keys=True))) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {"x": b""}])
def test_what_is_no_json_is_refused_and_the_file_stays_as_it_was(tmp_path: Path, value: object) -> None:
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry(1)])
    before = file_of(tmp_path).read_bytes()
    with pytest.raises(OSError, match="not JSON"):
        log.append([entry(2, {"x": value})])
    assert file_of(tmp_path).read_bytes() == before
    log.append([entry(3)])
    assert whole(tmp_path) == 2


def test_half_a_surrogate_pair_has_one_hash_before_and_after_the_file(tmp_path: Path) -> None:
    log = audit.Log(str(tmp_path), DAY)
    digest = log.append([entry(1, {"t": "a\ud800b"})])
    value = json.loads(file_of(tmp_path).read_text())
    assert (
        audit.entry_hash(value["timestamp"], value["run_id"], value["event_type"], value["payload"], "genesis")
        == digest
    )
    assert audit_json.canonical("a\ud800b") == '"a\ufffdb"'


def test_opening_again_goes_on_with_the_chain(tmp_path: Path) -> None:
    for number in range(3):
        log = audit.Log(str(tmp_path), DAY)
        log.append([entry(number)])
        log.close()
    assert whole(tmp_path) == 3


def test_a_hash_that_another_process_wrote_is_followed(tmp_path: Path) -> None:
    one, other = audit.Log(str(tmp_path), DAY), audit.Log(str(tmp_path), DAY)
    for number in range(6):
        (one if number % 2 else other).append([entry(number)])
    assert whole(tmp_path) == 6


def test_fifty_threads_at_once(tmp_path: Path) -> None:
    log = audit.Log(str(tmp_path), DAY)
    threads = [threading.Thread(target=log.append, args=([entry(n)],)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert whole(tmp_path) == 50


def test_processes_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from guardhook.journal import audit; log = audit.Log(sys.argv[1], sys.argv[2])\n"
        "for n in range(25): log.append([('2026-01-01T00:00:00Z', sys.argv[3], 'audit.action', {'n': n})])"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), DAY, f"run_{n}"]) for n in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert whole(tmp_path) == 75


def test_too_large_a_payload_is_refused_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry(1)])
    before = file_of(tmp_path).read_bytes()
    with pytest.raises(OSError, match="larger than"):
        log.append([entry(2, {"x": "y" * (3 << 20)})])
    assert file_of(tmp_path).read_bytes() == before
    log.append([entry(3, {"x": "y" * ((2 << 20) - 100)})])
    log.append([entry(4)])  # which has to look back over a long line
    assert whole(tmp_path) == 3


def test_what_is_changed_after_writing_is_not_in_the_file(tmp_path: Path) -> None:
    payload: dict[str, object] = {"list": [1]}
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry(1, payload)])
    payload["list"] = "changed"
    assert json.loads(file_of(tmp_path).read_text())["payload"] == {"list": [1]}


@pytest.mark.parametrize(
    "tail",
    [
        b"garbage\n",
        b'{"half":',
        b"{}\n",
        b'{"entry_hash":""}\n',
        b'{"entry_hash":7}\n',
        b"[]\n",
        b"\n",
        b"\xff\xfe\n",
        b"x" * (5 << 20) + b"\n",
    ],
)
def test_an_end_that_is_no_entry_is_never_followed(tmp_path: Path, tail: bytes) -> None:
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry(1)])
    with file_of(tmp_path).open("ab") as file:
        file.write(tail)
    before = file_of(tmp_path).read_bytes()
    with pytest.raises(OSError):
        log.append([entry(2)])
    with pytest.raises(OSError):
        audit.Log(str(tmp_path), DAY)
    assert file_of(tmp_path).read_bytes() == before


def test_a_file_that_is_locked_is_waited_for_and_given_up(tmp_path: Path) -> None:
    one, other = audit.Log(str(tmp_path), DAY), audit.Log(str(tmp_path), DAY)
    fcntl.flock(one._fd, fcntl.LOCK_EX)
    with pytest.raises(TimeoutError):
        other.append([entry(1)], seconds=0.01)
    assert file_of(tmp_path).read_bytes() == b""
    one.close()
    other.append([entry(1)], seconds=0.01)
    assert whole(tmp_path) == 1


def test_a_short_write_is_taken_back(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from guardhook.journal import audit; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "log = audit.Log(sys.argv[1], sys.argv[2]); log.append([('2026-01-01T00:00:00Z', 'r', 'x', {'n': 1})])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))\n"
        "try: log.append([('2026-01-01T00:00:00Z', 'r', 'x', {'n': 'y' * 500})])\n"
        "except OSError as error: print('refused', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), DAY], capture_output=True, text=True, timeout=60)
    assert "refused" in done.stdout, done
    assert whole(tmp_path) == 1
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry(2)])
    assert whole(tmp_path) == 2


def test_modes_are_narrow_and_narrowed(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    log = audit.Log(str(folder), DAY)
    log.append([entry(1)])
    assert [oct(p.stat().st_mode & 0o777) for p in (folder, folder / DAY, file_of(folder))] == [
        "0o700",
        "0o700",
        "0o600",
    ]
    log.close()
    file_of(folder).chmod(0o666)
    (folder / DAY).chmod(0o777)
    audit.Log(str(folder), DAY).close()
    assert [oct(p.stat().st_mode & 0o777) for p in (folder / DAY, file_of(folder))] == ["0o700", "0o600"]


def test_access_of_everybody_that_cant_be_taken_away_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit.Log(str(tmp_path), DAY).close()
    file_of(tmp_path).chmod(0o604)
    monkeypatch.setattr("guardhook.journal.files.posix.fchmod", lambda *a: None)  # a file system that ignores it
    with pytest.raises(OSError, match="everybody"):
        audit.Log(str(tmp_path), DAY)


def test_other_things_in_its_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(OSError):
        audit.Log(str(tmp_path / "a"), DAY)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / DAY).write_text("a file")
    with pytest.raises(OSError):
        audit.Log(str(tmp_path / "b"), DAY)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    (tmp_path / "c" / DAY).mkdir(parents=True)
    (tmp_path / "c" / DAY / audit.FILE).symlink_to(elsewhere)
    with pytest.raises(OSError):
        audit.Log(str(tmp_path / "c"), DAY)
    (tmp_path / "d").symlink_to(tmp_path / "c")
    with pytest.raises(OSError):
        audit.Log(str(tmp_path / "d"), DAY)
    (tmp_path / "e" / DAY).mkdir(parents=True)
    os.mkfifo(tmp_path / "e" / DAY / audit.FILE)
    with pytest.raises(OSError):
        audit.Log(str(tmp_path / "e"), DAY)
    assert elsewhere.read_text() == ""


def test_closing_twice_is_fine_and_writing_afterwards_is_not(tmp_path: Path) -> None:
    log = audit.Log(str(tmp_path), DAY)
    log.close()
    log.close()
    with pytest.raises(OSError, match="closed"):
        log.append([entry(1)])


def test_what_was_missed_comes_in_first_and_once(tmp_path: Path) -> None:
    missed = str(tmp_path / "missed")
    audit.note(missed, [entry(1), entry(2)])
    (Path(missed) / "00-damaged").write_text("{")
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry(3)], missed=missed)
    log.append([entry(4)], missed=missed)
    assert whole(tmp_path) == 4
    assert [json.loads(line)["payload"]["n"] for line in file_of(tmp_path).read_text().splitlines()] == [1, 2, 3, 4]
    assert os.listdir(missed) == ["00-damaged"]


def test_the_hash_is_sha256_of_the_documented_text() -> None:
    text = '{"ts":"t","run_id":"r","event_type":"e","payload_json":"{\\"a\\":1}","prev_hash":"genesis"}'
    assert audit.entry_hash("t", "r", "e", {"a": 1}, "genesis") == hashlib.sha256(text.encode()).hexdigest()


def test_an_entry_that_no_other_could_follow_is_refused(tmp_path: Path) -> None:
    """A line of more than what is read of a file's end: the payload itself is small enough, its escapes are not."""
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry()])
    with pytest.raises(audit.AuditError, match="larger than"):
        log.append([entry(1, {"text": "é" * 1_000_000})])
    log.append([entry(2)])
    assert whole(tmp_path) == 2


def test_what_waits_and_cant_be_written_keeps_nothing_else_away(tmp_path: Path) -> None:
    missed = tmp_path / "missed"
    audit.note(str(missed), [entry(1, {"text": "\x01" * 700_000}), entry(2)])
    for number in range(9):
        (missed / f"0-{number}").write_text("no entry")
    (missed / "00-folder").mkdir()
    (missed / "00-link").symlink_to("/etc/passwd")
    audit.Log(str(tmp_path / "trail"), DAY).append([entry(3)], missed=str(missed))
    assert whole(tmp_path / "trail") == 3
    first, second, third = (json.loads(raw)["payload"] for raw in file_of(tmp_path / "trail").read_text().splitlines())
    assert set(first) == {"failed"} and (second, third) == ({"n": 2}, {"n": 3})
    assert len(os.listdir(missed)) == 11


def test_two_writers_take_what_waits_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken in is removed before the lock is let go."""
    missed = str(tmp_path / "missed")
    audit.note(missed, [entry(1)])
    logs = [audit.Log(str(tmp_path / "trail"), DAY) for _ in range(2)]
    forget = audit._forget

    def slowly(folder: str, names: list[str]) -> None:
        with pytest.raises(TimeoutError):
            logs[1].append([entry(9)], seconds=0, missed=missed)
        forget(folder, names)

    monkeypatch.setattr(audit, "_forget", slowly)
    logs[0].append([entry(2)], missed=missed)
    monkeypatch.setattr(audit, "_forget", forget)
    logs[1].append([entry(3)], missed=missed)
    assert whole(tmp_path / "trail") == 3


def test_a_file_that_was_removed_meanwhile_gets_nothing(tmp_path: Path) -> None:
    log = audit.Log(str(tmp_path), DAY)
    log.append([entry()])
    file_of(tmp_path).unlink()
    with pytest.raises(audit.AuditError, match="removed"):
        log.append([entry(1)])


def test_a_full_disk_leaves_no_halves_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(audit.posix, "write", lambda fd, data: 3)
        with pytest.raises(OSError, match="only a part"):
            audit.note(str(tmp_path / "missed"), [entry()])
    assert os.listdir(tmp_path / "missed") == []
