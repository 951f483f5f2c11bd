"""The hook as a process: verdicts in each dialect, and what stays silent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.gate.conftest import Run, claude, codex, gemini, lines


def test_a_harmless_call_is_answered_with_silence(hook: Run) -> None:
    assert hook(claude("ls -la")).silent
    assert hook(codex("ls -la")).silent
    assert hook(gemini("ls -la")).silent


def test_claude_deny_is_json_and_stderr_and_status_2(hook: Run) -> None:
    out = hook(claude("echo GH-DENY"))
    inner = out.json["hookSpecificOutput"]
    assert isinstance(inner, dict)
    assert out.status == 2
    assert inner["hookEventName"] == "PreToolUse"
    assert inner["permissionDecision"] == "deny"
    assert "no-marker" in inner["permissionDecisionReason"]
    assert b"The marker must not be used." in out.stderr
    assert out.stdout.count(b"\n") <= 1


def test_codex_deny_is_stderr_alone(hook: Run) -> None:
    out = hook(codex("echo GH-DENY"))
    assert (out.status, out.stdout) == (2, b"")
    assert b"no-marker" in out.stderr


def test_gemini_deny_has_its_own_word(hook: Run) -> None:
    out = hook(gemini("echo GH-DENY"))
    assert out.json["decision"] == "deny"
    assert out.status == 2
    assert not out.stderr.lstrip().startswith(b"{")


def test_a_review_is_asked_where_the_client_can_ask_and_denied_elsewhere(hook: Run) -> None:
    out = hook(claude("echo GH-ASK"))
    inner = out.json["hookSpecificOutput"]
    assert isinstance(inner, dict)
    assert (out.status, inner["permissionDecision"]) == (0, "ask")
    for payload in (codex("echo GH-ASK"), gemini("echo GH-ASK")):
        denied = hook(payload)
        assert denied.status == 2
        assert b"review" in denied.stderr or b"approve" in denied.stderr


def test_a_warning_lets_the_call_pass(hook: Run) -> None:
    out = hook(claude("echo GH-WARN"))
    assert out.status == 0
    assert "This is noted." in str(out.json["systemMessage"])
    assert hook(codex("echo GH-WARN")).silent


def test_observing_never_says_a_word(hook: Run, place: Path) -> None:
    for payload in (claude("echo GH-DENY"), b"", b"null", b"\xff", b"[1", b"{}"):
        assert hook(payload, "PreToolUse", enforce=False).silent
    assert hook(claude(), "--no-such-flag", enforce=False).silent
    assert any(line["data"]["native_event"] == "PreToolUse" for line in lines(place))  # type: ignore[index]


@pytest.mark.parametrize("event", ["PostToolUse", "Stop", "SessionStart", "SessionEnd", "SubagentStop", "NeverHeardOf"])
def test_events_that_report_are_never_answered(hook: Run, event: str) -> None:
    payload = claude("echo GH-DENY", event)
    if event != "PostToolUse":
        for key in ("tool_name", "tool_input", "tool_use_id"):
            del payload[key]
    else:
        payload["tool_response"] = "x"
    assert hook(payload).silent


def test_the_shipped_policies_judge_with_nothing_configured(hook: Run, tmp_path: Path) -> None:
    empty = tmp_path / "fresh"
    empty.mkdir()
    assert hook(claude("rm -rf ~/"), directory=empty).status == 2
    assert hook(claude("ls"), directory=empty).silent
    recorded = lines(empty)
    assert [line["data"]["verdict"]["action"] for line in recorded] == ["deny", "allow"]  # type: ignore[index]


def test_the_verdict_and_its_reasons_are_recorded(hook: Run, place: Path) -> None:
    hook(claude("echo GH-DENY"))
    (line,) = lines(place)
    data = line["data"]
    assert isinstance(data, dict)
    verdict = data["verdict"]
    assert (line["type"], data["v"], data["dialect"], data["event"]) == ("hook.received", 1, "claude-code", "pre_tool")
    assert (verdict["action"], verdict["policy"]) == ("deny", "no-marker")
    assert "gh-deny" in verdict["span"].lower()
    assert verdict["set"] and verdict["us"] >= 0
    assert verdict["answer"]["exit"] == 2
    assert data["run"].startswith("run_")


def test_no_input_strips_every_echo(hook: Run, place: Path) -> None:
    out = hook(claude("echo GH-DENY unique-words-here"), "--no-input")
    assert out.status == 2
    hook(claude("echo GH-DENY unique-words-here", "PostToolUse", tool_response="unique-words-here"), "--no-input")
    text = "".join(path.read_text() for path in (place / "journal").rglob("*.jsonl"))
    assert text and "unique-words-here" not in text and "GH-DENY" not in text


def test_keys_inside_the_tool_input_do_not_steer_recognition(hook: Run) -> None:
    payload = codex("echo GH-DENY")
    payload["tool_input"] = {"command": "echo GH-DENY", "hook_event_name": "BeforeTool", "timestamp": "2026-01-01"}
    out = hook(payload, "PreToolUse", "--dialect", "codex")
    assert (out.status, out.stdout) == (2, b"")


@pytest.mark.parametrize(
    ("name", "argument"), [("tool.before", "PreToolUse"), ("PreToolUse ", "PreToolUse"), ("pretooluse", "PreToolUse")]
)
def test_an_unroutable_event_name_yields_to_the_argument(hook: Run, name: str, argument: str) -> None:
    out = hook(claude("echo GH-DENY", name), argument, "--dialect", "claude-code")
    inner = out.json["hookSpecificOutput"]
    assert isinstance(inner, dict)
    assert (out.status, inner["hookEventName"]) == (2, "PreToolUse")


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString"])
def test_names_of_object_methods_are_unknown_events(hook: Run, name: str) -> None:
    payload = claude("x", name)
    for key in ("tool_name", "tool_input", "tool_use_id"):
        del payload[key]
    assert hook(payload, "--dialect", "claude-code").silent


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "auto", "never-heard-of", 7, None])
def test_the_permission_mode_does_not_change_a_deny(hook: Run, mode: object) -> None:
    assert hook(claude("echo GH-DENY", permission_mode=mode)).status == 2
    assert hook(claude("echo fine", permission_mode=mode)).silent


def test_a_project_may_tighten_but_never_loosen(hook: Run, tmp_path: Path) -> None:
    project = tmp_path / "repo"
    (project / ".guardhook" / "policies").mkdir(parents=True)
    (project / ".guardhook" / "policies" / "own.toml").write_text(
        '[[policy]]\nname = "local"\naction = "deny"\nreason = "Not in this project, says SECRETTEXT."\n'
        'match = { input_contains = "local-word" }\n'
        '[[policy]]\nname = "loosen"\naction = "allow"\npriority = 1000\nmatch = { input_contains = "GH-DENY" }\n'
    )
    out = hook(claude("echo local-word", cwd=str(project)))
    assert out.status == 2
    # The repository's own words reach the model only once a person trusts them.
    assert b"SECRETTEXT" not in out.stdout + out.stderr
    assert b"project policy" in out.stderr
    assert hook(claude("echo GH-DENY", cwd=str(project))).status == 2
    assert hook(claude("echo local-word", cwd=str(tmp_path), session_id="other")).silent


def test_a_broken_project_file_does_not_stop_its_user(hook: Run, tmp_path: Path) -> None:
    project = tmp_path / "repo"
    (project / ".guardhook" / "policies").mkdir(parents=True)
    (project / ".guardhook" / "policies" / "broken.toml").write_text("[[policy\n")
    assert hook(claude("echo fine", cwd=str(project))).silent
    assert hook(claude("echo GH-DENY", cwd=str(project))).status == 2


def test_the_project_of_a_session_stays_pinned(hook: Run, tmp_path: Path) -> None:
    project = tmp_path / "repo"
    (project / ".guardhook" / "policies").mkdir(parents=True)
    (project / ".guardhook" / "policies" / "own.toml").write_text(
        '[[policy]]\nname = "local"\naction = "deny"\nmatch = { input_contains = "local-word" }\n'
    )
    assert hook(claude("echo first", cwd=str(project))).silent
    # The agent walks away from its project: the project's policies come along.
    assert hook(claude("echo local-word", cwd="/tmp")).status == 2


def test_a_broken_user_file_blocks_and_is_named(hook: Run, place: Path) -> None:
    (place / "policies" / "zz.toml").write_text('[[policy]]\nname = "x"\nactoin = "deny"\n')
    out = hook(claude("ls"))
    assert out.status == 2
    assert b"zz.toml" in out.stderr and b"actoin" in out.stderr


def test_a_changed_policy_counts_at_once(hook: Run, place: Path) -> None:
    assert hook(claude("echo new-word")).silent
    (place / "policies" / "more.toml").write_text(
        '[[policy]]\nname = "more"\naction = "deny"\nmatch = { input_contains = "new-word" }\n'
    )
    assert hook(claude("echo new-word")).status == 2
    (place / "policies" / "more.toml").unlink()
    assert hook(claude("echo new-word")).silent


def test_observe_preset_records_and_never_blocks(hook: Run, place: Path) -> None:
    (place / "config.toml").write_text('[gate]\npreset = "observe"\n')
    assert hook(claude("echo GH-DENY")).silent
    (line,) = lines(place)
    verdict = line["data"]["verdict"]  # type: ignore[index]
    assert (verdict["action"], verdict["mode"]) == ("deny", "observe")


def test_the_canary_is_denied_and_marked(hook: Run, place: Path) -> None:
    out = hook(claude("guardhook-canary --deny", canary=True))
    assert out.status == 2
    assert lines(place)[0]["data"]["canary"] is True  # type: ignore[index]


def test_a_settings_change_that_removes_the_gate_is_blocked(hook: Run, place: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    launcher = str(place / "bin" / "claude-code.enforce")
    (place / "registrations").write_text(f"claude-code\tuser\t{settings}\n")

    def change() -> int:
        event = claude("", "ConfigChange", source="user_settings", file_path=str(settings))
        for key in ("tool_name", "tool_input", "tool_use_id"):
            del event[key]
        return hook(event).status

    handler = {"type": "command", "command": launcher, "args": ["PreToolUse"], "timeout": 10, "onFailure": "block"}
    entry = {"hooks": {"PreToolUse": [{"hooks": [handler]}]}}
    settings.write_text(json.dumps(entry))
    assert change() == 0
    settings.write_text(json.dumps({**entry, "theme": "dark"}))
    assert change() == 0
    settings.write_text(json.dumps({**entry, "disableAllHooks": True}))
    assert change() == 2
    settings.write_text(json.dumps({"hooks": {}}))
    assert change() == 2
    settings.write_text("{")
    assert change() == 2
    settings.unlink()
    assert change() == 2
    os.mkfifo(settings)
    assert change() == 2


def test_a_settings_change_that_only_hollows_the_gate_out_is_blocked(place: Path, tmp_path: Path) -> None:
    """The launcher's path still stood in the file, so each of these was let through."""
    from guardhook.core.event import Event
    from guardhook.gate import configchange

    settings = tmp_path / "settings.json"
    launcher = f"{place}/bin/claude-code."
    handler = {"type": "command", "command": launcher + "enforce", "args": ["PreToolUse"], "onFailure": "block"}
    rows = f"claude-code\tuser\t{settings}\n"

    def objects(hooks: object, path: Path = settings, registered: str = rows) -> bool:
        (place / "registrations").write_text(registered)
        settings.write_text(json.dumps({"hooks": hooks}))
        event = Event("claude-code", "ConfigChange", "config_change", {"file_path": str(path)})
        return configchange.judge(event, str(place)) is not None

    def group(more: dict[str, object], **around: object) -> object:
        return {"PreToolUse": [{"hooks": [{**handler, **more}], **around}]}

    assert not objects(group({}))
    assert not objects(group({"timeout": 10}, matcher="*"))
    for change in (
        group({}, matcher="Nothing"),
        group({"command": launcher + "observe"}),
        group({"command": "/bin/true # " + launcher + "enforce"}),
        group({"command": launcher + "enforce; true"}),
        group({"args": ["Stop"]}),
        group({"if": "Bash(never *)"}),
        group({"async": True}),
        group({"onFailure": "continue"}),
        {"PreToolUse": [{"hooks": [{k: v for k, v in handler.items() if k != "onFailure"}]}]},
        {"PostToolUse": [{"hooks": [handler]}]},
        # These make the client drop the whole file, our entry with it.
        {"PreToolUse": [{"hooks": [handler]}, {"type": "command", "command": "x"}]},
        {"PreToolUse": [{"hooks": [handler, {"type": "unknown"}]}]},
        {"PreToolUse": [{"hooks": [handler, {"type": "command", "command": "x", "timeout": 0}]}]},
        {"PreToolUse": [{"hooks": [handler]}], "PermissionRequest": [{"hooks": [{"type": "command"}]}]},
        {"PreToolUse": [{"hooks": [handler]}, {"matcher": 3, "hooks": []}]},
        {"PreToolUse": {"hooks": [handler]}},
    ):
        assert objects(change), change
    # By another name of the same file, and beside a registration that only observes.
    (tmp_path / "link").symlink_to(tmp_path)
    assert objects(group({"args": ["Stop"]}), tmp_path / "link" / "settings.json")
    assert not objects(group({"command": launcher + "observe"}), registered=rows + "claude-code\tproject\t/x\n")
