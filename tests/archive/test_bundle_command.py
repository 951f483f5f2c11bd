"""`guardhook bundle`: what is in the zip file, that no secret is, and what becomes of a run whose envelope is refused."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from archive_rig import Journal, event, guardhook, session, told

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def files_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


def made(journal: Journal, path: Path, *words: str) -> dict[str, Any]:
    trace = told(guardhook(journal, "list", "--json"))["items"][0]["id"]
    found = told(guardhook(journal, "bundle", trace, "-o", str(path), "--json", *words))
    assert isinstance(found, dict)
    return found


def test_everything_is_in_it_and_listed(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    manifest = made(journal, tmp_path / "b.zip")["manifest"]
    files = files_of(tmp_path / "b.zip")
    run = manifest["run"]["runId"]
    assert set(files) == {
        f"{run}.json", "account.json", "account.md", "doctor.json", "manifest.json", "report.html", "rollout.jsonl",
    }  # fmt: skip
    assert json.loads(files["manifest.json"]) == manifest
    assert [f["name"] for f in manifest["files"]] == sorted(set(files) - {"manifest.json"})
    for row in manifest["files"]:
        assert row["sha256"] == hashlib.sha256(files[row["name"]]).hexdigest() and row["bytes"] == len(files[row["name"]])  # fmt: skip
    assert manifest["notes"] == [] and manifest["archive"] == f"{run}.json"
    assert json.loads(files[f"{run}.json"])["run"]["complete"] is True
    assert len(files["rollout.jsonl"].splitlines()) == len(json.loads(files[f"{run}.json"])["recording"]["events"])
    assert json.loads(files["account.json"])["turns"][0]["kind"] == "guardhook/answer-account"
    assert b"tidy up the project" in files["report.html"] and b"**It answered" in files["account.md"]
    assert (os.stat(tmp_path / "b.zip").st_mode & 0o777 == 0o600 and os.listdir(tmp_path) == ["gh", "b.zip"]) or set(os.listdir(tmp_path)) == {"gh", "b.zip"}  # fmt: skip


def test_what_ends_a_run_is_what_the_settings_say(journal: Journal, tmp_path: Path) -> None:
    """As for `archive save`: where each turn is a run, a stop ends it."""
    session(journal, end=False)
    assert made(journal, tmp_path / "a.zip", "--no-doctor")["manifest"]["notes"]
    (journal.base / "config.toml").write_text('[forensics]\nclose_on = "stop"\n')
    manifest = made(journal, tmp_path / "b.zip", "--no-doctor")["manifest"]
    kept = json.loads(files_of(tmp_path / "b.zip")[manifest["archive"]])
    assert not manifest["notes"] and kept["run"]["basis"]["complete"] == "stop-event"


def test_all_files_tell_the_same_account(journal: Journal, tmp_path: Path) -> None:
    """The one for people knew nothing of the declared checks that the one for programs told of."""
    journal.base.mkdir(exist_ok=True)
    declared = '[[account.verify]]\nid = "t"\nlabel = "our own tests"\nargv = ["pytest"]\n'
    (journal.base / "config.toml").write_text(declared)
    session(journal)
    made(journal, tmp_path / "b.zip", "--no-doctor")
    files = files_of(tmp_path / "b.zip")
    trace = told(guardhook(journal, "list", "--json"))["items"][0]["id"]
    assert files["account.md"].decode() == guardhook(journal, "account", trace, "--markdown").stdout
    assert json.loads(files["account.json"])["turns"][-1] == told(guardhook(journal, "account", trace, "--json"))
    assert (
        b"No checks are declared" not in files["account.md"] and b"No checks are declared" not in files["report.html"]
    )


def test_the_same_run_gives_the_same_bytes(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    made(journal, tmp_path / "a.zip", "--no-doctor")
    made(journal, tmp_path / "b.zip", "--no-doctor")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert "doctor.json" not in files_of(tmp_path / "a.zip")


def test_no_secret_leaves(journal: Journal, tmp_path: Path) -> None:
    """Even when the owner records everything in full."""
    journal.add(event("user_prompt", prompt=f"use {SECRET}"), opens=True)
    journal.add(
        event("pre_tool", tool="Bash", given={"command": f"echo {SECRET}"}, call="c"),
        event("post_tool", tool="Bash", given={"command": f"echo {SECRET}"}, call="c", tool_response={"stdout": SECRET, "password": "hunter2"}),
        event("stop", last_assistant_message=f"I used {SECRET}"), event("session_end"),
    )  # fmt: skip
    found = made(journal, tmp_path / "b.zip")
    assert found["manifest"]["redaction"]["replaced"] > 3
    for name, data in files_of(tmp_path / "b.zip").items():
        assert SECRET.encode() not in data and b"hunter2" not in data, name
    assert b"REDACTED" in files_of(tmp_path / "b.zip")["rollout.jsonl"]


def test_a_refused_envelope_leaves_the_bare_recording(journal: Journal, tmp_path: Path) -> None:
    session(journal, end=False)
    manifest = made(journal, tmp_path / "b.zip", "--no-doctor")["manifest"]
    assert manifest["archive"] == "recording.json"
    (note,) = manifest["notes"]
    assert (note["file"], note["code"], note["field"]) == ("recording.json", "ERR_INDETERMINATE_RUN_FACT", "complete")
    files = files_of(tmp_path / "b.zip")
    assert set(json.loads(files["recording.json"])) == {"snapshot", "events", "structure"}
    assert not [n for n in files if n.startswith("run_")] and "report.html" in files
    shown = guardhook(journal, "bundle", manifest["run"]["traceId"], "-o", str(tmp_path / "c.zip"))
    assert "note: recording.json" in shown.stderr
    manifest = made(journal, tmp_path / "d.zip", "--complete", "no", "--no-doctor")["manifest"]
    assert manifest["notes"] == [] and manifest["archive"].startswith("run_")


def test_bundles_are_read_like_archives(journal: Journal, tmp_path: Path) -> None:
    session(journal)
    path = tmp_path / "b.zip"
    run = made(journal, path, "--no-doctor")["manifest"]["run"]["runId"]
    assert guardhook(journal, "archive", "check", str(path)).exit_code == 0
    assert told(guardhook(journal, "archive", "open", str(path), "--json"))["run"]["runId"] == run
    assert len(guardhook(journal, "archive", "open", str(path), "--events").stdout.splitlines()) > 5
    assert told(guardhook(journal, "account", str(path), "--json"))["run"]["runId"] == run
    other = Journal(tmp_path / "other")
    assert guardhook(other, "archive", "open", str(path), "--import").exit_code == 0
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("more.txt", "x")
    assert guardhook(journal, "archive", "check", str(path)).exit_code == 3


def test_files_that_are_there(journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(journal)
    monkeypatch.chdir(tmp_path)
    trace = told(guardhook(journal, "list", "--json"))["items"][0]["id"]
    first = guardhook(journal, "bundle", trace, "--no-doctor")
    name = first.stdout.strip()
    assert first.exit_code == 0 and name.startswith("guardhook-run_") and (tmp_path / name).exists()
    assert guardhook(journal, "bundle", trace, "--no-doctor").exit_code == 2
    assert guardhook(journal, "bundle", trace, "--no-doctor", "--force").exit_code == 0
    assert guardhook(journal, "bundle", "nosuch").exit_code == 1
    assert guardhook(journal, "bundle", trace, "-o", "").exit_code == 2
    assert guardhook(journal, "bundle", trace, "-o", str(tmp_path / "no" / "such" / "x.zip"), "--no-doctor").exit_code == 1  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["gh", name]
