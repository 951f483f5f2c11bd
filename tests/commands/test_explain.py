"""`guardhook explain`: everything about a call, with nothing run and nothing recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands_rig import at_terminal, environment, plain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardhook.commands.explain_tree import lines, parse
from guardhook.commands.explained import HARNESSES, as_data, explain, in_dialect
from guardhook.core.event import Event
from guardhook.core.folders import Folders, explicit
from guardhook.dialects import tools
from guardhook.policy import compile as compiler

POLICIES = """
[[policy]]
name = "no-frob"
action = "deny"
reason = "Frobbing loses data."
suggest = "Use defrob."
match = { effect = "run", program = "frob", argument = "--hard" }
unless = { argument = "--dry-run" }

[[policy]]
name = "ask-marker"
action = "require_review"
reason = "A person looks."
match = { input_contains = "GH-ASK" }

[[policy]]
name = "only-gemini"
action = "deny"
reason = "Not here."
match = { harness = "gemini", input_contains = "GH-GEMINI" }

[[policy]]
name = "no-frob-files"
action = "deny"
reason = "Frob files stay."
match = { effect = "write", path = "/frob/**" }

[[policy]]
name = "both-needles"
action = "deny"
match = { input_contains = "ALPHA", input_regex = "BETA[0-9]" }
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "gh"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "mine.toml").write_text(POLICIES)
    return folder


@pytest.fixture
def env(scratch_home: Path, place: Path) -> dict[str, str]:
    return environment(scratch_home, GUARDHOOK_DIR=str(place))


@pytest.fixture
def folders(place: Path) -> Folders:
    found = explicit(str(place))
    compiler.write(compiler.compile_main(found))
    return found


def bash(command: str) -> Event:
    event = Event("claude-code", "PreToolUse", "pre_tool", {})
    event.tool, event.input, event.cwd = "Bash", {"command": command}, "/home/user/project"
    tools.fill(event)
    return event


def told(env: dict[str, str], *words: str, stdin: bytes = b"") -> dict[str, Any]:
    ran = plain(["explain", "--json", *words], env, stdin=stdin)
    assert ran.status == 0, ran
    value = json.loads(ran.stdout)
    assert isinstance(value, dict)
    return value


def test_a_denied_command(env: dict[str, str], place: Path) -> None:
    before = sorted(p.name for p in place.rglob("*"))
    found = told(env, "cd src && frob --hard x", "--cwd", "/home/user/project")
    assert (found["ok"], found["v"]) == (True, 1)
    assert found["verdict"]["action"] == "deny"
    assert found["verdict"]["policy"] == "no-frob"
    (match,) = found["matched"]
    assert (match["layer"], match["suggest"]) == ("user", "Use defrob.")
    effect = found["effects"][match["effect"]]
    assert (effect["kind"], effect["program"], effect["argv"]) == ("run", "frob", ["--hard", "x"])
    start, end = effect["span"]
    assert effect["excerpt"] == "cd src && frob --hard x"[start:end] == "frob --hard x"
    tree = found["commands"][0]["parse"]["tree"]
    assert [c["text"] for c in tree["children"]] == ["cd src", "frob --hard x"]
    assert sorted(p.name for p in place.rglob("*")) == before  # nothing compiled, nothing recorded


def test_each_harness_is_answered_in_its_own_way(env: dict[str, str]) -> None:
    answers = {a["harness"]: a for a in told(env, "echo GH-ASK")["answers"]}
    assert tuple(answers) == HARNESSES
    assert (answers["claude-code"]["exit"], '"ask"' in answers["claude-code"]["stdout"]) == (0, True)
    for harness in ("codex", "gemini", "other"):
        assert answers[harness]["exit"] == 2
        assert "ask-marker" in answers[harness]["stderr"]
    assert '"decision":"deny"' in answers["gemini"]["stdout"]
    assert answers["codex"]["stdout"] == ""


def test_policies_for_one_harness_show_in_its_answer(env: dict[str, str]) -> None:
    found = told(env, "echo GH-GEMINI")
    assert found["verdict"]["action"] == "allow"
    actions = {a["harness"]: a["action"] for a in found["answers"]}
    assert actions == {h: "deny" if h == "gemini" else "allow" for h in HARNESSES}
    assert told(env, "echo GH-GEMINI", "--dialect", "gemini")["verdict"]["policy"] == "only-gemini"


def test_the_answers_are_those_of_the_hook(folders: Folders, place: Path, env: dict[str, str]) -> None:
    """What explain says claude-code is told is byte for byte what the hook writes."""
    payload = {
        "session_id": "s1",
        "transcript_path": "/home/u/.claude/projects/-p/s1.jsonl",
        "cwd": "/tmp",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "frob --hard"},
        "tool_use_id": "t1",
    }
    data = json.dumps(payload).encode()
    (said, *_) = told(env, "-", stdin=data)["answers"]
    ran = plain(["hook", "--enforce", "--dir", str(place)], env, stdin=data)
    assert (said["harness"], said["exit"], said["stdout"], said["stderr"]) == (
        "claude-code",
        ran.status,
        ran.stdout,
        ran.stderr,
    )


