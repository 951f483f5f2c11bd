"""Putting the steps of traces that are told in parts in order: by their start, whatever order the parts came in.

A new step first gets the next free number. When all lines of its file were read, the trace's steps are numbered anew where needed, links between
parts become links between steps, and what lies between the steps finds its place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from guardhook.store.columns import json_text
from guardhook.store.schema import SHIFT
from guardhook.store.state import Part, Row

_COLUMNS = "name, role, seq, at, number, within, cause, call"
_HIDDEN = -1  # the place of a prompt that only repeats the one before it
_BESIDE = "told_beside"  # in a step's metadata: which of input and output came in parts of their own
_rows = msgspec.json.Decoder(Row)


def load(db: sqlite3.Connection, serial: int, name: str) -> Part | None:
    """One stored part with its row."""
    found = db.execute(
        f"SELECT {_COLUMNS}, row FROM agent_trace_parts WHERE serial = ? AND name = ?", (serial, name)
    ).fetchone()
    if found is None:
        return None
    part = Part(*found[:-1])
    part.row = None if found[-1] is None else _rows.decode(found[-1])
    return part


def save(db: sqlite3.Connection, parts: dict[tuple[int, str], Part]) -> None:
    """Writes parts, new ones and changed ones."""
    db.executemany(
        f"INSERT OR REPLACE INTO agent_trace_parts (serial, {_COLUMNS}, row) VALUES (?,?,?,?,?,?,?,?,?,?)",
        [
            (serial, p.name, p.role, p.seq, p.at, p.number, p.within, p.cause, p.call, None if p.row is None else json_text(p.row))
            for (serial, _), p in parts.items()
        ],
    )  # fmt: skip


def settle(db: sqlite3.Connection, serial: int) -> None:
    """Numbers the steps of a trace by their start, and sets the links between them. Raises sqlite3.Error."""
    found = db.execute(
        f"SELECT {_COLUMNS} FROM agent_trace_parts WHERE serial = ? ORDER BY at IS NULL, at, seq", (serial,)
    )
    parts = ordered([Part(*row) for row in found])
    if not parts:
        return
    numbers: dict[str, int] = {}
    decisions: dict[str, int] = {}  # by call
    calls: dict[str, int] = {}
    links: dict[int, tuple[int, int | None, int | None]] = {}  # by old number: new number, parent, cause
    moved: list[tuple[int, int, str]] = []
    for part in parts:
        if part.number is None:
            continue
        number = len(numbers) + 1
        cause = numbers.get(part.cause or "")
        if part.call is not None:
            # A decision causes its call; one that is told of after the call has begun was caused by it.
            mine, theirs = (decisions, calls) if part.role == "decision" else (calls, decisions)
            mine[part.call] = number
            cause = theirs.get(part.call) if cause is None else cause
        links[part.number] = (number, numbers.get(part.within or ""), cause)
        numbers[part.name] = number
        if number != part.number:
            moved.append((number, serial, part.name))
    low = serial << SHIFT
    current = db.execute(
        "SELECT step_number, parent_step_number, caused_by_step_number FROM agent_trace_steps WHERE pk BETWEEN ? AND ?",
        (low, low + (1 << SHIFT) - 1),
    )
    changed = [(old, *links[old]) for old, *linked in current if old in links and (old, *linked) != links[old]]
    _move(db, low, changed)
    db.executemany("UPDATE agent_trace_parts SET number = ? WHERE serial = ? AND name = ?", moved)
    _events(db, serial, parts, numbers)
    if any(part.role == "detail" for part in parts):
        _details(db, serial, numbers)


def _move(db: sqlite3.Connection, low: int, changed: list[tuple[int, int, int | None, int | None]]) -> None:
    """Rows go by way of negative keys, so that none is in another one's way."""
    away = [(-(low + old), low + old) for old, *_ in changed]
    back = [(low + new, new, parent, cause, -(low + old)) for old, new, parent, cause in changed]
    db.executemany("UPDATE agent_trace_steps SET pk = ? WHERE pk = ?", away)
    db.executemany(
        "UPDATE agent_trace_steps SET pk = ?, step_number = ?, parent_step_number = ?, caused_by_step_number = ? WHERE pk = ?",
        back,
    )
    for table in ("agent_trace_decisions", "agent_trace_snapshots"):
        if db.execute(f"SELECT 1 FROM {table} WHERE pk BETWEEN ? AND ? LIMIT 1", (low, low + (1 << SHIFT) - 1)).fetchone():  # fmt: skip
            db.executemany(f"UPDATE {table} SET pk = ? WHERE pk = ?", away)
            db.executemany(f"UPDATE {table} SET pk = ? WHERE pk = ?", [(to, since) for to, *_, since in back])


