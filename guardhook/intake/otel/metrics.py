"""Metric points are summed up: those that name a session of a known client belong to its trace, all of them to the server's own account."""

from __future__ import annotations

from collections.abc import Sequence

from guardhook.intake.otel.logs import Client, client_of, session_of
from guardhook.intake.otel.pieces import Event, Mapped, Names, Piece, said, trace_name
from guardhook.intake.otel.records import Point

# Attributes that tell what was measured; all others (users, terminals, versions) are left out of a series' name.
_SERIES = (
    "type", "model", "decision", "tool_name", "tool", "language", "query_source", "status", "status_code", "success", "function_name", "decision_source",
    "hook_name", "hook_event_name", "gen_ai.token.type", "gen_ai.request.model", "gen_ai.operation.name", "start_type", "skill.name", "agent.name",
)  # fmt: skip
_NAME_CHARS = 200


class Totals:
    """What the server tells of metrics when it stops: per metric, how many points came."""

    MOST = 500

    def __init__(self) -> None:
        self.points = 0
        self.by_metric: dict[str, int] = {}

    def add(self, points: Sequence[Point]) -> None:
        self.points += len(points)
        for point in points:
            name = point.metric[:_NAME_CHARS]
            if name in self.by_metric or len(self.by_metric) < self.MOST:
                self.by_metric[name] = self.by_metric.get(name, 0) + 1


def mapped(points: Sequence[Point]) -> Mapped:
    """The parts that these points are: one for each session."""
    names = Names()
    sessions: dict[str, tuple[Client, str, list[Point]]] = {}
    ignored = 0
    for point in points:
        session = session_of(point.attributes, point.source.attributes)
        found = client_of(point.source.service, point.metric)
        if session is None or found is None:
            ignored += 1
            continue
        client = found[0]
        sessions.setdefault(trace_name(client.format, session), (client, session, []))[2].append(point)
    pieces = [Piece(trace, _part(client, session, own, names)) for trace, (client, session, own) in sessions.items()]
    return Mapped(pieces, len(points), ignored=ignored)


def _part(client: Client, session: str, points: Sequence[Point], names: Names) -> Event:
    series: dict[str, object] = {}
    for point in points:
        name = _series(point)
        adds = point.delta and point.kind not in ("gauge", "summary")
        before = series.get(name)
        value = point.value
        if adds and isinstance(before, dict) and isinstance(before["value"], float):
            value += before["value"]
        series[name] = {"value": value, "unit": point.unit, "adds": adds}
    facts: Event = {
        "agent": client.agent,
        "trigger": "user_message",
        "session": session,
        "dialect": client.dialect,
        "format": client.format,
    }
    part = names.of(*[(p.metric, p.attributes, p.time, p.value) for p in points])
    return {"part": part, "role": "metrics", "metrics": series, "trace": facts}


def _series(point: Point) -> str:
    told = [f"{key}={value}" for key in _SERIES if (value := said(point.attributes, key)) is not None]
    return (f"{point.metric}{{{','.join(told)}}}" if told else point.metric)[:_NAME_CHARS]
