"""Coverage in words: what a person needs to know first stands first, within 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from guardhook.intake.coverage import Missed, SessionCoverage
from guardhook.views.text import Paint, count, one_line, pad

_TOOLS_MOST = 8
_CALLS_MOST = 5


def lines(sessions: Sequence[SessionCoverage], width: int, paint: Paint, *, every: bool = False) -> list[str]:
    """All sessions with something to tell (every: those without as well), then the sum."""
    out: list[str] = []
    whole = 0
    for session in sessions:
        if session.never or session.ran_although_blocked or len(_programs(session)) > 1:
            out += _told(session, width, paint)
        elif every:
            out.append(f"{paint.green('✔')} {_title(session, width - 28)}  {count(session.calls)} call(s), all reached")
        else:
            whole += 1
    gaps = bool(out)
    if gaps:
        out.append("")
    calls = sum(s.calls for s in sessions)
    reached = sum(s.reached for s in sessions)
    judged = sum(s.judged for s in sessions)
    although = sum(len(s.ran_although_blocked) for s in sessions)
    if not calls:
        return [*out, "No tool calls to measure."]
    sign = paint.green("✔") if reached == calls and not although else paint.red("✘")
    out.append(f"{sign} {count(reached)} of {count(calls)} calls reached the gate ({_percent(reached, calls)}), in {count(len(sessions))} session(s)")  # fmt: skip
    if judged < reached:
        out.append(f"  {count(reached - judged)} of them were only recorded: that hook observes, it judges nothing")
    if although:
        out.append(f"  {paint.red(f'{count(although)} ran although guardhook blocked them')}")
    if gaps and whole:
        out.append(f"  {count(whole)} session(s) without a gap are not shown (--all shows them)")
    for number, what in (
        (sum(s.refused for s in sessions), "the harness itself refused, or that have no result yet"),
        (sum(s.without_hook for s in sessions), "for which the harness asks no hook"),
    ):
        if number:
            out.append(f"  not counted: {count(number)} {what}")
    if any(s.by_input for s in sessions):
        out.append("  Gemini CLI tells hooks no call ids: its calls are matched by tool and input")
    return out


def _title(session: SessionCoverage, width: int) -> str:
    parts = [session.dialect, session.session or "no session id", (session.started_at or "")[:16].replace("T", " ")]
    return one_line("  ".join(p for p in parts if p), max(width, 20))


def _told(session: SessionCoverage, width: int, paint: Paint) -> list[str]:
    """A session with gaps: how many, which tools, whose."""
    out = [f"{paint.red('✘')} {_title(session, width - 2)}"]
    if session.project:
        out.append("    " + paint.dim(one_line(session.project, width - 4)))
    if session.never:
        if session.reached:
            said = f"{count(len(session.never))} of {count(session.calls)} calls never reached the gate"
        elif session.hook_events:
            said = f"none of {count(session.calls)} calls reached the gate; only other events of the session did"
        else:
            said = f"none of {count(session.calls)} calls reached the gate: no hook ran in this session"
        out += [f"    {said}", *("      " + t for t in _tools(session.never, width - 6))]
    if session.ran_although_blocked:
        out.append(f"    {paint.red(f'{count(len(session.ran_although_blocked))} ran although they were blocked')}")
        for missed in session.ran_although_blocked[:_CALLS_MOST]:
            out.append("      " + one_line(f"{missed.tool}  {missed.why}  {missed.call or ''}  {missed.at or ''}", width - 6))  # fmt: skip
        if len(session.ran_although_blocked) > _CALLS_MOST:
            out.append(f"      … {count(len(session.ran_although_blocked) - _CALLS_MOST)} more")
    programs = _programs(session)
    if len(programs) > 1:
        said = ", ".join(f"{name} ({count(number)})" for name, number in programs.most_common())
        out.append("    " + one_line(f"perhaps made up: its events came from {said}", width - 4))  # fmt: skip
    return out


def _programs(session: SessionCoverage) -> Counter[str]:
    """Names of the programs that told a session's events; a harness that was updated lies elsewhere but keeps its name."""
    found: Counter[str] = Counter()
    for exe, number in session.callers:
        found[exe.rpartition("/")[2]] += number
    return found


def _tools(never: Sequence[Missed], width: int) -> list[str]:
    """Tools by how often they never reached the gate; those of sub-agents and those that were told too late apart."""
    counted = Counter((m.tool, m.agent is not None, m.why) for m in never)
    found = counted.most_common()
    out = []
    for (tool, agent, why), number in found[:_TOOLS_MOST]:
        notes = ", ".join(n for n in ("in sub-agents" if agent else "", why) if n)
        out.append(one_line(f"{pad(count(number), 6)} {tool}{f'  ({notes})' if notes else ''}", width))
    rest = sum(number for _, number in found[_TOOLS_MOST:])
    return [*out, f"… {count(rest)} of other tools"] if rest else out


def _percent(part: int, whole: int) -> str:
    """Never 100% unless it is all."""
    value = 100 * part / whole
    return "100%" if part == whole else f"{min(value, 99.99):.1f}%" if value < 99.95 else "99.9%"
