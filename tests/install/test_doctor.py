"""`install`, `doctor` and `uninstall` as commands, with the real program in place: proofs by running what is registered."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from install_rig import put, tree

from guardhook.commands import doctor, install, uninstall
from guardhook.harness import program
from guardhook.harness.contents import Item

pytestmark = pytest.mark.skipif(os.name != "posix", reason="launchers are POSIX programs")


@dataclass
class Shell:
    """A person at a prompt, in an empty project."""

    home: Path
    project: Path

    def run(self, command: click.Command, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(command, list(words), prog_name="guardhook")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.output

    def install(self, *words: str, code: int = 0) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.run(install.command, *words, "--json", code=code).splitlines()[-1])
        return value

    def doctor(self, *words: str, code: int = 0) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.run(doctor.command, *words, "--json", code=code))
        return value

    def checks(self, harness: str, code: int = 0) -> dict[str, list[tuple[bool | None, str]]]:
        """The findings about one harness, by check."""
        (report,) = self.doctor(harness, code=code)["harnesses"]
        out: dict[str, list[tuple[bool | None, str]]] = {}
        for finding in report["findings"]:
            out.setdefault(finding["check"], []).append((finding["ok"], finding["detail"]))
        return out

    @property
    def data(self) -> Path:
        return self.home / ".local/share/guardhook"


@pytest.fixture
def shell(scratch_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no client is found, and nothing of this machine is asked
    return Shell(scratch_home, tmp_path)


SETTINGS = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
EVENTS = {
    "claude-code": ["PreToolUse", "PermissionRequest", "PreSkillShellCommand"],
    "codex": ["PreToolUse", "PermissionRequest"],
    "gemini": ["BeforeTool"],
}


@pytest.mark.parametrize("harness", SETTINGS)
def test_a_fresh_installation_is_proven_good(shell: Shell, harness: str) -> None:
    shell.install(harness)
    found = shell.checks(harness)
    assert all(ok is not False for rows in found.values() for ok, _ in rows)
    for check in ("answers deny", "stays silent", "fails closed"):
        ((ok, detail),) = found[check]
        assert ok and all(event in detail for event in EVENTS[harness])
    assert found["registered"][0][0] is True and found["launcher"][0][0] is True
    (report,) = shell.doctor(harness)["harnesses"]
    asked = [(row["verdict"], row["measured"]) for row in report["answers"] if row["event"] in EVENTS[harness]]
    assert {"deny", "ask"} <= {verdict for verdict, _ in asked} and all(measured for _, measured in asked)
    assert report["open"] and {r["scope"] for r in report["registered"]} == {"user"}
    lines = [json.loads(x) for p in shell.data.glob("journal/*/*.jsonl") for x in p.read_text().splitlines()]
    assert lines and all(x["data"].get("canary") is True for x in lines if x["type"] == "hook.received")


@pytest.mark.parametrize("harness", SETTINGS)
def test_capture_only_is_silent_and_called_so(shell: Shell, harness: str) -> None:
    shell.install(harness, "--capture-only")
    found = shell.checks(harness)
    assert found["mode"][0][0] is None and "answers deny" not in found and found["stays silent"][0][0] is True


@pytest.mark.parametrize("harness", SETTINGS)
def test_installing_twice_changes_nothing_and_uninstalling_all_leaves_nothing(shell: Shell, harness: str) -> None:
    path = put(shell.home / SETTINGS[harness], {"hooks": {}})
    before = tree(shell.home)
    shell.install(harness)
    once = tree(shell.home)
    assert {f["what"] for f in shell.install(harness)["files"]} == {"unchanged"}
    assert tree(shell.home) == once
    shell.run(uninstall.command, "--all")
    left = {name: data for name, data in tree(shell.home).items() if not name.startswith(".local")}
    assert left == before and path.exists()
    assert not (shell.data / "bin").exists() and not (shell.data / "versions").exists()


def test_uninstalling_one_of_two_keeps_the_program(shell: Shell) -> None:
    shell.install("codex")
    shell.install("gemini")
    shell.run(uninstall.command, "codex")
    assert not (shell.home / ".codex").exists()
    assert shell.checks("gemini")["answers deny"][0][0] is True
    assert "not registered" in shell.checks("codex", code=1)["registered"][0][1]


@pytest.mark.parametrize("harness", SETTINGS)
def test_dry_run_touches_nothing_at_all(shell: Shell, harness: str) -> None:
    put(shell.home / SETTINGS[harness], {"hooks": {}})
    before = tree(shell.home)
    out = shell.run(install.command, harness, "--dry-run")
    assert tree(shell.home) == before and f"+++ {shell.home}/{SETTINGS[harness]}" in out


def _edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    change(value["hooks"])
    path.write_text(json.dumps(value))


def test_a_foreign_command_under_our_name_is_never_run(shell: Shell) -> None:
    shell.install("claude-code")
    touched = shell.project / "touched"
    fake = put(shell.project / "bin/claude-code.enforce", f"#!/bin/sh\ntouch {shlex.quote(str(touched))}\nexit 2\n")
    fake.chmod(0o755)
    _edit(shell.home / SETTINGS["claude-code"], lambda h: h["PreToolUse"][0]["hooks"][0].update(command=str(fake)))
    found = shell.checks("claude-code", code=1)
    assert not touched.exists()
    assert any(ok is False and str(fake) in text and "not run" in text for ok, text in found["launcher"])


@pytest.mark.parametrize("tail", ["; touch {}", " PreToolUse || touch {}", " PreToolUse\ntouch {}"])
def test_a_command_with_more_in_it_is_never_run(shell: Shell, tail: str) -> None:
    shell.install("codex")
    touched = shell.project / "touched"
    path = shell.home / SETTINGS["codex"]
    _edit(
        path,
        lambda h: h["PreToolUse"][0]["hooks"][0].update(
            command=f"{shell.data}/bin/codex.enforce" + tail.format(touched)
        ),
    )
    found = shell.checks("codex", code=1)
    assert not touched.exists() and any(ok is False and "not run" in text for ok, text in found["launcher"])
    assert "\n" not in "".join(text for _, text in found["launcher"]).replace("\\n", "")


def test_a_changed_launcher_is_found_and_not_run(shell: Shell) -> None:
    shell.install("claude-code")
    touched = shell.project / "touched"
    launcher = shell.data / "bin/claude-code.enforce"
    launcher.unlink()
    put(launcher, f"#!/bin/sh\ntouch {shlex.quote(str(touched))}\nexit 2\n").chmod(0o700)
    found = shell.checks("claude-code", code=1)
    assert not touched.exists() and any(ok is False and str(launcher) in text for ok, text in found["launcher"])


def test_a_changed_hook_program_is_found(shell: Shell) -> None:
    shell.install("claude-code")
    program = next(shell.data.glob("versions/*/guardhook-hook"))
    program.parent.chmod(stat.S_IRWXU)
    program.chmod(0o700)
    program.write_text("#!/bin/sh\nexit 0\n")
    assert any(ok is False for ok, _ in shell.checks("claude-code", code=1)["launcher"])


def test_a_gate_that_does_not_answer_is_found(shell: Shell) -> None:
    """The program is intact, but every call is blocked: policies that don't parse."""
    shell.install("codex")
    put(shell.home / ".config/guardhook/policies/x.toml", "not toml [")
    found = shell.checks("codex", code=1)
    assert any(ok is False and "exit 2" in text for ok, text in found["stays silent"])
    assert found["fails closed"][0][0] is True


