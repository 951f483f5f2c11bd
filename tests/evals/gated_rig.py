"""A session as the gate sees it: calls are judged by the shipped policies, and recorded as the hook records them."""

from __future__ import annotations

from pathlib import Path

from guardhook.core.folders import explicit
from guardhook.dialects import table
from guardhook.gate import hook, judge
from guardhook.gate.facts import facts_of
from guardhook.journal import line
from guardhook.policy.compiled import Compiled
from guardhook.store.backtest import compiled
from tests.store.store_rig import Event, Journal, event

CWD = "/home/user/project"


_compiled: dict[str, Compiled] = {}


def shipped(folder: str, preset: str = "balanced") -> Compiled:
    """The shipped policies; folder: where a config.toml names the preset, when it is not the usual one. Compiled once."""
    if preset not in _compiled:
        _compiled[preset] = compiled(explicit(folder))
    return _compiled[preset]


class Session:
    """One session of Claude Code. Each call gives its id; `answer` gives a call its result."""

    def __init__(self, data: Path) -> None:
        self.journal = Journal(data)
        self.policies = shipped(str(data / "nothing"))
        self._calls = 0

    def bash(self, command: str, **more: object) -> str:
        """A shell command, judged; it runs at once where it may."""
        return self.call("Bash", {"command": command}, **more)  # type: ignore[arg-type]

    def call(
        self, tool: str, given: Event, *, output: object = "ok", mode: str = "enforce", judged: bool = True,
        ran: bool | None = None, refused: bool = False, line_data: Event | None = None, result_data: Event | None = None, error: str | None = None,
    ) -> str:  # fmt: skip
        """Records a call and, when nothing blocked it (or ran says so), its result. refused: what a person is asked about is refused."""
        self._calls += 1
        call = f"toolu_{self._calls}"
        payload = {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "tool_name": tool,
            "tool_input": given,
            "cwd": CWD,
            "tool_use_id": call,
        }
        read = table.load("claude-code").read(payload, {}, "PreToolUse")
        facts = facts_of(self.journal.folders, CWD, CWD, hook.PROGRAM, {})
        verdict, effects = judge.decide([self.policies], read, facts, allow_empty=True)[:2]
        verdict.mode = mode
        if refused and verdict.action == "require_review":
            verdict.action = "deny"
        data = line.received(read, effects, verdict if judged else None, None)
        blocked = judged and mode == "enforce" and verdict.action == "deny"
        self.journal.add(event(
            "pre_tool", tool=tool, given=given, call=call, kind=read.kind, verdict=data["verdict"],
            line_data={"effects": data["effects"], **(line_data or {})},
        ))  # fmt: skip
        if ran if ran is not None else not blocked:
            name = "post_tool" if error is None else "post_tool_failure"
            self.journal.add(event(
                name, tool=tool, given=given, call=call, kind=read.kind, line_data=result_data, tool_response=output,
                **({} if error is None else {"error": error}),
            ))  # fmt: skip
        return call

    def prompt(self, text: str) -> None:
        self.journal.add(event("user_prompt", prompt=text))

    def stop(self) -> None:
        self.journal.add(event("stop", last_assistant_message="done"))
