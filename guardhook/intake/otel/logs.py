"""Log records become parts of traces: what Claude Code, Codex, Gemini CLI and Qwen Code tell of their sessions.
Messages that the GenAI conventions put into log records go to the step of their span.

One session of one client is one trace. Events that say nothing about the run (plugins that were loaded, phases of starting up) are known and left out;
records that are no event of these clients are refused, with how many they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from guardhook.intake.otel import claude_code, codex, gemini, spans
from guardhook.intake.otel.pieces import Event, Mapped, Names, Piece, said, trace_name
from guardhook.intake.otel.records import Attributes, Log
from guardhook.store.instants import micros

# What a client's module makes of an event: the parts, each without `part` and `trace`.
Events = Callable[[str, Attributes, Log], list[Event]]


class Client:
    """One client whose log records are understood. prefix stands before the names of its events."""

    def __init__(self, dialect: str, agent: str, prefix: str, events: Events, version: Sequence[str]) -> None:
        self.dialect = dialect
        self.agent = agent
        self.prefix = prefix
        self.events = events
        self.version = version
        self.format = f"{agent if agent != 'gemini' else 'gemini-cli'}-logs"


CLIENTS = (
    Client("claude-code", "claude-code", "claude_code.", claude_code.events, ("app.version", "service.version")),
    Client("codex", "codex", "codex.", codex.events, ("app.version", "service.version")),
    Client("gemini", "gemini", "gemini_cli.", gemini.events, ()),  # its service.version is that of Node
    Client("qwen-code", "qwen-code", "qwen-code.", gemini.events, ()),
)
_SERVICES = {"claude-code": CLIENTS[0], "gemini-cli": CLIENTS[2], "qwen-code": CLIENTS[3]}
_SESSION = ("session.id", "conversation.id", "gen_ai.conversation.id")


def client_of(service: str, *names: object) -> tuple[Client, str] | None:
    """The client that an event is from, and the event's name without the client's prefix; names come in the order in which they count."""
    for name in names:
        if not isinstance(name, str):
            continue
        for client in CLIENTS:
            if name.startswith(client.prefix):
                return client, name[len(client.prefix) :]
    client_ = _SERVICES.get(service) or (CLIENTS[1] if service.startswith("codex") else None)
    plain = next((name for name in names if isinstance(name, str) and name), None)
    return None if client_ is None or plain is None else (client_, plain)


def session_of(attributes: Mapping[str, object], resource: Mapping[str, object]) -> str | None:
    """The session that a record names."""
    return said(attributes, *_SESSION) or said(resource, *_SESSION)


def mapped(logs: Sequence[Log]) -> Mapped:
    """The parts that these records are."""
    names = Names()
    pieces: list[Piece] = []
    refused = ignored = 0
    for log in logs:
        attributes = log.attributes
        found = client_of(
            log.source.service, attributes.get("event.name"), log.event_name, attributes.get("name"), log.body
        )
        if found is None or (attributes.get("event.name") is None and not _event(log)):
            messages = _messages(log, names)
            if messages is None:
                refused += 1
            else:
                pieces.append(messages)
            continue
        client, name = found
        own = names.of(log.time, log.observed, name, log.body, attributes, log.trace_id, log.span_id)
        session = session_of(attributes, log.source.attributes)
        trace = trace_name(client.format, session) if session is not None else trace_name("record", own)
        facts: Event = {
            "agent": client.agent,
            "trigger": "user_message",
            "session": session,
            "dialect": client.dialect,
            "format": client.format,
            "version": said(attributes, *client.version) or said(log.source.attributes, *client.version),
        }
        events = client.events(name, attributes, log)
        ignored += not events
        for index, event in enumerate(events):
            event["part"] = own if index == 0 else f"{own}.{index}"
            if event.get("cause") == "":  # the one before it
                event["cause"] = own
            _time(event, log)
            if log.span_id and event["role"] == "step":
                metadata = event.setdefault("metadata", {})
                assert isinstance(metadata, dict)
                metadata["otel_span_id"] = log.span_id
            event["trace"] = {key: value for key, value in facts.items() if value is not None}
            pieces.append(Piece(trace, event))
    why = f"{refused} of {len(logs)} records are no events of a client that is known here" if refused else ""
    return Mapped(pieces, len(logs), refused, why, ignored)


def _messages(log: Log, names: Names) -> Piece | None:
    """Messages of a model call that are log records beside the call's span, as some instrumentations of the GenAI conventions write them."""
    name = log.event_name or said(log.attributes, "event.name") or ""
    body = log.body if isinstance(log.body, dict) else {}
    went, came = spans.messages_of(name, {**log.attributes, **body})
    if not (went or came) or not log.trace_id or not log.span_id:
        return None
    own = names.of(log.time, log.observed, name, log.body, log.attributes, log.trace_id, log.span_id)
    event: Event = {"part": own, "role": "detail", "within": log.span_id, "input": went, "output": came}
    _time(event, log)
    facts: Event = {
        "service": log.source.service or "otel-agent",
        "trigger": "api",
        "format": spans.FORMAT,
        "rooted": True,
    }
    event["trace"] = {**facts, "metadata": {"otel_trace_id": log.trace_id}}
    return Piece(trace_name("trace", log.trace_id), event)


def _event(log: Log) -> bool:
    """Whether a record without event.name is an event all the same: its name, or its whole text, is one of ours."""
    names = (log.event_name, log.attributes.get("name"), log.body)
    return any(isinstance(name, str) and name.startswith(client.prefix) for name in names for client in CLIENTS)


def _time(event: Event, log: Log) -> None:
    """An event is told when it is over: it began its duration earlier."""
    moment = (log.time or log.observed) // 1000
    if not moment:
        moment = micros(said(log.attributes, "event.timestamp")) or 0
    if moment <= 0:
        return
    duration = event.get("duration_ms")
    lasted = duration * 1000 if isinstance(duration, int) and duration * 1000 < moment else 0
    event["at"] = moment - lasted
    if event["role"] == "step":
        event["ended"] = moment