def test_broken_policies_are_refused_before_anything_is_written(shell: Shell) -> None:
    put(shell.home / ".config/guardhook/policies/x.toml", "not toml [")
    before = tree(shell.home)
    answer = shell.install("claude-code", code=2)
    assert answer["ok"] is False and "x.toml" in answer["error"] and answer["hints"]
    assert tree(shell.home) == before


def test_missing_events_and_weakened_modes_are_found(shell: Shell) -> None:
    shell.install("claude-code")
    path = shell.home / SETTINGS["claude-code"]
    _edit(path, lambda h: h.pop("ConfigChange"))
    assert "ConfigChange missing" in shell.checks("claude-code", code=1)["registered"][0][1]
    shell.install("claude-code")
    observe = f"{shell.data}/bin/claude-code.observe"
    _edit(path, lambda h: h["PreToolUse"][0]["hooks"][0].update(command=observe))
    assert any(
        ok is False and "only observed" in text for ok, text in shell.checks("claude-code", code=1)["registered"]
    )


def test_settings_that_do_not_parse_are_a_failure_not_a_crash(shell: Shell) -> None:
    shell.install("gemini")
    put(shell.home / SETTINGS["gemini"], '{\n "a": oops')
    found = shell.checks("gemini", code=1)
    assert any(ok is False and "settings.json:2:" in text for ok, text in found["settings"])


def test_nothing_registered_is_a_failure(shell: Shell) -> None:
    said = shell.doctor(code=1)
    for report in said["harnesses"]:
        assert report.pop("answers")
    assert said == {
        "ok": False,
        "settings": [],
        "harnesses": [
            {"harness": h, "ok": True, "client": None, "registered": [], "findings": [], "open": shell_open(h)}
            for h in sorted(SETTINGS)
        ],
    }
    assert "registered nowhere" in shell.run(doctor.command, code=1)


