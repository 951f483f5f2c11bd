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


__all__ = ["RUN", "Journal", "event", "guardhook", "happened", "said", "session", "told"]
