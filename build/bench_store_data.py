"""Journals of any size for measuring the store: sessions of Claude Code's shape, written with the journal's own line format."""

from __future__ import annotations

from pathlib import Path

from guardhook.journal import line

START = 1_790_000_000_000_000_000  # nanoseconds since the epoch


def write(journal: Path, sessions: int, calls: int) -> int:
    """sessions files with calls tool calls each: two lines a call, a start, a prompt and a stop. Gives the number of lines."""
    written = 0
    for number in range(sessions):
        session = f"00000000-0000-4000-8000-{number:012d}"
        at = START + number * 3_600_000_000_000
        folder = journal / line.day(at)
        folder.mkdir(parents=True, exist_ok=True)
        key = line.key("claude-code", session)
        with open(folder / f"{key}.jsonl", "wb") as file:
            for seq, (step, data) in enumerate(_events(session, calls), 1):
                own: dict[str, object] = {"v": 1, "run": line.run_id("claude-code", session, 1), "segment": 1}
                if seq == 1:
                    own["opens"] = True
                own["root"] = "/home/user/project"
                file.write(line.build(at + step * 400_000_000, seq, line.RECEIVED, own, line.body(data)))
                written += 1
    return written


def trace(session: str) -> str:
    """The id of a session's trace."""
    from guardhook.store.fold import trace_id

    return trace_id(line.key("claude-code", session))


def call(session: str, number: int) -> dict[str, object]:
    """One more tool call of a session, as a hook records it."""
    payload = {
        "session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": f"toolu_{number}",
        "tool_input": {"command": f"echo {number}"},
    }  # fmt: skip
    return {
        "session": session, "dialect": "claude-code", "client": "2.1.332", "native_event": "PreToolUse", "event": "pre_tool",
        "call": f"toolu_{number}", "agent": None, "cwd": "/home/user/project", "tool": "Bash", "kind": "shell", "payload": payload,
        "redacted": [], "cut": [], "effects": [], "verdict": None,
    }  # fmt: skip


def _events(session: str, calls: int):  # type: ignore[no-untyped-def]
    base = {
        "session_id": session,
        "transcript_path": f"/home/user/.claude/projects/-home-user-project/{session}.jsonl",
        "cwd": "/home/user/project",
        "permission_mode": "default",
    }

    def event(native: str, canonical: str, call: str | None = None, **more: object) -> dict[str, object]:
        return {
            "session": session, "dialect": "claude-code", "client": "2.1.332", "native_event": native, "event": canonical,
            "call": call, "agent": None, "cwd": "/home/user/project", "tool": more.get("tool_name"),
            "kind": "shell" if call else None, "payload": {**base, "hook_event_name": native, **more},
            "redacted": [], "cut": [], "effects": [{"kind": "run", "program": "git", "argv": ["status"]}] if call else [],
            "verdict": {"action": "allow", "policy": None, "reason": "", "mode": "enforce", "us": 300} if canonical == "pre_tool" else None,
        }  # fmt: skip

    yield 0, event("SessionStart", "session_start", source="startup")
    yield 1, event("UserPromptSubmit", "user_prompt", prompt=f"please do thing {session[-4:]}")
    for n in range(calls):
        given = {"command": f"git log --oneline -n {n} -- src/module_{n % 37}.py | head -20", "description": "look"}
        call = f"toolu_{session[-6:]}_{n}"
        yield 2 * n + 2, event("PreToolUse", "pre_tool", call, tool_name="Bash", tool_input=given, tool_use_id=call)
        result = {"stdout": f"abc{n} fix the thing\n" * 12, "stderr": "", "interrupted": False, "isImage": False}
        yield (
            2 * n + 3,
            event(
                "PostToolUse", "post_tool", call, tool_name="Bash", tool_input=given, tool_response=result,
                tool_use_id=call, duration_ms=350,
            ),
        )  # fmt: skip
    yield 2 * calls + 3, event("Stop", "stop", last_assistant_message="All done.", stop_hook_active=False)
