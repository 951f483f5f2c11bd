"""Recordings to try things on: sessions as hooks write them, and bare recordings put together by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from store_rig import Journal, event, said

from guardhook.commands import main

RUN = "run_" + "a" * 32


def guardhook(journal: Journal | Path, *words: str, **env: str) -> Result:
    """`guardhook WORDS` on the folder of a journal."""
    base = journal.base if isinstance(journal, Journal) else journal
    takes_dir = words[0] != "archive" or words[1] in ("save", "open")
    more = ["--dir", str(base)] if takes_dir else []
    return CliRunner().invoke(main, [*words, *more], env={"GUARDHOOK_DIR": "", "COLUMNS": "100", **env})


def told(result: Result, status: int = 0) -> Any:
    """What a command said as JSON."""
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def session(journal: Journal, *, end: bool = True) -> None:
    """A session with everything ordinary in it: a prompt, calls that ran, failed and were stopped, an answer."""
    journal.add(event("session_start", source="startup", model="claude-x"), opens=True)
    journal.add(
        event("user_prompt", prompt="tidy up the project"),
        event("pre_tool", tool="Bash", given={"command": "ls"}, call="c1", verdict=said("allow", None, "")),
        event("post_tool", tool="Bash", given={"command": "ls"}, call="c1", tool_response={"stdout": "a.py\nb.py", "stderr": ""}),
        event("pre_tool", tool="Bash", given={"command": "rm -rf /"}, call="c2", verdict=said("deny")),
        event("pre_tool", tool="Edit", given={"file_path": "/home/user/project/a.py"}, call="c3", kind="file_edit", verdict=said("allow", None, "")),
        event("post_tool", tool="Edit", given={"file_path": "/home/user/project/a.py"}, call="c3", kind="file_edit", tool_response='{"text": "done"}'),
        event("stop", last_assistant_message="All tidy."),
    )  # fmt: skip
    if end:
        journal.add(event("session_end", reason="exit"), closes=True)


def happened(
    *events: tuple[str, dict[str, Any]], run: str | None = RUN, seqs: list[int] | None = None
) -> dict[str, Any]:
    """A bare recording of events (type, data), one a second; the first one names the run."""
    out: list[dict[str, Any]] = []
    for index, (kind, data) in enumerate(events):
        seq = seqs[index] if seqs is not None else index
        named = {"run_id": run} if run is not None and index == 0 else {}
        out.append(
            {
                "ts": f"2026-08-16T10:{index // 60:02d}:{index % 60:02d}Z",
                "seq": seq,
                "type": kind,
                "data": {**named, **data},
            }
        )
    return {"snapshot": {"trace": {"id": "trc_x"}, "steps": []}, "events": out, "structure": None}


# --- events of a turn, as rollouts have them ------------------------------------------------------------------------

Told = tuple[str, dict[str, Any]]


def asked(prompt: str = "please", **more: Any) -> Told:
    return "run.started", {"prompt": prompt, "conversation_id": "the-session", "session": {"harness": "codex"}, **more}


def said_(text: str = "done") -> list[Told]:
    return [("assistant.message", {"content": text}), ("run.waiting_for_user", {})]


def again(prompt: str = "and now") -> Told:
    return "conversation.continued", {"message": prompt}


_numbers = iter(range(1, 1_000_000))


def called(
    tool: str = "Bash", given: Any = None, *, output: Any = "", error: str | None = None, code: int | None = None, done: bool = True,
    kind: str | None = None, decision: str = "allow", id: str | None = None, **end: Any,
) -> list[Told]:  # fmt: skip
    """A call that was allowed, and its result."""
    name = id or f"call{next(_numbers)}"
    arguments = json.dumps(given if given is not None else {})
    start = {"call_id": name, "tool": tool, "arguments": arguments, **({"kind": kind} if kind else {})}
    out: list[Told] = [
        ("tool.call.started", start),
        ("tool_hook.completed", {"stage": "pre_tool_use", "call_id": name, "tool": tool, "decision": decision, "policy": None}),
    ]  # fmt: skip
    if done:
        text = output if isinstance(output, str) else json.dumps(output)
        data: dict[str, Any] = {"call_id": name, "tool": tool, "output": text, "executed": True, **end}
        if error is not None:
            data["error"] = error
        if code is not None:
            data["exit_code"] = code
            data.setdefault("error", f"exited with code {code}") if code else None
        out.append(("tool.call.completed", data))
    return out


def shell(command: str, code: int | None = 0, **more: Any) -> list[Told]:
    return called("shell", {"command": command}, kind="shell", output="some text", code=code, **more)


def edit(path: str = "a.py", **more: Any) -> list[Told]:
    return called("Edit", {"file_path": path}, kind="file_edit", output={"ok": True}, **more)


def denied(tool: str = "Bash", given: Any = None, *, policy: str = "no-rm", mode: str | None = None, id: str | None = None) -> list[Told]:  # fmt: skip
    """A call that a rule denied; with a mode it was not stopped."""
    name = id or f"call{next(_numbers)}"
    start = {"call_id": name, "tool": tool, "arguments": json.dumps(given or {"command": "rm"})}
    decision = {"stage": "pre_tool_use", "call_id": name, "tool": tool, "decision": "deny", "policy": policy, **({"mode": mode} if mode else {})}  # fmt: skip
    out: list[Told] = [("tool.call.started", start), ("tool_hook.completed", decision)]
    if mode is None:
        out.append(("tool.call.blocked", {"call_id": name, "tool": tool, "policy": policy, "reason": "no"}))
        out.append(("tool.call.completed", {"call_id": name, "tool": tool, "output": "no", "error": "permission_denied", "executed": False}))  # fmt: skip
    return out


def turn(*parts: Told | list[Told], seqs: list[int] | None = None, run: str | None = RUN) -> dict[str, Any]:
    """A recording of these events in order."""
    flat: list[Told] = []
    for part in parts:
        flat += [part] if isinstance(part, tuple) else part
    return happened(*flat, seqs=seqs, run=run)
