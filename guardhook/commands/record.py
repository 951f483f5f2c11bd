"""`guardhook record`: a run's own events on stdin become a trace."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say
from guardhook.core.folders import Folders
from guardhook.intake.streams import FORMATS

if TYPE_CHECKING:
    from guardhook.intake.record import Outcome, Told
    from guardhook.intake.recording import Recording

NATIVE = "native"
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_NAMED = 5  # traces whose ids are printed


@click.command("record")
@click.option("--format", "form", default=NATIVE, metavar="FORMAT", help=f"{NATIVE} (default), {', '.join(FORMATS)}.")
@click.option("--tags", metavar="LIST", help="Tags for every trace, with commas between.")
@click.option("--leave-open", is_flag=True, help="Leave traces running that the stream did not end.")
@reading.as_json
@reading.directory
def command(form: str, tags: str | None, leave_open: bool, as_json: bool, directory: str | None) -> None:
    """Record what a program tells of its run on stdin: the native protocol, or the stream of an agent (`codex exec --json | guardhook record --format codex-exec`)."""
    from guardhook.intake import record, recording
    from guardhook.intake.streams import translator

    if form != NATIVE and form not in FORMATS:
        fail(f"no format {form!r}; there are {', '.join([NATIVE, *FORMATS])}", as_json=as_json)
    folders = resolve(directory)
    told = record.Told(lambda message: say(f"guardhook record: {message}"))
    into = recording.Recording(
        folders, tags=tag_list(tags), redaction=redaction(folders, as_json), root=recording.project_here(), warn=told
    )  # fmt: skip
    if os.isatty(0) and not as_json:
        say("events are read from the terminal; Ctrl-D ends them")
    live = record.is_live(0)
    reader = record.Reader(into, None if form == NATIVE else translator(form, live=live), told)
    try:
        with _signals() as (signals, wake):
            outcome = reader.read(0, signals, wake)
            stopped = None if outcome.signal is None else signal.Signals(outcome.signal).name
            record.finalize(into, outcome, wrapped=_wrapped(), leave_open=leave_open, signal=stopped)
    except OSError as error:
        fail(f"stdin: {error.strerror or error}", code=1, as_json=as_json)
    finally:
        into.close()
    with reading.heard():
        _print(into, outcome, told, as_json)
    if outcome.signal is not None:
        raise SystemExit(128 + outcome.signal)
    if outcome.lines and not into.applied:
        raise SystemExit(1)


def tag_list(text: str | None) -> list[str]:
    """The tags of a `--tags` value."""
    return [] if text is None else list(dict.fromkeys(t.strip() for t in text.split(",") if t.strip()))


def redaction(folders: Folders, as_json: bool) -> str:
    """What is kept of recorded runs: `[capture] mode`."""
    from guardhook.journal.redact import MODES
    from guardhook.policy import settings

    try:
        mode = settings.read(folders).get("capture.mode", "redacted")
    except settings.SettingsError as error:
        fail(str(error), code=1, as_json=as_json)
    return mode if isinstance(mode, str) and mode in MODES else "redacted"


def _wrapped() -> str | None:
    """The trace of a `guardhook run` around this process, while that one lives."""
    channel = os.environ.get("GUARDHOOK_EVENTS", "")
    return os.environ.get("GUARDHOOK_TRACE_ID") or None if channel and os.path.exists(channel) else None


@contextlib.contextmanager
def _signals() -> Iterator[tuple[list[int], int]]:
    """Signals that end the recording, as they come, and a descriptor that wakes a waiting reader. Ignored ones stay ignored."""
    received: list[int] = []
    wake, written = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(written, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    kept = {}
    for name in _ENDING:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            kept[number] = signal.signal(number, lambda got, frame: received.append(got))
    try:
        yield received, wake
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(wake)
        os.close(written)


def _print(into: Recording, outcome: Outcome, told: Told, as_json: bool) -> None:
    from guardhook.views.text import box, count, one_line

    steps = sum(t.steps for t in into.traces.values())
    if as_json:
        reading.print_json({
            "ok": not outcome.lines or into.applied > 0,
            "traces": [
                {"id": t.id, "status": t.kept, "steps": t.steps, "stored": t.stored} for t in into.traces.values()
            ],
            "lines": outcome.lines,
            "events_applied": into.applied,
            "events_lost": into.lost,
            "steps": steps,
            "finalized_as_timeout": len(outcome.finalized),
            "warnings": told.count,
            "warnings_by_kind": dict(told.kinds.most_common()),
        })  # fmt: skip
        return
    rows = [
        ("Traces touched", count(len(into.traces))),
        ("Events applied", count(into.applied)),
        ("Total steps", count(steps)),
        ("Finalized as timeout", count(len(outcome.finalized))),
        ("Warnings", count(told.count)),
    ]
    if into.lost:
        rows.append(("Events lost", count(into.lost)))
    for trace in list(into.traces.values())[:_NAMED]:
        rows.append(("Trace", one_line(f"{trace.id}  {trace.kept}", 200)))
    for line in box(rows, reading.width()):
        click.echo(line)
    if told.count > len(told.kinds):
        for kind, number in told.kinds.most_common(10):
            say(f"  {number:,} × {kind}")
