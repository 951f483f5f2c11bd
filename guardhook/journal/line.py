"""Line v1, the journal's format. The only module that knows it.

One line is one JSON object, ASCII only, ended by a line feed: `{"ts", "seq", "type", "data"}`.

- ts: UTC with microseconds, `2026-08-16T23:00:00.123456Z`, the time the event was received. It may go backwards when the clock does.
- seq: the ticket, taken under the session's lock. Strictly increasing within a file and over all files of a session.
- type: `hook.received`, `gap`, `note`, `trace.*`, `eval.*`, `fork.*`.
- data starts with what the writer knows: v (1), run, segment (1, 2, …), root (the pinned project root), and where they apply
  opens or closes (true: this line opened or closed the segment) and spool (the id under which the entry waited).
  For `hook.received` there follow session, dialect, client, native_event, event, call, agent, cwd, tool, kind, payload, redacted and cut
  (JSON pointers into payload), effects and verdict (null when nothing was judged).

A gap line says what is missing: data.reason is `torn` (an unfinished line precedes it), `shrunk` (the file lost its end) or `failed`.
"""

from __future__ import annotations

from _blake2 import blake2b

from guardhook.core.jsontext import PayloadError, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.core.effect import Effect
    from guardhook.core.event import Event
    from guardhook.core.verdict import Answer, Verdict

VERSION = 1
RECEIVED = "hook.received"
GAP = "gap"
NOTE = "note"

# Keys of data that only the writer sets.
WRITER_KEYS = ("v", "run", "segment", "root", "opens", "closes", "spool")

_KEY_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class Line:
    """One parsed journal line."""

    __slots__ = ("data", "seq", "ts", "type")

    def __init__(self, ts: str, seq: int, type: str, data: dict[str, object]) -> None:
        self.ts = ts
        self.seq = seq
        self.type = type
        self.data = data


class BadLine(ValueError):
    """Bytes that are not a journal line."""


def civil(ns: int) -> tuple[int, int, int, int, int, int, int]:
    """Year, month, day, hour, minute, second, microsecond (UTC) of nanoseconds since the epoch.

    Proleptic Gregorian; `datetime` costs a quarter of an interpreter start, `time.gmtime` refuses some of the range.
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    days, second = divmod(seconds, 86_400)
    # Days since 0000-03-01, counted in 400-year eras, so that the leap day ends the year.
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day, second // 3600, second // 60 % 60, second % 60, rest // 1000


def iso(ns: int) -> str:
    """The time stamp of a line."""
    year, month, day_, hour, minute, second, micro = civil(ns)
    return f"{year:04d}-{month:02d}-{day_:02d}T{hour:02d}:{minute:02d}:{second:02d}.{micro:06d}Z"


def day(ns: int) -> str:
    """The name of the folder that a run opened at this time is kept in."""
    return iso(ns)[:10]


def _hash(*parts: str) -> str:
    text = "\0".join(parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def key(dialect: str, session: str) -> str:
    """The file name (without suffix) of a session. Nothing that came from outside is readable in it."""
    tame = "".join(c for c in dialect if c in _KEY_CHARS)[:32] or "unknown"
    return f"{tame}-{_hash('session', dialect, session)}"


def run_id(dialect: str, session: str, segment: int) -> str:
    """The id of one segment of a session."""
    return "run_" + _hash("run", dialect, session, str(segment))


def body(data: dict[str, object]) -> str:
    """The caller's part of data as JSON text without its opening brace; the costly part, done before the lock is taken."""
    for name in WRITER_KEYS:
        if name in data:
            data = {k: v for k, v in data.items() if k not in WRITER_KEYS}
            break
    return dumps(data)[1:]


def build(ts: int, seq: int, type: str, own: dict[str, object], rest: str) -> bytes:
    """One line. own is the writer's part of data, rest what `body` gave for the caller's."""
    first = dumps(own)[:-1]
    if rest != "}":
        first += ","
    return f'{{"ts":"{iso(ts)}","seq":{seq},"type":{dumps(type)},"data":{first}{rest}}}\n'.encode("ascii")


def parse(raw: bytes) -> Line:
    """The line in these bytes (with or without line feed). Raises BadLine; unknown types and further keys are no error."""
    try:
        value = loads(raw, bounded=False)
    except PayloadError as error:
        raise BadLine(str(error)) from None
    if not isinstance(value, dict):
        raise BadLine("not an object")
    ts, seq, type_, data = value.get("ts"), value.get("seq"), value.get("type"), value.get("data")
    if not isinstance(ts, str) or type(seq) is not int or not isinstance(type_, str) or not isinstance(data, dict):
        raise BadLine("not a journal line")
    return Line(ts, seq, type_, data)


def received(
    event: Event,
    effects: list[Effect],
    verdict: Verdict | None,
    answer: Answer | None,
) -> dict[str, object]:
    """The data of a `hook.received` line as judged, nothing redacted yet (see `guardhook.journal.redact.protect`)."""
    return {
        "session": event.session,
        "dialect": event.dialect,
        "client": event.client,
        "native_event": event.native_event,
        "event": event.event,
        "call": event.call,
        "agent": event.agent,
        "cwd": event.cwd,
        "tool": event.tool,
        "kind": event.kind,
        "payload": event.payload,
        "effects": [_effect(e) for e in effects],
        "verdict": None if verdict is None else _verdict(verdict, answer),
    }


def _effect(effect: Effect) -> dict[str, object]:
    out: dict[str, object] = {"kind": effect.kind}
    if effect.flags:
        out["flags"] = sorted(effect.flags)
    for name in ("program", "path", "host", "git", "detail"):
        value = getattr(effect, name)
        if value:
            out[name] = value
    if effect.argv:
        out["argv"] = list(effect.argv)
    if effect.path_classes:
        out["classes"] = sorted(effect.path_classes)
    if effect.via:
        out["via"] = list(effect.via)
    if effect.lookalike:
        out["lookalike"] = True
    return out


def _verdict(verdict: Verdict, answer: Answer | None) -> dict[str, object]:
    out: dict[str, object] = {
        "action": verdict.action,
        "policy": verdict.policy,
        "layer": verdict.layer,
        "reason": verdict.reason,
        "span": verdict.span,
        "set": verdict.set,
        "mode": verdict.mode,
        "cause": verdict.cause,
        "degraded": verdict.degraded,
        "us": verdict.us,
    }
    if len(verdict.matches) > 1:
        out["also"] = [[m.policy, m.action] for m in verdict.matches if m.policy != verdict.policy][:32]
    if answer is not None:
        out["answer"] = {
            "exit": answer.exit,
            "stdout": answer.stdout.decode("utf-8", "replace"),
            "stderr": answer.stderr.decode("utf-8", "replace"),
        }
    return out
