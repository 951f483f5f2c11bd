"""All paths of the interface: a row for each, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from guardhook.views.http import about, account, archive, live, replay, runs, traces
from guardhook.views.http.answers import EVENTS, JSON, LINES, Answer
from guardhook.views.http.call import Call
from guardhook.views.http.guard import BODY_BYTES


class Parameter(NamedTuple):
    """One query parameter. kind is a JSON schema type."""

    name: str
    kind: str
    help: str


class Route(NamedTuple):
    """One method of one path. tenants: whether the handler itself shows a tenant only his own; else the route is the owner's alone.

    body and answer name schemas of guardhook.views.http.schemas.
    """

    method: str
    path: str
    handler: Callable[[Call], Answer]
    help: str
    answer: str
    query: tuple[Parameter, ...] = ()
    body: str | None = None
    type: str = JSON
    tenants: bool = False
    errors: tuple[int, ...] = ()
    status: int = 200
    more: tuple[int, ...] = ()  # further statuses of success
    most: int = BODY_BYTES  # of the body
    raw: bool = False  # the handler gets the body's bytes


_WINDOW = (
    Parameter("from_step", "integer", "from this step on"),
    Parameter("to_step", "integer", "up to this step"),
)
_FILTER = (
    Parameter("status", "string", "running, completed, failed or timeout"),
    Parameter("agent", "string", "part of the agent's name"),
    Parameter("tag", "string", "exactly this tag"),
    Parameter("session", "string", "the session id or its start"),
    Parameter("since", "string", "started since a time, or for a while (30d)"),
    Parameter("project", "string", "the project's folder"),
)

_TURN = (
    Parameter("turn", "string", "which turn, or `last`"),
    Parameter("paths", "string", "`hidden` leaves names of files out"),
)

TABLE: tuple[Route, ...] = (
    Route("GET", "/v1/health", about.health, "Whether the interface works.", "Health", tenants=True),
    Route("GET", "/openapi.json", about.openapi, "This description.", "Any", tenants=True),
    Route("GET", "/v1/traces", traces.items, "Recorded traces, as `list --json`.", "TracePage", tenants=True, errors=(400, 404),
          query=(*_FILTER, Parameter("sort", "string", "as `list --sort`"), Parameter("limit", "integer", "at most so many (25; up to 1000)"), Parameter("offset", "integer", "leave out the first"))),
    Route("GET", "/v1/traces/{id}", traces.show, "One trace with its steps, as `show --json`.", "TraceWithSteps", tenants=True, errors=(400, 404),
          query=(*_WINDOW, Parameter("snapshots", "boolean", "with snapshots"), Parameter("steps_only", "boolean", "only the steps"))),
    Route("GET", "/v1/traces/{id}/decisions", traces.decisions, "As `decisions --json`.", "Decisions", tenants=True, errors=(400, 404)),
    Route("GET", "/v1/traces/{id}/why", traces.why, "As `why --json`.", "Why", tenants=True, errors=(400, 404),
          query=(Parameter("step", "integer", "the step in question"),)),
    Route("GET", "/v1/traces/{id}/events", live.trace, "New and ended steps of a trace while it happens.", "StepEvents", tenants=True, errors=(400, 404, 503), type=EVENTS, query=(Parameter("follow", "boolean", "go on after the agent has finished a turn"),)),
    Route("GET", "/v1/events", live.everything, "All that is recorded from now on.", "JournalEvents", tenants=True, errors=(503,), type=EVENTS),
    Route("GET", "/v1/stats", traces.stats, "As `stats --json`.", "Stats", errors=(400, 404),
          query=(Parameter("since", "string", "started since a time, or for a while"), Parameter("project", "string", "the project's folder"))),
    Route("POST", "/v1/runs/replay", replay.replay, "Simulates or forks a rollout file.", "Replay", body="ReplayRequest", tenants=True, more=(202,), errors=(400, 404, 422, 500, 501, 503)),
    Route("GET", "/v1/runs", runs.items, "Recorded runs.", "RunPage", tenants=True, errors=(400, 404),
          query=(Parameter("session", "string", "the session id or its start"), Parameter("limit", "integer", "at most so many (25; up to 1000)"), Parameter("offset", "integer", "leave out the first"))),
    Route("GET", "/v1/runs/{id}", runs.show, "One run.", "Run", tenants=True, errors=(400, 404)),
    Route("GET", "/v1/runs/{id}/rollout", runs.rollout, "The run's rollout, line by line, as `rollout export`.", "RolloutLines", tenants=True, errors=(400, 404), type=LINES),
    Route("POST", "/v1/runs/{id}/archive", archive.archive, "The run's archive, with what the body states about it.", "Archive", body="Stated", tenants=True, errors=(400, 404, 422)),
    Route("GET", "/v1/runs/{id}/account", account.of_run, "What an answer of the run rests on, as `account --json`.", "Account", tenants=True, errors=(400, 404), query=_TURN),
    Route("GET", "/v1/runs/{id}/account/shown", account.shown, "What a pointer of the account points at.", "Shown", tenants=True, errors=(400, 404),
          query=(Parameter("pointer", "string", "as the account names it"), _TURN[1])),
    Route("GET", "/v1/runs/{id}/assessment", account.assessment, "How far an answer of the run stands, as `account --standing --json`.", "Assessment", tenants=True, errors=(400, 404), query=_TURN[:1]),
    Route("POST", "/v1/account", account.of_body, "The account of an archive or a recording that is sent along.", "Account", body="Any", tenants=True, errors=(400, 422), query=_TURN,
          most=account.MOST_BYTES, raw=True),
)  # fmt: skip
