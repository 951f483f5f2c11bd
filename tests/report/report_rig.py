"""Traces with hostile words in every place, and the report made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.journal import line, write
from guardhook.store import TraceRecorder

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'\"&\u202egnp.exe\x1b[2J\u2028<!--"
SESSION = "11111111-2222-4333-8444-555555555555"


def recorded(base: Path, name: str, steps: int, *, text: str = HOSTILE, output: str = "out ") -> str:
    """A trace of this many calls, every third one failed."""
    recorder = TraceRecorder(explicit(str(base)))
    recorder.start_trace(f"agent {text}", trace_id=name, input={"prompt": f"Do {text}"}, tags=[text])
    for number in range(1, steps + 1):
        made = recorder.start_step("tool_call", f"Bash {text}", input={"command": f"echo {number} {text}"})
        recorder.end_step(made, output={"stdout": output + text}, error=f"failed {text}" if number % 3 == 0 else None)
    recorder.end_trace(output={"text": f"Done {text}"})
    return name


def hooked(base: Path) -> None:
    """A session as hooks record it: a prompt, a call that was denied, one that ran."""
    session = write.Session(str(base / "journal"), line.key("claude-code", SESSION), "claude-code", SESSION)
    (base / "journal").mkdir(parents=True, exist_ok=True)
    verdict = {
        "action": "deny", "policy": f"no-rm {HOSTILE}", "layer": "user", "reason": f"deletes {HOSTILE}", "mode": "enforce",
        "cause": "policy", "answer": {"exit": 2, "stdout": "", "stderr": ""},
    }  # fmt: skip
    rows: list[tuple[str, str | None, dict[str, object], object]] = [
        ("user_prompt", None, {"prompt": f"Tidy up {HOSTILE}"}, None),
        ("pre_tool", "toolu_1", {"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}, verdict),
        ("pre_tool", "toolu_2", {"tool_name": "Read", "tool_input": {"file_path": "/a"}}, {"action": "allow"}),
        ("post_tool", "toolu_2", {"tool_name": "Read", "tool_input": {"file_path": "/a"}, "tool_response": "text"}, None),
    ]  # fmt: skip
    session.lock(write.time.monotonic() + 5)
    for number, (event, call, payload, said) in enumerate(rows):
        data: dict[str, object] = {
            "session": SESSION, "dialect": "claude-code", "client": "2.1.332", "native_event": event, "event": event, "call": call,
            "agent": None, "cwd": "/p", "tool": payload.get("tool_name"), "kind": None, "payload": payload, "redacted": [], "cut": [],
            "effects": [], "verdict": said,
        }  # fmt: skip
        at = 1_790_000_000_000_000_000 + number * 1_000_000_000
        record = write.Record(line.RECEIVED, at, "claude-code", SESSION, "/p", None, number == 0, False, data)
        session.drain([(record, line.body(data), None)])
    session.finish()
    session.close()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["report", *words])


def rows(page: str) -> list[list[list[object]]]:
    """The data block, as the script in the page reads it."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    parsed: list[list[list[object]]] = json.loads(found[1])
    return parsed
