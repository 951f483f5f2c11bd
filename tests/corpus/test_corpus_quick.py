"""The quick pass lets nothing through that parsing and judging would have stopped, and does pass everyday commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from verdict_rows import CWD, PROJECT, event_of, facts, packs, rows

from guardhook.analysis import analyse, vocabulary
from guardhook.core.event import Event
from guardhook.dialects import tools
from guardhook.gate import judge
from guardhook.policy import compile as compiler
from guardhook.policy import load, match
from guardhook.policy.model import Pattern, Policy

PRESETS = ("balanced", "strict")


def bash(command: str, cwd: str | None = PROJECT) -> Event:
    event = Event("claude-code", "PreToolUse", "pre_tool", {})
    event.tool = "Bash"
    event.input = {"command": command}
    event.cwd = cwd
    tools.fill(event)
    return event


def sound(event: Event, preset: str) -> str:
    """What is wrong with the quick pass on this call; "" when nothing is."""
    sets = [packs(preset)]
    if not judge._harmless(sets, event, facts()):
        return ""
    verdict = match.judge(sets, event, analyse(event, facts()))
    return "" if verdict.action == "allow" else f"{verdict.policy}: {event.commands}"


def test_no_row_of_the_corpus_slips_through() -> None:
    wrong = [sound(event_of(row), preset) for row in rows() for preset in PRESETS]
    assert [w for w in wrong if w] == []


def test_everyday_commands_take_it() -> None:
    quick = ["ls -la", "cat README.md", "grep -rn TODO src", "git status", "git diff --stat", "git log --oneline -5", "wc -l src/app.ts", "cat src/app.ts | head -20"]  # fmt: skip
    assert [c for c in quick if not judge._harmless([packs("strict")], bash(c), facts())] == []


@pytest.mark.parametrize(
    "command", ["git wipe", "git status && git w", "just go", "task go", "npm install", "composer go", "deno task go"]
)
def test_what_a_file_on_disk_decides_is_never_quick(command: str) -> None:
    assert not judge._harmless([packs("balanced")], bash(command), facts())


PROGRAMS = ["ls", "cat", "head", "grep", "rg", "git", "echo", "wc", "sort", "diff", "jq", "stat", "file", "test", "tool", "a.out", "LS", "Cat", "mytool2", "cd", "true"]  # fmt: skip
WORDS = [
    "-rf", "-a", "-n", "--", "-", "src", "README.md", "a/b/c.txt", ".", "..", "/", "/etc/passwd", "etc/shadow", "shadow", ".env", "config/.env.local", "env", "id_rsa", "deploy_rsa", "host_ed25519",
    "x.pem", "my.key", "prod.env", "credentials", "credentials.json", ".ssh", ".aws", "HEAD:.env", "main:src/a.ts", "origin", "main", "+main", ":main", "status", "log", "show", "diff", "push", "reset", "--hard", "branch", "-D",
    "notes", "describe", "cat-file", "blob", "ls-files", "blame", "fsck", "stash", "drop", "rm", "sudo", "A=1", "HOME=/", "-C", "--git-dir=x", "%1", "1.2.3.4", "169.254.169.254", "http://x.io", "@x", "secrets.yaml",
    "wallet.dat", ".git/config", ".claude/settings.json", "guardhook", "settings.json", "login", "cookies.sqlite", "kubeconfig", "config", "-p", "-o", "-exec", "--output=x", "--ext-diff", "-O", "--no-index", "run", "--textconv", "archive",
]  # fmt: skip
JOINS = [" ", " ", " ", " ", " ; ", " | ", " && ", " || ", " & ", "\n", ";", "|", "&", "&&", "  "]


@st.composite
def plain(draw: st.DrawFn) -> str:
    known = sorted(vocabulary.triggers())
    word = st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(PROGRAMS),
        st.sampled_from(known),
        st.from_regex(r"[A-Za-z0-9_./=:,@%+-]{1,8}", fullmatch=True),
        st.builds("{}{}{}".format, st.sampled_from(WORDS), st.sampled_from("/.=:@,_-+"), st.sampled_from(WORDS)),
    )
    out = draw(st.sampled_from(PROGRAMS))
    for _ in range(draw(st.integers(0, 6))):
        out += draw(st.sampled_from(JOINS)) + draw(word)
    return out + draw(st.sampled_from(["", "", "", "\n", ";", "&", "|", " &&"]))


@settings(max_examples=1500, deadline=None)
@given(plain(), st.sampled_from(PRESETS), st.sampled_from([PROJECT, "/", "/home/user", "/home/user/project/src"]))
@example("ls ;; ls", "strict", PROJECT)
@example("ls |", "strict", PROJECT)
@example("&& ls", "strict", PROJECT)
@example("cat deploy_rsa", "strict", PROJECT)
@example("my-guardhook-tool x", "strict", PROJECT)
@example("cat shadow", "strict", "/etc")
@example("cat id_rsa", "strict", "/home/user/.ssh")
@example("cat x", "strict", "/home/user/.ssh")
@example("cat prod.env", "balanced", PROJECT)
@example("cat .env_-rf", "balanced", PROJECT)
@example("git show HEAD:.env", "balanced", PROJECT)
@example("git log -p config/.env", "balanced", PROJECT)
def test_no_plain_command_slips_through(command: str, preset: str, cwd: str) -> None:
    assert sound(bash(command, cwd), preset) == ""


def with_user_policy(match_: dict[str, object]) -> list[object]:
    found = load.Found(Policy("mine", "deny", Pattern(**match_)), "user", "x.toml", 1)  # type: ignore[arg-type]
    return [compiler.in_memory([found])]


@pytest.mark.parametrize(
    ("policy", "command"),
    [
        ({"program": "mytool2"}, "mytool2 --go"),
        ({"program": "my*"}, "mytool2 --go"),
        ({"effect": "run", "argument": "--danger"}, "mytool2 --Danger"),
        ({"git": "status"}, "git status"),
        ({"effect": "git"}, "git log"),
        ({"effect": "read", "path": "docs/**"}, "cat docs/a.md"),
        ({"path": "**/a.md"}, "cat docs/a.md"),
        ({"effect": "read", "path_class": "system"}, "cat /usr/share/x"),
        ({"effect": "run"}, "mytool2"),
        ({"effect": "delete"}, "rm a.txt"),
        ({"host": "x.io"}, "curl x.io"),
        ({"input_contains": "README"}, "cat README.md"),
        ({"input_regex": "read.*md"}, "cat README.md"),
        ({"tool": "Bash"}, "ls"),
    ],
)
def test_a_policy_of_the_user_is_not_passed_over(policy: dict[str, object], command: str) -> None:
    verdict, _ = judge.decide(with_user_policy(policy), bash(command), facts(), allow_empty=False)  # type: ignore[arg-type]
    assert verdict.policy == "mine"


@pytest.mark.parametrize("cwd", ["/etc", "/home/user/.ssh", "/proc/1", None, "relative"])
def test_special_folders_switch_it_off(cwd: str | None) -> None:
    assert not judge._harmless([packs("balanced")], bash("cat x", cwd), facts())
    assert set(CWD) == {"project", "home", "root", "tmp", "none"}


def test_what_the_session_brought_to_disk_switches_it_off() -> None:
    known = facts()
    known.marked = {"/home/user/project/tool": "network"}
    assert not judge._harmless([packs("balanced")], bash("ls"), known)


def test_a_symbolic_link_switches_it_off(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "real" / "notes").symlink_to("/etc/passwd")
    sets = [packs("balanced")]
    cwd = str(tmp_path.resolve())

    def passes(command: str, where: str = cwd) -> bool:
        return judge._harmless(sets, bash(command, where), facts())

    assert passes("cat real/a.txt")
    assert passes("cat missing/b.txt")
    assert not passes("cat real/notes")
    assert not passes("cat link/hostname")
    assert not passes(f"cat {cwd}/real/notes")
    assert not passes("head --lines=3 real/notes")
    assert not passes("grep -freal/notes a")
    assert not passes("cat hostname", f"{cwd}/link")
    assert passes("cat a.txt", f"{cwd}/real")
    assert not passes("cat " + "a " * 65)


def test_long_commands_are_parsed() -> None:
    assert not judge._harmless([packs("balanced")], bash("ls " + "a " * 4000), facts())
