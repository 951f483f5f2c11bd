"""What hooks leave in the audit trail, and what they don't let it do to a decision."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guardhook.journal import audit
from guardhook.rollout import audit as trail

SESSION = "00000000-0000-4000-8000-000000000001"
ON = "[forensics]\naudit_trail_enabled = true\n"
DENY = '[[policy]]\nname = "no-marker"\naction = "deny"\nreason = "No."\nmatch = { input_contains = "GH-DENY" }\n'


class Machine:
    """A folder for --dir, and hooks that run on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder.parent / "work"
        self.work.mkdir()
        (folder / "policies").mkdir(parents=True)
        (folder / "policies" / "deny.toml").write_text(DENY)
        self.configure(ON)

    def configure(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text)
        self.run("policy", "compile", "--dir", str(self.folder))

    @staticmethod
    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "guardhook", *words], input=stdin, capture_output=True, text=True, timeout=60
        )

    def hook(self, event: str, *options: str, **more: object) -> subprocess.CompletedProcess[str]:
        payload = {
            "session_id": SESSION, "transcript_path": "/t", "cwd": str(self.work), "permission_mode": "default", "hook_event_name": event, **more,
        }  # fmt: skip
        return self.run("hook", event, "--dir", str(self.folder), *options, stdin=json.dumps(payload))

    def call(
        self, command: str, *options: str, tool: str = "Bash", number: int = 1
    ) -> subprocess.CompletedProcess[str]:
        return self.hook(
            "PreToolUse", *options, tool_name=tool, tool_input={"command": command}, tool_use_id=f"toolu_{number}"
        )

    def entries(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for path in trail.files_in(str(self.folder / "rollouts")):
            assert trail.verify(path).bad is None
            found += [json.loads(line) for line in Path(path).read_text().splitlines()]
        return found

    def lines(self) -> list[dict[str, object]]:
        return [
            json.loads(line)
            for path in (self.folder / "journal").rglob("*.jsonl")
            for line in path.read_text().splitlines()
        ]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "gh")


def test_a_session_leaves_its_begin_its_actions_and_its_end(machine: Machine) -> None:
    machine.hook("UserPromptSubmit", prompt="tidy up, the key is sk-abcdefghijklmnopqrstuvwxyz")
    machine.call("rm -rf build && export TOKEN=sk-abcdefghijklmnopqrstuvwxyz")
    machine.hook("PreToolUse", tool_name="Read", tool_input={"file_path": "/x"}, tool_use_id="toolu_2")
    machine.hook(
        "PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response="ok", tool_use_id="toolu_1"
    )
    machine.hook("SessionEnd", reason="exit")
    started, action, done = machine.entries()
    assert [e["event_type"] for e in (started, action, done)] == ["run.started", "audit.action", "run.completed"]
    assert started["payload"] == {"prompt": "tidy up, the key is [REDACTED:api_key]"}
    payload = action["payload"]
    assert isinstance(payload, dict)
    assert (payload["tool"], payload["call_id"]) == ("Bash", "toolu_1")
    assert json.loads(payload["arguments"]) == {"command": "rm -rf build && export TOKEN=[REDACTED:api_key]"}
    assert done["payload"] == {"status": "completed"}
    lines = machine.lines()
    assert {e["run_id"] for e in (started, action, done)} == {lines[0]["data"]["run"]}  # type: ignore[index]
    assert payload["seq"] == lines[1]["seq"] and action["timestamp"] == audit.trimmed(str(lines[1]["ts"]))


def test_a_call_that_was_refused_says_so(machine: Machine) -> None:
    assert machine.call("echo GH-DENY", "--enforce").returncode == 2
    *_, action = machine.entries()
    assert action["payload"]["decision"] == "deny" and action["payload"]["mode"] == "enforce"  # type: ignore[index]


def test_it_is_off_unless_asked_for_and_nothing_of_it_is_imported(machine: Machine) -> None:
    machine.configure("")
    machine.call("rm x")
    assert not (machine.folder / "rollouts").exists()
    code = (
        "import sys, posix; from guardhook.gate import hook\n"
        "hook.finish = lambda *a, **k: (print(sorted(m for m in sys.modules if 'audit' in m or 'modifying' in m or m in ('_sha256', 'hashlib'))), posix._exit(0))\n"
        "sys.stdout.reconfigure(line_buffering=True)\n"
        f"hook.main(['PreToolUse', '--dir', {str(machine.folder)!r}])"
    )
    payload = {"session_id": SESSION, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm x"}, "cwd": "/", "tool_use_id": "t",
               "transcript_path": "/t", "permission_mode": "default"}  # fmt: skip
    for config, expected in (
        ("", "[]"),
        (ON, "['_sha256', 'guardhook.journal.audit', 'guardhook.journal.audit_json', 'guardhook.journal.modifying']"),
    ):
        machine.configure(config)
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(payload), capture_output=True, text=True, timeout=60
        )
        assert done.stdout.strip().replace("_sha2'", "_sha256'") == expected, done


