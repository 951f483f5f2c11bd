"""Registration in Claude Code's settings: what is written, what is left alone, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from install_rig import Person, put, tree

from guardhook.harness import claude_code, record
from guardhook.harness.errors import HarnessError
from guardhook.harness.machine import Machine
from guardhook.harness.model import Client, Ran

D = "claude-code"

THEIRS: dict[str, bytes] = {
    "nothing": b"{}\n",
    "others": json.dumps(
        {
            "model": "x",
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo"}]}]},
        },
        indent=4,
    ).encode(),
    "minified": b'{"permissions":{"allow":["Bash"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}',
    "crlf": b'{\r\n\t"model": "x",\r\n\t"hooks": {\r\n\t\t"PreToolUse": [],\r\n\t\t"Mine": [ ]\r\n\t}\r\n}\r\n',
    "bom": b'\xef\xbb\xbf{"hooks": {}}',
    "empty": b"",
    "escapes": '{"a": "\\u00e9é", "big": 12345678901234567890, "f": 1.50, "e": 1E3}\n\n\n'.encode(),
}


def settings(person: Person) -> Path:
    return person.home / ".claude/settings.json"


@pytest.mark.parametrize("name", THEIRS)
def test_uninstall_brings_back_every_byte(person: Person, name: str) -> None:
    put(settings(person), THEIRS[name]).chmod(0o640)
    person.install(D)
    assert len(person.registrations(D)) == len(claude_code.EVENTS)
    person.install(D, capture=True)
    person.install(D)
    person.uninstall(D)
    assert settings(person).read_bytes() == THEIRS[name]
    assert settings(person).stat().st_mode & 0o777 == 0o640
    assert not person.data.exists() or not list(person.data.rglob("*"))


def test_a_file_that_was_not_there_goes_again_with_its_folder(person: Person) -> None:
    before = tree(person.base)
    person.install(D)
    assert settings(person).stat().st_mode & 0o777 == 0o600
    person.uninstall(D)
    assert {k: v for k, v in tree(person.base).items() if not k.startswith("home/.local")} == before


@pytest.mark.parametrize("name", THEIRS)
def test_installing_again_changes_not_a_byte(person: Person, name: str) -> None:
    put(settings(person), THEIRS[name])
    person.install(D)
    once, info = tree(person.base), settings(person).stat()
    out = person.install(D)
    assert set(out.files.values()) == {"unchanged"}
    assert tree(person.base) == once
    assert settings(person).stat().st_ino == info.st_ino


@pytest.mark.parametrize("name", THEIRS)
def test_everything_of_others_stays_in_place(person: Person, name: str) -> None:
    put(settings(person), THEIRS[name])
    person.install(D)
    text = iter(settings(person).read_bytes())
    assert all(byte in text for byte in THEIRS[name].rstrip())


def test_what_is_registered(person: Person) -> None:
    person.install(D)
    hooks = json.loads(settings(person).read_text())["hooks"]
    assert set(hooks) == set(claude_code.EVENTS) and "WorktreeCreate" not in hooks
    enforce, observe = person.launcher(D), person.launcher(D, "observe")
    for event in ("PreToolUse", "PermissionRequest", "PreSkillShellCommand", "ConfigChange"):
        expected = {"type": "command", "command": enforce, "args": [event], "timeout": 10, "onFailure": "block"}
        assert hooks[event] == [{"hooks": [expected]}]
    for event in set(hooks) - {"PreToolUse", "PermissionRequest", "PreSkillShellCommand", "ConfigChange"}:
        (handler,) = hooks[event][0]["hooks"]
        assert handler["command"] == (
            enforce if event == "SessionStart" else observe
        )  # it may tell the person something
        assert "onFailure" not in handler and 0 < handler["timeout"] <= 5


def test_prompts_are_judged_only_when_a_policy_asks_for_it(person: Person) -> None:
    person.install(D, prompts=True)
    modes = {r.event: r.mode for r in person.registrations(D)}
    assert modes["UserPromptSubmit"] == modes["UserPromptExpansion"] == "enforce"
    person.install(D, prompts=False)
    assert {r.event: r.mode for r in person.registrations(D)}["UserPromptSubmit"] == "observe"


def test_capture_only_registers_nothing_that_could_stop_a_call(person: Person) -> None:
    put(settings(person), THEIRS["others"])
    person.install(D)
    person.install(D, capture=True)
    found = person.registrations(D)
    assert {r.mode for r in found} == {"observe"} and len(found) == len(claude_code.EVENTS)
    assert all("onFailure" not in r.handler for r in found)
    assert settings(person).read_bytes().count(b".enforce") == 0


def test_entries_of_another_installation_are_replaced_where_they_stand(person: Person) -> None:
    old = {"type": "command", "command": "/old/place/bin/claude-code.enforce", "args": ["PreToolUse"]}
    other = {"type": "command", "command": "/usr/bin/other"}
    groups = [{"hooks": [old]}, {"hooks": [other]}, {"hooks": [other, old]}]
    put(settings(person), {"hooks": {"PreToolUse": groups, "Elicitation": [{"hooks": [old]}]}})
    person.install(D)
    hooks = json.loads(settings(person).read_text())["hooks"]
    assert [h["command"] for g in hooks["PreToolUse"] for h in g["hooks"]] == [
        person.launcher(D),
        other["command"],
        other["command"],
    ]
    assert hooks["Elicitation"] == []
    person.uninstall(D)
    assert json.loads(settings(person).read_text())["hooks"]["PreToolUse"] == [{"hooks": [other]}, {"hooks": [other]}]


def test_a_program_that_only_sounds_like_ours_is_left_alone(person: Person) -> None:
    lookalikes = [
        "/x/claude-code.enforcer",
        "echo /x/claude-code.enforce",
        "/x/my-claude-code.enforce",
        "/x/codex.enforce",
    ]
    groups = [{"hooks": [{"type": "command", "command": c} for c in lookalikes]}]
    path = put(settings(person), {"hooks": {"PreToolUse": groups}})
    before = path.read_bytes()
    assert person.registrations(D) == []
    person.install(D)
    assert json.loads(path.read_text())["hooks"]["PreToolUse"][0] == groups[0]
    person.uninstall(D)
    assert path.read_bytes() == before


def test_after_others_edited_only_our_entries_go(person: Person) -> None:
    put(settings(person), THEIRS["others"])
    person.install(D)
    value = json.loads(settings(person).read_text())
    value["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "later"}]})
    value["theme"] = "dark"
    put(settings(person), json.dumps(value, indent=1))
    out = person.uninstall(D)
    left = json.loads(settings(person).read_text())
    expected = json.loads(THEIRS["others"])
    expected["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "later"}]})
    assert left == {**expected, "theme": "dark"}
    assert any("edited by others" in note for note in out.notes)


def test_removal_works_without_any_record(person: Person) -> None:
    put(settings(person), THEIRS["others"])
    person.install(D)
    record.forget(person.folders, str(settings(person)))
    person.uninstall(D)
    assert settings(person).read_bytes() == THEIRS["others"]


def test_a_damaged_backup_is_not_restored(person: Person) -> None:
    put(settings(person), THEIRS["others"])
    (backup,) = person.install(D).backups
    Path(backup).write_bytes(b'{"evil": true}')
    person.uninstall(D)
    assert settings(person).read_bytes() == THEIRS["others"]


BROKEN: dict[str, tuple[bytes, str]] = {
    "syntax": (b'{\n  "a": oops\n}', ":2:8:"),
    "no object": (b"[]", ":1:1:"),
    "hooks no object": (b'{"hooks": []}', ":1:11:"),
    "hooks null": (b'{"hooks": null}', ":1:11:"),
    "event no list": (b'{"hooks": {"PreToolUse": {}}}', ":1:26:"),
    "hooks twice": (b'{"hooks": {}, "hooks": {}}', ":1:15:"),
    "event twice": (b'{"hooks": {"Stop": [],\n"Stop": []}}', ":2:1:"),
    "encoding": (b'{"a": "\xff"}', ":1:8:"),
    "comment": (b"{\n// not read by the client\n}", ":2:1:"),
    "trailing comma": (b'{"a": 1,\n}', ":1:8:"),
    "flat entry": (b'{"hooks": {"PreToolUse": [{"type": "command", "command": "x"}]}}', ":1:27:"),
    "text timeout": (
        b'{"hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": "x", "timeout": "60"}]}]}}',
        ":1:45:",
    ),
    "zero timeout": (
        b'{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]}}',
        ":1:38:",
    ),
    "on failure": (
        b'{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "onFailure": "BLOCK"}]}]}}',
        ":1:38:",
    ),
    "unknown type": (b'{"hooks": {"PreToolUse": [{"hooks": [{"type": "exec", "command": "x"}]}]}}', ":1:38:"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_the_client_would_not_read_is_never_written(person: Person, name: str) -> None:
    data, place = BROKEN[name]
    put(settings(person), data)
    before = tree(person.base)
    with pytest.raises(HarnessError) as caught:
        person.install(D)
    assert str(settings(person)) + place in caught.value.message
    assert caught.value.hints
    assert tree(person.base) == before
    assert any(f.ok is False for f in person_findings(person))


def person_findings(person: Person) -> list[Any]:
    found = claude_code.findings(person.machine, [], None, lambda p: Path(p).read_bytes() if Path(p).exists() else None)
    return [f for f in found if f.check == "settings"]


def test_a_bad_entry_elsewhere_is_told_but_does_no_harm(person: Person) -> None:
    put(settings(person), {"hooks": {"Notification": [{"type": "command", "command": "x"}]}})
    person.install(D)
    assert [f.ok for f in person_findings(person)] == [None]


def test_dry_run_shows_a_diff_and_touches_nothing(person: Person) -> None:
    put(settings(person), THEIRS["others"])
    before = tree(person.base)
    out = person.install(D, dry_run=True)
    assert tree(person.base) == before
    added = [line for line in out.diff.splitlines() if line.startswith("+") and person.launcher(D) in line]
    assert len(added) == 5
    person.install(D)
    installed = tree(person.base)
    out = person.uninstall(D, dry_run=True)
    assert tree(person.base) == installed and out.diff.count("\n-") > 4


def test_project_scope_uses_the_personal_file(person: Person) -> None:
    shared = put(person.project / ".claude/settings.json", THEIRS["others"])
    out = person.install(D, "project")
    assert {r.file for r in person.registrations(D, "project")} == {str(person.project / ".claude/settings.local.json")}
    assert shared.read_bytes() == THEIRS["others"] and out.notes
    person.uninstall(D, "project")
    assert not (person.project / ".claude/settings.local.json").exists()


def test_the_gate_is_told_where_we_are_registered(person: Person) -> None:
    person.install(D)
    person.install(D, "project")
    lines = (person.data / "registrations").read_text().splitlines()
    assert lines == [
        f"{D}\tproject\t{person.project}/.claude/settings.local.json",
        f"{D}\tuser\t{settings(person)}",
    ]
    person.uninstall(D)
    assert (person.data / "registrations").read_text().splitlines() == lines[:1]
    person.uninstall(D, "project")
    assert not (person.data / "registrations").exists()


def test_the_folder_variable_of_the_client_counts(tmp_path: Path) -> None:
    person = Person(tmp_path, env={"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")})
    person.install(D)
    assert (tmp_path / "elsewhere/settings.json").exists() and not settings(person).exists()


@pytest.mark.parametrize(
    ("platform", "scope", "expected"),
    [
        ("linux", "system", "/etc/claude-code/managed-settings.json"),
        ("darwin", "system", "/Library/Application Support/ClaudeCode/managed-settings.json"),
        ("win32", "system", r"C:\Program Files\ClaudeCode\managed-settings.json"),
        ("darwin", "user", "/home/p/.claude/settings.json"),
        ("win32", "user", r"C:\Users\p\.claude\settings.json"),
        ("win32", "project", r"D:\work\.claude\settings.local.json"),
    ],
)
def test_places_on_each_platform(platform: str, scope: str, expected: str) -> None:
    windows = platform == "win32"
    machine = Machine(platform, r"C:\Users\p" if windows else "/home/p", "/", r"D:\work" if windows else "/work")
    assert claude_code.places(machine, scope)[0] == expected


def test_switches_are_found(person: Person) -> None:
    person.install(D)
    assert "off switch" not in person.findings(D)
    put(person.project / ".claude/settings.local.json", {"disableAllHooks": True})
    put(person.project / ".claude/settings.json", {"env": {"CLAUDE_CODE_SIMPLE": "1"}})
    put(person.root / "etc/claude-code/managed-settings.json", {"allowManagedHooksOnly": True})
    told = " ".join(f.detail for f in person.findings(D)["off switch"] if f.ok is False)
    for word in ("settings.local.json", "CLAUDE_CODE_SIMPLE", "allowManagedHooksOnly"):
        assert word in told


@pytest.mark.parametrize(
    ("version", "words"), [("2.1.332", []), ("2.1.294", ["onFailure", "skills"]), ("2.1.300", ["skills"]), (None, [])]
)
def test_old_clients_are_warned_about(person: Person, version: str | None, words: list[str]) -> None:
    found = claude_code.findings(person.machine, [], Client("/x/claude", version), lambda _: None)
    told = [f.detail for f in found if f.check == "version"]
    assert len(told) == len(words) and all(word in text for word, text in zip(words, told, strict=True))


@pytest.mark.parametrize(
    ("event", "ran", "expected"),
    [
        ("PreToolUse", Ran(2, b"", b"no"), True),
        ("PreToolUse", Ran(2, b"{broken", b""), True),
        ("PreToolUse", Ran(0, b"", b""), False),
        ("PreToolUse", Ran(1, b"", b"no"), False),
        ("PreToolUse", Ran(None, b"", b""), False),
        (
            "PreToolUse",
            Ran(0, b'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}', b""),
            True,
        ),
        ("PreToolUse", Ran(0, b'{"hookSpecificOutput":{"permissionDecision":"deny"}}', b""), False),
        ("PreToolUse", Ran(0, b'{"decision":"deny"}', b""), False),
        ("PermissionRequest", Ran(2, b"", b"no"), False),
        (
            "PermissionRequest",
            Ran(0, b'{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny"}}}', b""),
            True,
        ),
    ],
)
def test_what_the_client_takes_as_a_block(event: str, ran: Ran, expected: bool) -> None:
    assert claude_code.blocked(event, ran) is expected


@pytest.mark.parametrize(("version", "known"), [("2.1.332", True), ("2.1.197", False), (None, True)])
def test_an_event_that_an_older_client_complains_of_is_left_out(
    person: Person, monkeypatch: pytest.MonkeyPatch, version: str | None, known: bool
) -> None:
    """2.1.197 stops at a terminal before every session to warn of the unknown name."""
    monkeypatch.setattr(claude_code, "client", lambda machine: Client("/x/claude", version))
    person.install(D)
    assert ("PreSkillShellCommand" in {r.event for r in person.registrations(D)}) is known
