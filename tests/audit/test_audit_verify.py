"""`guardhook audit`: the first bad line is named, anchors show what a chain alone can't."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.journal import audit
from guardhook.rollout import audit as trail

DAY = "2026-01-01"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "gh" / "rollouts"
    log = audit.Log(str(folder), DAY)
    for number in range(5):
        log.append(
            [
                (
                    f"2026-01-01T00:00:0{number}Z",
                    "run_1",
                    "audit.action",
                    {"tool": "Bash", "n": number, "z": {"b": 1, "a": "é<"}},
                )
            ]
        )
    log.close()
    return folder / DAY / audit.FILE


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["audit", *words])


def lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def swap(parts: list[bytes]) -> list[bytes]:
    parts[1], parts[2] = parts[2], parts[1]
    return parts


def edit(old: bytes, new: bytes, at: int = 2) -> Callable[[list[bytes]], list[bytes]]:
    def change(parts: list[bytes]) -> list[bytes]:
        assert old in parts[at]
        parts[at] = parts[at].replace(old, new)
        return parts

    return change


def rehashed(parts: list[bytes]) -> list[bytes]:
    """An edited entry with a right hash of its own: what follows does not follow it any more."""
    value = json.loads(parts[1])
    value["payload"]["tool"] = "Read"
    value["entry_hash"] = audit.entry_hash(
        value["timestamp"], value["run_id"], value["event_type"], value["payload"], value["prev_hash"]
    )
    parts[1] = json.dumps(value).encode() + b"\n"
    return parts


@pytest.mark.parametrize(
    ("change", "line", "kind"),
    [
        (edit(b'"tool":"Bash"', b'"tool":"Read"'), 3, "entry_hash"),
        (edit(b"run_1", b"run_2"), 3, "entry_hash"),
        (edit(b"00:02Z", b"00:09Z"), 3, "entry_hash"),
        (swap, 2, "prev_hash"),
        (lambda parts: parts[:2] + parts[3:], 3, "prev_hash"),
        (lambda parts: parts[1:], 1, "prev_hash"),
        (lambda parts: parts[:2] + parts[1:], 3, "prev_hash"),
        (rehashed, 3, "prev_hash"),
        (lambda parts: [*parts, b"garbage\n"], 6, "parse"),
        (lambda parts: [*parts[:4], parts[4][:-9]], 5, "truncated_tail"),
        (lambda parts: [*parts[:3], b"\n", *parts[3:]], 4, "parse"),
        (edit(b'{"timestamp"', b'{"note":"not hashed","timestamp"'), 3, "parse"),
        (edit(b'"tool":"Bash"', b'"tool":"Bash","tool":"Bash"'), 3, "parse"),
        (edit(b'"run_id":"run_1",', b""), 3, "parse"),
        (edit(b'"run_1"', b"1"), 3, "parse"),
        (lambda parts: [b"\xff\xfe\n", *parts], 1, "parse"),
    ],
)  # fmt: skip
def test_the_first_bad_line_is_named(
    file: Path, change: Callable[[list[bytes]], list[bytes]], line: int, kind: str
) -> None:
    file.write_bytes(b"".join(change(lines(file))))
    out = run("verify", str(file))
    assert out.exit_code == 3
    assert f"line {line}: {kind}:" in out.stdout and f"{line - 1} entries before it are whole" in out.stdout
    found = json.loads(run("verify", str(file), "--json").stdout)
    assert found["ok"] is False and found["files"][0]["entries"] == line - 1
    assert (found["files"][0]["bad"]["line"], found["files"][0]["bad"]["kind"]) == (line, kind)


def test_a_whole_chain_is_whole_whatever_the_order_of_keys_and_the_spelling_of_json(file: Path) -> None:
    assert run("verify", str(file)).exit_code == 0
    parts = lines(file)
    value = json.loads(parts[2])
    value["payload"] = dict(reversed(list(value["payload"].items())))
    parts[2] = json.dumps(dict(reversed(list(value.items()))), ensure_ascii=False, indent=None).encode() + b"\n"
    file.write_bytes(b"".join(parts))
    out = run("verify", str(file))
    assert out.exit_code == 0 and "5 entries, the chain is whole" in out.stdout
    assert "cut off at the end" in out.stderr


def test_no_entries_are_a_valid_chain(file: Path) -> None:
    file.write_bytes(b"")
    assert run("verify", str(file)).exit_code == 0


def test_what_can_t_be_read_is_no_finding(file: Path, tmp_path: Path) -> None:
    assert run("verify", str(tmp_path / "missing")).exit_code == 1
    assert run("verify", str(tmp_path)).exit_code == 1
    os.mkfifo(tmp_path / "fifo")
    out = run("verify", str(tmp_path / "fifo"))
    assert out.exit_code == 1 and "not a regular file" in out.stderr
    out = run("verify", "a\x1b[2Jb", "--json")
    assert out.exit_code == 1 and "\x1b" not in out.stdout
    assert "\x1b" not in run("verify", "a\x1b[2Jb").stderr


def test_without_a_file_every_day_is_checked(file: Path) -> None:
    folder = str(file.parents[2])
    log = audit.Log(str(file.parents[1]), "2026-01-02")
    log.append([("2026-01-02T00:00:00Z", "run_2", "run.started", {})])
    audit.note(f"{folder}/{audit.MISSED}", [("2026-01-02T00:00:00Z", "run_2", "run.completed", None)])
    found = json.loads(run("verify", "--json", "--dir", folder).stdout)
    assert [f["entries"] for f in found["files"]] == [5, 1] and found["waiting"] == 1 and found["ok"] is True
    assert json.loads(run("verify", "--json", "--dir", f"{folder}/none").stdout) == {
        "ok": True,
        "files": [],
        "missing_days": [],
        "waiting": 0,
    }


def test_anchors_show_what_was_cut_off_or_written_anew(file: Path, tmp_path: Path) -> None:
    anchors, key = tmp_path / "anchors", tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef\n")
    words = ["--anchors", str(anchors), "--key-file", str(key)]
    out = run("anchor", str(file), "--to", str(anchors), "--key-file", str(key))
    assert out.exit_code == 0
    made = json.loads(out.stdout)
    assert (made["day"], made["entries"], made["entry_hash"]) == (DAY, 5, trail.verify(str(file)).head)
    assert anchors.stat().st_mode & 0o777 == 0o600
    assert run("verify", str(file), *words).exit_code == 0
    whole = file.read_bytes()
    file.write_bytes(b"".join(lines(file)[:-1]))
    out = run("verify", str(file), *words)
    assert out.exit_code == 3 and "anchor: 5 entries were anchored, only 4 are there" in out.stdout
    assert run("verify", str(file)).exit_code == 0
    file.write_bytes(b"")
    log = audit.Log(str(file.parents[1]), DAY)
    for number in range(6):
        log.append([(f"2026-01-01T00:00:0{number}Z", "run_1", "audit.action", {"tool": "Read", "n": number})])
    assert run("verify", str(file)).exit_code == 0
    out = run("verify", str(file), *words)
    assert out.exit_code == 3 and "line 5: anchor" in out.stdout
    file.unlink()
    out = run("verify", *words, "--dir", str(file.parents[2]))
    assert out.exit_code == 3 and "its file is gone" in out.stdout
    file.write_bytes(whole)
    key.write_text("another key, also long enough")
    out = run("verify", str(file), *words)
    assert out.exit_code == 1 and "not made with this key" in out.stderr


def test_a_broken_chain_is_not_anchored(file: Path) -> None:
    file.write_bytes(b"".join(swap(lines(file))))
    out = run("anchor", str(file))
    assert out.exit_code == 3 and "line 2: prev_hash" in out.stderr and not out.stdout


def test_a_program_gets_the_head(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "got it"
    out = run(
        "anchor",
        "--dir",
        str(file.parents[2]),
        "--exec",
        f"/bin/sh -c 'echo \"$1 $2 $3\" > \"$0\"' '{target}' {{hash}} {{entries}} {{day}}",
    )
    assert out.exit_code == 0
    assert target.read_text().split() == [trail.verify(str(file)).head, "5", DAY]
    assert run("anchor", str(file), "--exec", "/bin/false").exit_code == 1
    assert run("anchor", str(file), "--exec", "/no/such/program").exit_code == 1
    assert run("anchor", str(file), "--exec", "'").exit_code == 2


def test_usage(file: Path, tmp_path: Path) -> None:
    assert run("verify", "--key-file", str(file)).exit_code == 2
    assert run("verify", str(file), "--anchors", str(tmp_path / "no")).exit_code == 1
    (tmp_path / "bad").write_text('{"day": 1}\n')
    out = run("verify", str(file), "--anchors", str(tmp_path / "bad"))
    assert out.exit_code == 1 and "line 1 is no anchor" in out.stderr
    assert run("anchor", "--dir", str(tmp_path / "empty")).exit_code == 1
