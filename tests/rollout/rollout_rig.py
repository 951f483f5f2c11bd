"""Rollouts by hand, and of a journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from store_rig import SESSION, Event, Journal, event

from guardhook.commands import main
from guardhook.rollout.lines import fitting
from guardhook.rollout.load import Rollout, load
from guardhook.rollout.options import Options
from guardhook.rollout.render import render
from guardhook.rollout.runs import find

Item = dict[str, object]


def item(seq: int, type: str, data: object = None, *, ts: str = "2026-01-01T00:00:00Z") -> Item:
    """One event as it stands in a file; data None leaves the member out."""
    return {"ts": ts, "seq": seq, "type": type, **({} if data is None else {"data": data})}


def numbered(*events: tuple[str, object]) -> list[Item]:
    """Events with sequence numbers from 0."""
    return [item(n, kind, data) for n, (kind, data) in enumerate(events)]


def written(path: Path, *items: Item) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(i) + "\n" for i in items))
    return path


def rendered(journal: Journal, name: str = SESSION, **options: object) -> list[Item]:
    """The rollout of the journal's run."""
    return list(render(journal.folders, find(journal.folders, name), options=Options(**options)))  # type: ignore[arg-type]


def loaded(journal: Journal, path: Path, name: str = SESSION, **options: object) -> Rollout:
    """The same, written and loaded: whatever is rendered can be loaded."""
    path.write_bytes(b"".join(fitting(e) or b"" for e in rendered(journal, name, **options)))
    return load(str(path))


def told(events: list[Item], *kinds: str) -> list[Item]:
    """Payloads of events of these types, without what all events carry."""
    usual = ("schema_version", "conversation_id", "step_basis")
    found = []
    for one in events:
        data = one.get("data")
        if one["type"] in kinds and isinstance(data, dict):
            found.append({k: v for k, v in data.items() if k not in usual})
    return found


def types(events: list[Item]) -> list[tuple[str, object]]:
    """(type, step) of each."""
    return [(str(e["type"]), e["data"]["step"] if isinstance(e.get("data"), dict) else None) for e in events]  # type: ignore[index]


def run(*words: str, data: Path | None = None, env: dict[str, str] | None = None) -> Result:
    """`guardhook rollout WORDS`."""
    more = [] if data is None else ["--dir", str(data)]
    clean = {"GUARDHOOK_DIR": "", "GUARDHOOK_ROLLOUT_DIR": "", "COLUMNS": "80"}
    return CliRunner().invoke(main, ["rollout", *words, *more], env={**clean, **(env or {})})


def bash(name: str, call: str | None, command: str = "ls", **more: object) -> Event:
    return event(name, tool="Bash", given={"command": command}, call=call, **more)  # type: ignore[arg-type]


def prompt(text: str = "p") -> Event:
    return event("user_prompt", prompt=text)


def brief(events: list[Item]) -> list[str]:
    return [f"{step} {kind}" for kind, step in types(events)]


def data(events: list[Item], kind: str) -> dict[str, Any]:
    (found,) = told(events, kind)
    return found