def _events(db: sqlite3.Connection, serial: int, parts: Sequence[Part], numbers: dict[str, int]) -> None:
    """What lies between the steps comes in order too. A prompt that repeats the one before it is not shown again."""
    rows = db.execute(
        "SELECT seq, before_step, ts, event, native_event, text, detail FROM agent_trace_events WHERE serial = ? ORDER BY id",
        (serial,),
    ).fetchall()
    if not rows:
        return
    by_seq = {row[0]: row for row in rows}
    wanted = []
    following, said = 1, None
    for part in parts:
        if part.number is not None:
            following = numbers[part.name] + 1
            continue
        row = by_seq.get(part.seq)
        if row is None:
            continue
        place = following
        if part.role == "prompt":
            place = _HIDDEN if row[5] == said else following
            said = row[5]
        wanted.append((row[0], place, *row[2:]))
    if wanted != rows:
        db.execute("DELETE FROM agent_trace_events WHERE serial = ?", (serial,))
        db.executemany(
            "INSERT INTO agent_trace_events (serial, seq, before_step, ts, event, native_event, text, detail) VALUES (?,?,?,?,?,?,?,?)",
            [(serial, *row) for row in wanted],
        )


def _details(db: sqlite3.Connection, serial: int, numbers: dict[str, int]) -> None:
    """Messages that came beside their step become its input and output, unless the step says these itself."""
    found: dict[str, tuple[list[object], list[object]]] = {}
    rows = db.execute(
        "SELECT within, row FROM agent_trace_parts WHERE serial = ? AND role = 'detail' ORDER BY at IS NULL, at, seq",
        (serial,),
    )
    for within, text in rows:
        row = _rows.decode(text)
        for said, to in zip((row.input, row.output), found.setdefault(within or "", ([], [])), strict=True):
            to.extend(said if isinstance(said, list) else ())
    for name, (went, came) in found.items():
        number = numbers.get(name)
        if number is None:
            continue
        pk = (serial << SHIFT) + number
        (given, result, text) = db.execute(
            "SELECT input, output, metadata FROM agent_trace_steps WHERE pk = ?", (pk,)
        ).fetchone()
        metadata = msgspec.json.decode(text)
        beside = metadata.setdefault(_BESIDE, [])
        for column, own, messages in (("input", given in ("{}", None), went), ("output", result is None, came)):
            if messages and (own or column in beside):
                if column not in beside:
                    beside.append(column)
                db.execute(
                    f"UPDATE agent_trace_steps SET {column} = ?, metadata = ? WHERE pk = ?",
                    (json_text({"messages": messages}), json_text(metadata), pk),
                )


def ordered(parts: Sequence[Part]) -> list[Part]:
    """Parts that are sorted by their start; of those with the same start, what contains or causes another one comes before it.

    Clocks of a millisecond are common, so an agent and its first call often begin together.
    """
    out: list[Part] = []
    start = 0
    while start < len(parts):
        end = start + 1
        while end < len(parts) and parts[end].at == parts[start].at:
            end += 1
        group = parts[start:end]
        out.extend(group if end - start == 1 else _outer_first(group))
        start = end
    return out


def _outer_first(group: Sequence[Part]) -> Iterable[Part]:
    here = {part.name: part for part in group}
    done: dict[str, Part] = {}
    for first in group:
        stack, waiting = [first], set[str]()
        while stack:
            part = stack[-1]
            if part.name in done:
                stack.pop()
                continue
            waiting.add(part.name)
            needed = [here[n] for n in (part.cause, part.within) if n in here and n not in done and n not in waiting]
            if needed:
                stack.extend(needed)
            else:
                stack.pop()
                done[part.name] = part
    return done.values()
