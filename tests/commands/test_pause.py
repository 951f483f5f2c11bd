"""`guardhook pause`: who may, what it weakens, and what it never does."""

from __future__ import annotations

import json
import os
import posix
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands_rig import REAL, at_terminal, environment, plain

from guardhook.commands import person
from guardhook.commands.person import Process
from guardhook.core.effect import Effect
from guardhook.core.verdict import Match, Verdict
from guardhook.gate import pause

pytestmark = pytest.mark.skipif(not os.path.exists(pause.BOOT_ID), reason="no boot id: a pause is never believed here")

POLICIES = """
[[policy]]
name = "mine-deny"
action = "deny"
reason = "Mine."
match = { input_contains = "MINE-DENY" }

[[policy]]
name = "mine-ask"
action = "require_review"
reason = "Asked."
match = { input_contains = "MINE-ASK" }
"""
PROJECT = """
[[policy]]
name = "theirs"
action = "deny"
reason = "Theirs."
match = { input_contains = "THEIRS" }
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "gh"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "mine.toml").write_text(POLICIES)
    folder.chmod(0o700)
    return folder


@pytest.fixture
def env(scratch_home: Path, place: Path) -> dict[str, str]:
    return environment(scratch_home, GUARDHOOK_DIR=str(place))


def hook(place: Path, payload: object, cwd: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    # Being too slow to compile is a block that is right on a crowded machine, and not what these tests are about.
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-m", "guardhook", "hook", "--enforce", "--dir", str(place), *words],
            input=data,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        )
        if b"compiling the policies took longer" not in done.stderr:
            break
    return done


def call(command: str, cwd: Path, event: str = "PreToolUse") -> dict[str, object]:
    payload: dict[str, object] = {
        "session_id": "s1",
        "transcript_path": "/home/u/.claude/projects/-p/s1.jsonl",
        "cwd": str(cwd),
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "t1",
    }
    if event == "PostToolUse":
        payload["tool_response"] = {"stdout": ""}
    return payload


def lines(place: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted((place / "journal").rglob("*.jsonl")):
        found += [json.loads(line)["data"] for line in path.read_text().splitlines()]
    return found


# --- the command ---------------------------------------------------------------------------------------------------


def test_a_person_pauses_looks_and_ends(place: Path, env: dict[str, str]) -> None:
    begun = at_terminal(["pause", "10m", "--json"], env)
    assert begun.status == 0, begun
    told = json.loads(begun.stdout)
    assert told["paused"] is True
    assert 0 < told["seconds_left"] <= 600
    assert "Type `" not in begun.stdout + begun.stderr  # only the terminal shows the phrase
    info = os.stat(place / "pause")
    assert info.st_mode & 0o077 == (0o044 if os.geteuid() == 0 else 0)
    assert json.loads(plain(["pause", "--status", "--json"], env).stdout)["paused"] is True
    ended = plain(["pause", "--end", "--json"], env)
    assert (ended.status, json.loads(ended.stdout)["paused"]) == (0, False)
    assert not (place / "pause").exists()
    assert [p.name for p in place.iterdir() if "pause" in p.name] == []


@pytest.mark.parametrize("given", ["", "no\n", "yes\n", "\n", "pause for 10 minutes\n", "\x04"])
def test_anything_but_the_phrase_changes_nothing(place: Path, env: dict[str, str], given: str) -> None:
    ran = at_terminal(["pause", "10m"], env, lambda phrase: given or phrase[:-1] + "\n")
    assert ran.status == 2, ran
    assert not (place / "pause").exists()


def test_stdin_is_not_the_terminal(place: Path, env: dict[str, str]) -> None:
    ran = at_terminal(["pause", "10m"], env, lambda phrase: "\n", stdin="pause for 10 minutes 1234\n" * 5)
    assert ran.status == 2
    assert not (place / "pause").exists()


def test_what_was_typed_ahead_does_not_count(place: Path, env: dict[str, str]) -> None:
    guesses = "".join(f"pause for 10 minutes {n}\n" for n in range(1000, 1100))
    ran = at_terminal(["pause", "10m"], env, lambda phrase: "\n", ahead=guesses)
    assert ran.status == 2
    assert not (place / "pause").exists()


def test_no_terminal_no_pause(place: Path, env: dict[str, str]) -> None:
    ran = plain(["pause", "10m", "--json"], env)
    assert ran.status == 2
    assert json.loads(ran.stdout)["ok"] is False
    assert not (place / "pause").exists()


@pytest.mark.parametrize(
    "mark", ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "GEMINI_CLI", "CODEX_SANDBOX", "CURSOR_TRACE_ID"]
)
def test_refused_in_the_environment_of_a_harness(place: Path, env: dict[str, str], mark: str) -> None:
    ran = at_terminal(["pause", "10m"], {**env, mark: "1"})
    assert ran.status == 2
    assert mark in ran.stderr
    assert "Type `" not in ran.screen
    assert not (place / "pause").exists()


def test_refused_below_a_real_process_of_a_harness(place: Path, env: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "claude"
    shell = shutil.which("bash") or shutil.which("sh")
    assert shell
    program.symlink_to(shell)
    code = (
        "import subprocess, sys;"
        f"sys.exit(subprocess.call([{str(program)!r}, '-c', '\"$0\" -m guardhook pause 10m; exit $?', {sys.executable!r}]))"
    )
    ran = at_terminal([], env, code=code)
    assert ran.status == 2, ran
    assert "claude" in ran.stderr
    assert not (place / "pause").exists()


def test_the_real_ancestors_are_asked(place: Path, env: dict[str, str]) -> None:
    """Without the tests' replacement, the answer follows from what this test itself runs below."""
    try:
        person.ensure(env)
    except person.NotAPerson:
        expected = 2
    else:
        expected = 0
    assert at_terminal(["pause", "10m"], env, code=REAL).status == expected