@pytest.mark.parametrize(
    ("command", "policy", "missing", "excused"),
    [
        ("frob --hard --dry-run", "no-frob", None, "unless"),
        ("frob --soft", "no-frob", "argument=--hard", None),
        ("echo ALPHA BETA", "both-needles", "input matches /BETA[0-9]/", None),
        ("echo BETA1", "both-needles", "input contains 'ALPHA'", None),
    ],
)
def test_near_misses_say_what_was_missing(
    folders: Folders, command: str, policy: str, missing: str | None, excused: str | None
) -> None:
    found = as_data(explain(folders, bash(command)))
    near = next(n for n in found["nearly"] if n["policy"] == policy)
    assert (near["missing"], near["excused"]) == (missing, excused)
    assert policy not in [m["policy"] for m in found["matched"]]


def test_a_plain_command_is_near_to_nothing(folders: Folders) -> None:
    found = as_data(explain(folders, bash("ls -la")))
    assert [n for n in found["nearly"] if n["layer"] == "user"] == []


def test_an_exception_is_named(folders: Folders, place: Path) -> None:
    (place / "exceptions.toml").write_text(
        '[[exception]]\npolicy = "ask-marker"\nreason = "known"\nexpires = 2999-01-01\n'
        'match = { input_contains = "GH-ASK me" }\n'
    )
    found = as_data(explain(folders, bash("echo GH-ASK me")))
    assert found["verdict"]["action"] == "allow"
    assert next(n for n in found["nearly"] if n["policy"] == "ask-marker")["excused"] == "exception"


def test_other_tools(env: dict[str, str]) -> None:
    found = told(env, "--tool", "write_file", "/frob/x")
    assert found["event"]["kind"] == "file_write"
    assert found["files"] == [{"op": "write", "path": "/frob/x"}]
    assert found["verdict"]["policy"] == "no-frob-files"
    given = json.dumps({"file_path": "/frob/y", "content": "c"})
    assert told(env, "--tool", "Write", "--input", given)["verdict"]["policy"] == "no-frob-files"
    assert told(env, "--tool", "WebFetch", "https://example.org/x")["urls"] == ["https://example.org/x"]


def test_payloads_on_stdin(env: dict[str, str]) -> None:
    gemini = {
        "session_id": "x",
        "transcript_path": "/home/dev/.gemini/tmp/proj/chats/session-1.jsonl",
        "cwd": "/tmp",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-30T00:33:03.976Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "echo GH-GEMINI"},
    }
    found = told(env, "-", stdin=json.dumps(gemini).encode())
    assert (found["event"]["dialect"], found["verdict"]["policy"]) == ("gemini", "only-gemini")
    assert sorted(a["harness"] for a in found["answers"]) == sorted(HARNESSES)
    after = {**gemini, "hook_event_name": "AfterTool", "tool_response": {}}
    found = told(env, "-", stdin=json.dumps(after).encode())
    assert found["verdict"] is None
    assert all((a["exit"], a["stdout"], a["stderr"]) == (0, "", "") for a in found["answers"])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--tool", "Write"],
        ["--tool", "mcp__a__b", "x"],
        ["--tool", "Write", "--input", "{"],
        ["--tool", "Write", "--input", "[]"],
        ["--tool", "Write", "--input", "{}", "also"],
        ["--input", "{}"],
        ["--tool", " ", "x"],
        ["ls", "--dialect", "nobody"],
        ["-"],
        ["--no-such-flag"],
        ["two", "commands"],
    ],
)
def test_wrong_words_are_usage_errors(env: dict[str, str], words: list[str]) -> None:
    assert plain(["explain", *words], env).status == 2


def test_a_broken_policy_file_is_the_verdict(env: dict[str, str], place: Path) -> None:
    (place / "policies" / "bad.toml").write_text("[[policy]]\nname = 1\n")
    found = told(env, "ls -la /frob")
    assert (found["verdict"]["action"], found["verdict"]["cause"]) == ("deny", "policies")
    assert "bad.toml:2" in found["verdict"]["reason"]
    assert found["effects"]
    assert all(a["action"] == "deny" for a in found["answers"])


def test_what_does_not_parse_is_said(env: dict[str, str]) -> None:
    found = told(env, "echo 'never closed")
    assert found["commands"][0]["parse"]["ok"] is False
    assert any(e["kind"] == "unverified" for e in found["effects"])
    assert "not understood" in plain(["explain", "echo 'never closed"], env).stdout