def shell_open(harness: str) -> list[str]:
    from guardhook.harness.examine import stays_open

    return stays_open(harness)


def test_what_is_printed_carries_no_control_characters(shell: Shell) -> None:
    shell.install("codex")
    evil = "/x/codex.enforce\x1b[2J\u202e PreToolUse"
    _edit(
        shell.home / SETTINGS["codex"],
        lambda h: h["PreToolUse"][0]["hooks"].append(
            {"type": "command", "command": "/x/codex.enforce '\x1b[2J\u202e'"}
        ),
    )
    out = shell.run(doctor.command, "codex", code=1)
    assert "\x1b" not in out and "\u202e" not in out and "\\x1b" in out
    assert evil not in out


def test_liveness_counts_real_events_only(shell: Shell) -> None:
    shell.install("claude-code")
    assert "no event" in shell.checks("claude-code")["liveness"][0][1]
    assert (
        "no event" in shell.checks("claude-code")["liveness"][0][1]
    )  # the canaries of the first run are in the journal now
    day = next(shell.data.glob("journal/20*"))
    line = {"ts": "x", "seq": 1, "type": "hook.received", "data": {"event": "stop"}}
    put(day / ("claude-code-" + "0" * 32 + ".jsonl"), json.dumps(line, separators=(",", ":")) + "\n")
    assert shell.checks("claude-code")["liveness"][0][0] is True
    old = 1_700_000_000
    os.utime(day / ("claude-code-" + "0" * 32 + ".jsonl"), (old, old))
    assert "days old" in shell.checks("claude-code")["liveness"][0][1]


def test_prompt_policies_switch_the_prompt_event_to_enforcing(shell: Shell) -> None:
    policy = '[[policy]]\nname = "p"\ndescription = "d"\naction = "deny"\nreason = "r"\nmatch = { event = "user_prompt", input_contains = "zzz" }\n'
    policies = put(shell.home / ".config/guardhook/policies/x.toml", policy)
    shell.install("claude-code")
    hooks = json.loads((shell.home / SETTINGS["claude-code"]).read_text())["hooks"]
    assert hooks["UserPromptSubmit"][0]["hooks"][0]["command"].endswith(".enforce")
    policies.unlink()
    shell.install("claude-code")
    hooks = json.loads((shell.home / SETTINGS["claude-code"]).read_text())["hooks"]
    assert hooks["UserPromptSubmit"][0]["hooks"][0]["command"].endswith(".observe")


def test_usage_errors_exit_2(shell: Shell) -> None:
    shell.run(install.command, "vim", code=2)
    shell.run(install.command, "codex", "--scope", "moon", code=2)
    shell.run(uninstall.command, code=2)
    shell.run(uninstall.command, "codex", "--all", code=2)
    put(shell.home / SETTINGS["codex"], "{")
    assert "hooks.json:1:2" in shell.install("codex", code=2)["error"]


def test_uninstall_tells_what_stays_and_what_could_not_go(shell: Shell) -> None:
    shell.install("codex")
    shell.install("gemini")
    put(shell.home / SETTINGS["gemini"], "{ oops")
    done = json.loads(shell.run(uninstall.command, "--all", "--json", code=2))
    assert len(done["errors"]) == 1 and "settings.json:1:3" in done["errors"][0]
    assert any("kept: journal" in note for note in done["notes"])
    assert (shell.data / "bin").exists()  # the program stays while something may still start it
    assert not (shell.home / ".codex/hooks.json").exists()


def test_in_the_home_folder_one_file_is_not_two_scopes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.home)
    done = shell.install("codex")
    assert not any("also registered" in note for note in done["notes"])
    assert len(shell.checks("codex")["registered"]) == 1


def test_where_nothing_was_nothing_is_said_to_be_kept(shell: Shell) -> None:
    done = json.loads(shell.run(uninstall.command, "codex", "--json"))
    assert done["files"] == [] and not any("kept" in note for note in done["notes"])
    put(shell.home / SETTINGS["codex"], "{ oops")
    said = shell.run(uninstall.command, "codex", code=2)
    assert "nothing of guardhook was registered" not in said


def test_hooks_of_another_version_are_told_of(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of the executable, doctor said that all was good while the hooks ran the old program."""
    shell.install("claude-code")
    assert not any("another version" in detail for _, detail in shell.checks("claude-code")["launcher"])
    newer = [*program.contents(), Item("more", 0o400, b"what an update brings")]
    monkeypatch.setattr(program, "contents", lambda: newer)
    assert any("another version" in detail for _, detail in shell.checks("claude-code")["launcher"])