def test_a_rollout_folder_of_ones_own(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    machine.configure(
        f'[forensics]\naudit_trail_enabled = true\nrollout_dir = "{folder}"\naudit_exceptions = ["Bash"]\naudit_tools = ["Frob"]\n'
    )
    machine.call("rm x")
    machine.hook("PreToolUse", tool_name="Frob", tool_input={"a": 1}, tool_use_id="toolu_3")
    (path,) = trail.files_in(str(folder))
    found = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert [(e["event_type"], e["payload"].get("tool")) for e in found] == [
        ("run.started", None),
        ("audit.action", "Frob"),
    ]
    said = machine.run("audit", "verify", "--dir", str(machine.folder), "--json")
    assert said.returncode == 0 and json.loads(said.stdout)["files"][0]["entries"] == 2


@pytest.mark.parametrize(("mode", "payload"), [("none", {}), ("full", None), ("hashed", None)])
def test_redaction_modes_never_drop_an_entry(machine: Machine, mode: str, payload: object) -> None:
    machine.configure(ON + f'[capture]\nmode = "{mode}"\n')
    machine.call("rm x")
    started, action = machine.entries()
    if payload is not None:
        assert started["payload"] == action["payload"] == payload
    else:
        arguments = json.loads(action["payload"]["arguments"])  # type: ignore[index]

        assert (arguments["command"] == "rm x") == (mode == "full") and (len(arguments["command"]) == 64) == (
            mode == "hashed"
        )


def test_no_input_keeps_arguments_out(machine: Machine) -> None:
    machine.call("rm secret-name", "--no-input")
    assert "secret-name" not in json.dumps(machine.entries())


@pytest.mark.parametrize("fault", ["a file in its place", "a broken end", "locked", "read-only"])
def test_a_trail_that_cant_be_written_changes_no_decision_and_is_caught_up(machine: Machine, fault: str) -> None:
    machine.call("rm first")
    (path,) = trail.files_in(str(machine.folder / "rollouts"))
    held = None
    before = Path(path).read_bytes()
    if fault == "a file in its place":
        os.rename(machine.folder / "rollouts", machine.folder / "aside")
        (machine.folder / "rollouts").write_text("")
    elif fault == "a broken end":
        Path(path).write_bytes(before + b"{")
    elif fault == "locked":
        held = os.open(path, os.O_RDWR)
        fcntl.flock(held, fcntl.LOCK_EX)
    else:
        if os.geteuid() == 0:
            pytest.skip("root writes everywhere")
        Path(path).chmod(0o400)
    out = machine.call("touch second", "--enforce", number=2)
    assert (out.returncode, out.stdout, out.stderr) == (0, "", "")
    assert machine.call("echo GH-DENY", "--enforce", number=3).returncode == 2
    assert len(os.listdir(machine.folder / audit.MISSED)) == 2
    if held is not None:
        os.close(held)
    elif fault == "a file in its place":
        (machine.folder / "rollouts").unlink()
        os.rename(machine.folder / "aside", machine.folder / "rollouts")
    else:
        Path(path).write_bytes(before)
        Path(path).chmod(0o600)
    machine.call("rm fourth", number=4)
    calls = [e["payload"].get("call_id") for e in machine.entries()]  # type: ignore[attr-defined]
    assert calls == [None, "toolu_1", "toolu_2", "toolu_3", "toolu_4"]
    assert os.listdir(machine.folder / audit.MISSED) == []


@pytest.mark.parametrize("prompt", ["\x01" * 700_000, "\u00e9" * 700_000, "\u2028" * 250_000])
def test_a_prompt_of_any_size_keeps_nothing_after_it_out(machine: Machine, prompt: str) -> None:
    """Its entry was too large to be written, or to be followed, and waited before all others for ever."""
    machine.hook("UserPromptSubmit", prompt=prompt)
    machine.call("rm x")
    started, action = machine.entries()
    assert action["event_type"] == "audit.action" and not os.path.exists(machine.folder / audit.MISSED)
    payload = started["payload"]
    assert isinstance(payload, dict)
    if len(prompt) > 300_000:
        assert set(payload) == {"prompt_sha256", "prompt_bytes"}
    else:
        assert payload["prompt"] == prompt


@pytest.mark.parametrize("what", ["audit", "audit_json", "modifying"])
@pytest.mark.parametrize("mode", ["--enforce", "--observe"])
def test_an_installation_in_pieces_changes_no_decision(machine: Machine, what: str, mode: str) -> None:
    machine.configure(ON)
    code = (
        f"import sys; sys.modules['guardhook.journal.{what}'] = None\n"
        "from guardhook.gate import hook\n"
        f"hook.main(['PreToolUse', '--dir', {str(machine.folder)!r}, *{[mode] if mode == '--enforce' else []!r}])"
    )
    for command, status in (("rm x", 0), ("echo GH-DENY", 2 if mode == "--enforce" else 0)):
        payload = {"session_id": SESSION, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}, "cwd": "/", "tool_use_id": "t",
                   "transcript_path": "/t", "permission_mode": "default"}  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(payload), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == status, done
        assert status or (done.stdout, done.stderr) == ("", "")


def test_a_wrong_setting_is_named_with_its_line(machine: Machine) -> None:
    (machine.folder / "config.toml").write_text(
        '[forensics]\naudit_trail_enabled = true\nrollout_dir = "relative/path"\n'
    )
    out = machine.run("policy", "compile", "--dir", str(machine.folder))
    assert out.returncode != 0 and "config.toml:3: forensics.rollout_dir" in out.stderr


def test_every_day_has_a_chain_of_its_own(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        audit.Log(str(tmp_path), day).append([(f"{day}T00:00:00Z", "r", "x", None)])
    heads = [json.loads(Path(p).read_text())["prev_hash"] for p in trail.files_in(str(tmp_path))]
    assert heads == ["genesis", "genesis"]


def test_a_rollout_folder_that_is_a_link_means_where_it_leads(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to(tmp_path / "real")
    machine.configure(f'[forensics]\naudit_trail_enabled = true\nrollout_dir = "{tmp_path / "named"}"\n')
    machine.call("touch x")
    assert len(trail.files_in(str(tmp_path / "real"))) == 1