def test_nothing_is_executed(env: dict[str, str], tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    for command in (f"touch {marker}", f"echo $(touch {marker})", f"sh -c 'touch {marker}'"):
        assert plain(["explain", command], env, cwd=tmp_path).status == 0
    assert not marker.exists()


EVIL = "frob --hard '\x1b[2J\x1b]0;title\x07' \u202e\u200b [bold]x[/bold] :smile: \r \u009b31m"


def test_the_page_for_a_person(env: dict[str, str]) -> None:
    out = plain(["explain", "frob --hard; for i in 1 2; do echo $(date) | cat > /frob/x; done"], env).stdout
    assert all(len(line) <= 80 and line == line.rstrip() for line in out.splitlines())
    assert "\x1b" not in out
    for title in ("Parse tree", "Effects", "Policies that match", "Verdict", "Answers"):
        assert f"\n{title}\n" in out
    assert "deny by no-frob" in out
    assert "Use defrob." in out


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_of_the_call_reaches_the_terminal_raw(env: dict[str, str], terminal: bool) -> None:
    ran = plain(["explain", EVIL], env)
    raw = ran.stdout
    if terminal:
        raw = at_terminal(
            [],
            {**env, "TERM": "xterm"},
            code=f"import os, sys; fd = os.open('/dev/tty', os.O_RDWR); os.dup2(fd, 1); sys.argv = ['g', 'explain', {EVIL!r}];"
            "from guardhook.__main__ import main; main()",
        ).screen
        assert "\x1b[" in raw  # our own colours
        for code in ("\x1b[2J", "\x1b]0"):
            assert code not in raw
    else:
        assert "\x1b" not in raw
    for bad in ("\x07", "\u202e", "\u200b", "\u009b"):
        assert bad not in raw
    assert "[bold]" in raw
    assert ":smile:" in raw


def test_json_with_bytes_that_are_no_text(env: dict[str, str]) -> None:
    found = told(env, os.fsdecode(b"echo \xff\xfe"))
    assert found["commands"][0]["text"] == "echo \udcff\udcfe"
    assert plain(["explain", os.fsdecode(b"echo \xff\xfe")], env).status == 0


def test_a_paused_guard_is_said(folders: Folders, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardhook.gate import pause

    (place / "pause").write_text("")
    monkeypatch.setattr(pause, "current", lambda folder: pause.Pause(0, 0, 1))
    found = as_data(explain(folders, bash("frob --hard")))
    assert (found["verdict"]["mode"], found["verdict"]["action"]) == ("paused", "warn")
    assert any("paused" in note for note in found["notes"])


def test_guard_commands_are_changes_of_the_guard(folders: Folders) -> None:
    for command in (
        "guardhook pause 10m",
        "sudo guardhook trust .",
        "env -i guardhook uninstall",
        "sh -c 'guardhook pause 1h'",
    ):
        found = as_data(explain(folders, bash(command)))
        assert any(e["kind"] == "guard_change" for e in found["effects"]), command


def test_the_tree_keeps_every_kind_of_node() -> None:
    text = (
        "a=1 x $(y `z`) <(w) | (sub; { g; }) && if c; then d; else e; fi; while f; do h; done\n"
        "for i in 1 $(j); do k; done; case $l in m) n;; *) o;; esac; fn() { p; }; [[ -n $(q) ]]; cat <<E\n$(r)\nE\n"
    )
    result = parse(text)
    assert result["ok"] is True
    seen: list[str] = []
    types: set[str] = set()

    def walk(node: dict[str, Any]) -> None:
        types.add(node["type"])
        if node["type"] == "command":
            seen.extend(w["literal"] for w in node["words"][:1])
        start, end = node["span"]
        assert text[start:end] == node["text"]
        for redirect in node.get("redirects", ()):
            for child in redirect.get("children", ()):
                walk(child)
        for child in node["children"]:
            walk(child)

    walk(result["tree"])
    assert set("xyzwgcdefhjknopqr") | {"sub", "cat"} <= set(seen)
    assert {"pipeline", "subshell", "group", "if", "while", "for", "case", "function", "test", "substitution"} <= types
    assert len(lines(result["tree"])) > 20


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.text("abc $(){}<>|&;'\"`\\\n[]=*?~-!#", max_size=40))
def test_any_text_is_explained(folders: Folders, command: str) -> None:
    found = as_data(explain(folders, bash(command)))
    assert json.loads(json.dumps(found)) == found
    for number, effect in enumerate(found["effects"]):
        if effect["span"] is not None:
            assert isinstance(effect["excerpt"], str), number


def test_the_same_call_in_another_dialect_keeps_everything_else() -> None:
    event = bash("ls")
    copy = in_dialect(event, "gemini")
    assert (copy.dialect, copy.native_event, copy.tool) == ("gemini", "BeforeTool", "run_shell_command")
    assert (copy.commands, copy.input, copy.cwd, copy.kind) == (event.commands, event.input, event.cwd, event.kind)