@pytest.mark.parametrize("words", [["61m"], ["0m"], ["-5m"], ["2h"], ["ten"], ["1e3"], ["٣m"], [], ["5m", "--end"]])
def test_wrong_words_are_usage_errors(place: Path, env: dict[str, str], words: list[str]) -> None:
    ran = at_terminal(["pause", *words], env)
    assert ran.status == 2
    assert not (place / "pause").exists()


def test_a_folder_that_is_a_link_is_refused(place: Path, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    ran = at_terminal(["pause", "10m", "--dir", str(tmp_path / "link")], env)
    assert ran.status == 2
    assert not (place / "pause").exists()


# --- what it does to hooks ------------------------------------------------------------------------------------------


def test_reviews_and_own_policies_pass_and_the_rest_stays(place: Path, env: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "repo"
    (project / ".guardhook" / "policies").mkdir(parents=True)
    (project / ".guardhook" / "policies" / "p.toml").write_text(PROJECT)

    def answers() -> dict[str, int]:
        commands = ("echo MINE-DENY", "echo THEIRS", "rm -rf /", "guardhook uninstall")
        return {c: hook(place, call(c, project), project).returncode for c in commands}

    assert answers() == {"echo MINE-DENY": 2, "echo THEIRS": 2, "rm -rf /": 2, "guardhook uninstall": 2}
    assert b'"ask"' in hook(place, call("echo MINE-ASK", project), project).stdout
    before = len(lines(place))
    assert at_terminal(["pause", "10m"], env).status == 0
    assert answers() == {"echo MINE-DENY": 0, "echo THEIRS": 2, "rm -rf /": 2, "guardhook uninstall": 2}
    asked = hook(place, call("echo MINE-ASK", project), project)
    assert asked.returncode == 0
    assert b'"ask"' not in asked.stdout
    assert hook(place, call("ls", project, "PostToolUse"), project).returncode == 0
    assert hook(place, b"{not json", project).returncode == 2
    paused = lines(place)[before:]
    assert len(paused) == 7
    assert all(line.get("paused") is True for line in paused)
    verdicts = [line["verdict"] for line in paused if line["verdict"]]
    assert {v["mode"] for v in verdicts} == {"paused"}
    assert sorted(v["cause"] for v in verdicts) == ["payload", *["policy"] * 5]
    assert next(v for v in verdicts if v["policy"] == "mine-deny")["action"] == "warn"
    assert plain(["pause", "--end"], env).status == 0
    assert answers()["echo MINE-DENY"] == 2
    assert sum("paused" in line for line in lines(place)) == 7


# --- the file -------------------------------------------------------------------------------------------------------


def verdict_of(*matches: Match) -> Verdict:
    best = max(matches, key=lambda m: ["allow", "warn", "require_review", "deny"].index(m.action))
    verdict = Verdict(best.action, best.reason, best.policy)
    verdict.matches = list(matches)
    verdict.layer = best.layer
    return verdict


def match(action: str, layer: str, name: str = "p", effect: object = None) -> Match:
    return Match(name, action, layer, "because", "", "why", effect=effect)


def begin(folder: Path, *, offset: int = 0, seconds: int = 600, **change: str) -> Path:
    now = pause.boot_time() + offset * 1_000_000_000
    text = pause.render(os.geteuid(), now, now + seconds * 1_000_000_000).decode()
    for key, value in change.items():
        text = "\n".join(f"{key}={value}" if line.startswith(key + "=") else line for line in text.split("\n"))
    path = folder / "pause"
    path.write_text(text)
    path.chmod(0o600)
    return path


def held(folder: Path) -> bool:
    verdict = pause.weaken(verdict_of(match("require_review", "shipped")), str(folder))
    assert (verdict.action == "warn") == (verdict.mode == "paused")
    return verdict.mode == "paused"


def test_a_whole_file_holds(place: Path) -> None:
    assert not held(place)
    begin(place)
    assert held(place)


@pytest.mark.parametrize(
    "change",
    [
        {"boot": "00000000-0000-0000-0000-000000000000"},
        {"boot": ""},
        {"owner": "4242"},
        {"owner": "x"},
        {"end": "99999999999999999999"},
        {"end": "0"},
        {"end": "-1"},
        {"start": "١"},
        {"start": ""},
    ],
)
def test_a_changed_file_does_not_hold(place: Path, change: dict[str, str]) -> None:
    begin(place, **change)
    assert not held(place)


def test_an_old_one_a_future_one_and_a_long_one_do_not_hold(place: Path) -> None:
    for start, seconds in ((-700, 600), (5, 600), (0, pause.MOST + 1), (-3000, 3601)):
        begin(place, offset=start, seconds=seconds)
        assert not held(place), (start, seconds)
    begin(place, offset=-1000, seconds=pause.MOST)
    assert held(place)


def damage_cut(path: Path, tmp: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage_more(path: Path, tmp: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x\n")


def damage_bytes(path: Path, tmp: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"guardhook", b"guardh\xff\xffk"))


def damage_empty(path: Path, tmp: Path) -> None:
    path.write_bytes(b"")


def damage_link(path: Path, tmp: Path) -> None:
    path.rename(tmp / "elsewhere")
    path.symlink_to(tmp / "elsewhere")


def damage_hard_link(path: Path, tmp: Path) -> None:
    os.link(path, tmp / "second")


def damage_writable(path: Path, tmp: Path) -> None:
    path.chmod(0o622)


def damage_folder_writable(path: Path, tmp: Path) -> None:
    path.parent.chmod(0o777)


def damage_pipe(path: Path, tmp: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def damage_directory(path: Path, tmp: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


DAMAGES = [v for k, v in sorted(globals().items()) if k.startswith("damage_")]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
def test_damage_ends_the_pause(place: Path, tmp_path: Path, damage: Callable[[Path, Path], None]) -> None:
    damage(begin(place), tmp_path)
    assert not held(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_another_users_file_does_not_hold(place: Path) -> None:
    os.chown(begin(place), 12345, -1)
    assert not held(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_in_a_folder_of_roots_only_root_pauses(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = begin(place, owner="12345")
    os.chown(path, 12345, -1)
    monkeypatch.setattr(posix, "geteuid", lambda: 12345)
    assert not held(place)
    os.chown(place, 12345, -1)
    assert held(place)
    monkeypatch.setattr(pause, "system_scope", lambda: True)
    assert not held(place)
    begin(place, owner="0")
    os.chown(path, 0, -1)
    assert held(place)


# --- the verdict ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matches", "action"),
    [
        ([match("deny", "user")], "warn"),
        ([match("require_review", "user")], "warn"),
        ([match("require_review", "shipped")], "warn"),
        ([match("require_review", "project")], "warn"),
        ([match("deny", "shipped")], "deny"),
        ([match("deny", "system")], "deny"),
        ([match("deny", "project")], "deny"),
        ([match("deny", "user", "a"), match("deny", "shipped", "b")], "deny"),
        ([match("require_review", "shipped", "a"), match("deny", "project", "b")], "deny"),
        ([match("warn", "shipped")], "warn"),
        ([match("require_review", "shipped", effect=Effect("guard_change"))], "require_review"),
        ([match("deny", "user", effect=Effect("guard_change"))], "deny"),
    ],
)
def test_what_is_weakened(place: Path, matches: list[Match], action: str) -> None:
    begin(place)
    verdict = pause.weaken(verdict_of(*matches), str(place))
    assert (verdict.action, verdict.mode) == (action, "paused")
    assert verdict.matches == matches  # the record still tells everything


def test_reviews_of_the_system_layer_need_roots_pause(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause, "current", lambda folder: pause.Pause(1000, 0, 1))
    assert pause.weaken(verdict_of(match("require_review", "system")), str(place)).action == "require_review"
    monkeypatch.setattr(pause, "current", lambda folder: pause.Pause(0, 0, 1))
    assert pause.weaken(verdict_of(match("require_review", "system")), str(place)).action == "warn"


def test_what_no_policy_said_stays(place: Path) -> None:
    begin(place)
    fault = Verdict("deny", "broken")
    fault.cause = "journal"
    assert pause.weaken(fault, str(place)).action == "deny"
    settings = Verdict("deny", "hooks are off", "guardhook-settings")
    assert pause.weaken(settings, str(place)).action == "deny"
    watched = verdict_of(match("deny", "user"))
    watched.mode = "observe"
    assert pause.weaken(watched, str(place)).mode == "observe"


# --- is it a person -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "process",
    [
        Process(1, "claude"),
        Process(1, "2.1.332", "/home/u/.local/share/claude/versions/2.1.332"),
        Process(1, "node", "/usr/bin/node", ("node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js")),
        Process(1, "node", "/usr/bin/node", ("node", "--no-warnings", "/usr/bin/gemini")),
        Process(1, "MainThread", "/usr/bin/node", ("node", "/opt/x/node_modules/@google/gemini-cli/dist/index.js")),
        Process(1, "npm exec @openai", "/usr/bin/node", ("npm", "exec", "@openai/codex")),
        Process(1, "codex", "/opt/codex/codex", ("codex", "exec")),
        Process(1, "node", "/usr/bin/node", ("/usr/bin/node", "/usr/local/bin/qwen")),
        Process(1, "cursor", "/opt/cursor/cursor"),
        Process(1, "Cursor.exe"),
        Process(1, "python3", "/usr/bin/python3.11", ("/usr/bin/python3", "/home/u/.local/bin/aider", "--yes")),
        Process(1, "python3", "/usr/bin/python3", ("python3", "-m", "openhands")),
        Process(1, "bash", "/bin/bash", ("bash",), {"CLAUDECODE": "1"}),
        Process(1, "tmux: server", "/usr/bin/tmux", ("tmux",), {"CODEX_SANDBOX": "seatbelt"}),
    ],
)
def test_harness_processes_are_known(process: Process) -> None:
    with pytest.raises(person.NotAPerson):
        person.ensure({}, [Process(2, "bash", "/bin/bash", ("-bash",)), process])


@pytest.mark.parametrize(
    "process",
    [
        Process(1, "bash", "/bin/bash", ("-bash",)),
        Process(1, "vim", "/usr/bin/vim", ("vim", "/home/u/claude/notes.md")),
        Process(1, "python3", "/usr/bin/python3", ("python3", "/home/claude/manage.py")),
        Process(1, "gnome-terminal-", "/usr/libexec/gnome-terminal-server"),
        Process(
            1,
            "bash",
            "/bin/bash",
            ("bash",),
            {"GEMINI_API_KEY": "k", "CODEX_HOME": "/h", "CLAUDE_CODE_USE_BEDROCK": "1"},
        ),
        Process(1, "systemd", "/usr/lib/systemd/systemd", ("/sbin/init",)),
    ],
)
def test_a_persons_processes_are_not(process: Process) -> None:
    person.ensure({"GEMINI_API_KEY": "k", "PATH": "/bin"}, [process])


def test_ancestors_are_read_up_to_the_first(tmp_path: Path) -> None:
    def put(pid: int, parent: int, name: str, words: list[str], exe: str) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} ({name} ) 1 (x) S {parent} 1 1 0 -1")
        (folder / "comm").write_text(name + "\n")
        (folder / "cmdline").write_bytes(b"".join(w.encode() + b"\0" for w in words))
        (folder / "environ").write_bytes(b"A=1\0B=x=y\0")
        (folder / "exe").symlink_to(exe)

    put(50, 40, "python3", ["python3"], "/usr/bin/python3")
    put(40, 30, "a) S 1 (b", ["sh", "-c", "x"], "/bin/dash")
    put(30, 1, "node", ["node", "/usr/bin/codex"], "/usr/bin/node")
    put(1, 0, "init", ["/sbin/init"], "/sbin/init")
    found = person.ancestors(str(tmp_path), 50)
    assert [(p.pid, p.words[:1], p.exe) for p in found] == [
        (40, ("sh",), "/bin/dash"),
        (30, ("node",), "/usr/bin/node"),
        (1, ("/sbin/init",), "/sbin/init"),
    ]
    assert found[0].env == {"A": "1", "B": "x=y"}
    with pytest.raises(person.NotAPerson, match="codex"):
        person.ensure({}, found)
