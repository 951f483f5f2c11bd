"""Kiro CLI (Amazon Q) and the Kiro IDE. From documents, sources and reports; not run. Only status 2 with a text on stderr blocks."""

from __future__ import annotations

from guardhook.core.event import Event
from guardhook.dialects import other, simple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.dialects.shared import Limits, Payload

ID = "kiro-cli"
ROUTES = other.ROUTES


def _read(payload: Payload, event_arg: str | None) -> Event:
    event = other.read_any(ID, payload, event_arg)
    if "hook_event_name" not in payload:
        event.dialect = "kiro-env"
    elif (event.session or "").startswith("sess_"):
        event.dialect = "kiro-ide"
    return event


_self = simple.Dialect(ID, ROUTES, reader=_read, also_named=("kiro-ide", "kiro-env"))
recognise, read, answer, fallback = _self.recognise, _self.read, _self.answer, _self.fallback


def limits() -> Limits:
    return simple.limits_of(
        unit="ms",
        timeout=10000,
        events=("preToolUse",),
        observed=("agentSpawn", "userPromptSubmit", "postToolUse", "stop"),
        source="documents, reports",
        deny="stderr + exit 2",
        ask="as deny",
        open=(
            "a crash, a timeout and any other status let the call run",
            "in CLI 2.3.0 hooks are reported not to fire",
        ),
    )
