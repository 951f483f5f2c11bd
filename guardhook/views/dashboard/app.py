"""The dashboard itself. Everything recorded is put on the screen as escaped text, never as markup."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, RichLog, Sparkline, Static

from guardhook.store import StoreError
from guardhook.store.model import Trace
from guardhook.views.dashboard.facts import Facts, by_status
from guardhook.views.text import cost, count, duration, fit, one_line, pad, relative

_COLOURS = {"running": "cyan", "completed": "green", "failed": "red", "timeout": "yellow"}
_SYMBOLS = {"running": "●", "completed": "✔", "failed": "✘", "timeout": "⧖"}
_ACTIONS = {"deny": "red", "require_review": "yellow", "warn": "yellow"}
_BAR = 14
# Widths are given: measured ones stay those of the headings when rows come before the table was laid out.
_COLUMNS = (
    ("ID", 14),
    ("Agent", 22),
    ("Status", 11),
    ("Steps", 9),
    ("Duration", 9),
    ("Tokens", 12),
    ("Started", 10),
    ("Project", 30),
)
_PICTURE_COLUMNS = 240

Load = Callable[[], Facts]
Steps = Callable[[str], list[str]]


class Timeline(ModalScreen[None]):
    """The end of one trace's timeline."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "back"),
        Binding("ctrl+c", "app.quit", "quit", priority=True),
    ]

    def __init__(self, title: str, lines: list[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        log = RichLog(markup=False, highlight=False, wrap=False, id="timeline")
        log.border_title = Text(self._title)
        yield log

    def on_mount(self) -> None:
        log = self.query_one(RichLog)
        for line in self._lines:
            log.write(Text(line))
        log.focus()


class Dashboard(App[None]):
    """load gives one picture of the store, steps the end of a trace's timeline; both are called in threads. refresh: seconds."""

    TITLE = "guardhook"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", priority=True, show=False),
        Binding("r", "reload", "refresh"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 (an instance's variable in the base class)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012
    CSS = """
    #top { height: 11; }
    #top > Static, #top > Vertical { border: round $surface-lighten-2; padding: 0 1; }
    #statuses { width: 36; } #numbers { width: 36; } #charts { width: 1fr; }
    #charts Sparkline { height: 2; }
    #traces { height: 1fr; border: round $surface-lighten-2; }
    #bottom { height: 14; }
    #objections { width: 1fr; border: round $error; }
    #activity { width: 1fr; border: round $surface-lighten-2; }
    #foot { height: 1; padding: 0 1; color: $text-muted; }
    .-short #top { height: 9; } .-short #bottom { height: 7; } .-narrow #charts { display: none; } .-narrow #numbers { width: 1fr; }
    Timeline { align: center middle; } #timeline { width: 94%; height: 90%; border: round $accent; background: $surface; padding: 0 1; }
    """

    def __init__(self, load: Load, steps: Steps, refresh: float) -> None:
        super().__init__()
        self._load = load
        self._steps = steps
        self._seconds = refresh
        self._shown: Facts | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static(id="statuses", markup=False)
            yield Static(id="numbers", markup=False)
            with Vertical(id="charts"):
                yield Static("Traces a day, last 30 days", markup=False)
                yield Sparkline([], id="days")
                yield Static("Scores of the last 20 evaluations", markup=False, id="scored")
                yield Sparkline([], id="scores")
        table: DataTable[Text] = DataTable(id="traces", cursor_type="row", zebra_stripes=True)
        table.border_title = "Traces"
        yield table
        with Horizontal(id="bottom"):
            for name, title in (("objections", "Objections of the gate"), ("activity", "Activity")):
                log = RichLog(id=name, markup=False, highlight=False, wrap=False, auto_scroll=name == "activity")
                log.border_title = title
                yield log
        yield Static(id="foot", markup=False)

    def on_mount(self) -> None:
        for widget, title in (("#statuses", "Status"), ("#numbers", "Numbers"), ("#charts", "Charts")):
            self.query_one(widget).border_title = title
        table = self.query_one(DataTable)
        for name, width in _COLUMNS:
            table.add_column(name, key=name, width=width)
        table.focus()
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.set_interval(self._seconds, self.action_reload)
        self.action_reload()

    def action_reload(self) -> None:
        """Asks for a new picture; one at a time."""
        if not any(worker.group == "load" and worker.is_running for worker in self.workers):
            self.run_worker(self._fetch, thread=True, group="load")

    def _fetch(self) -> None:
        try:
            facts = self._load()
        except StoreError as error:
            self.call_from_thread(self._say, one_line(error.message, 200))
            return
        self.call_from_thread(self.show, facts)

    def _say(self, text: str) -> None:
        self.query_one("#foot", Static).update(Text(text, style="red"))

    def show(self, facts: Facts) -> None:
        """Puts a picture on the screen. The selected trace stays selected."""
        self._shown = facts
        self.query_one("#statuses", Static).update(_statuses(facts))
        self.query_one("#numbers", Static).update(_numbers(facts))
        self.query_one("#days", Sparkline).data = [float(n) for n in facts.days]
        self.query_one("#scores", Sparkline).data = facts.scores
        said = "Scores of the last 20 evaluations" if facts.scores else "No evaluations yet"
        self.query_one("#scored", Static).update(Text(said))
        self._table(facts)
        self._logs(facts)
        at = time.strftime("%H:%M:%S")
        self.query_one("#foot", Static).update(
            Text(f"q quit  r refresh  enter timeline   {at}, every {self._seconds:g} s")
        )

    def _table(self, facts: Facts) -> None:
        table = self.query_one(DataTable)
        selected = self._selected()
        row, scrolled = table.cursor_row, table.scroll_y
        table.clear()
        for trace in facts.traces:
            table.add_row(*_cells(trace), key=trace.id)
        names = [trace.id for trace in facts.traces]
        if selected in names:
            row = names.index(selected)
        if names:
            table.move_cursor(row=min(row, len(names) - 1), scroll=False)
            table.scroll_to(y=scrolled, animate=False)
        table.border_title = f"Traces ({len(names)} of {facts.total:,})"

    def _selected(self) -> str | None:
        table = self.query_one(DataTable)
        if not table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def _logs(self, facts: Facts) -> None:
        log = self.query_one("#objections", RichLog)
        log.clear()
        if facts.policies:
            log.write(Text("most often: " + ", ".join(f"{one_line(n, 30)} {c}" for n, c in facts.policies), style="dim"))  # fmt: skip
        for trace, step in facts.objections:
            action = step.chosen or ""
            said = Text(f"{(step.started_at or '')[11:19]} ", style="dim")
            said.append(one_line(action.replace("_", " "), 16), style=_ACTIONS.get(action, ""))
            said.append(f" {one_line(step.name.removeprefix('guard:'), 34)} ", style="bold")
            said.append(one_line(step.rationale or "", _PICTURE_COLUMNS))
            said.append(f" ({one_line(trace.agent_name, 20)})", style="dim")
            log.write(said)
        if not facts.objections:
            log.write(Text("none in the newest traces", style="dim"))
        activity = self.query_one("#activity", RichLog)
        activity.clear()
        for at, trace, step in facts.activity:
            line = Text(f"{at[11:19]} ", style="dim")
            line.append(one_line(trace.agent_name, 14), style="cyan")
            line.append(f" #{step.step_number} ")
            line.append(one_line(step.name, 40), style="red" if step.error is not None else "bold")
            line.append(" " + one_line(step.error or step.input_json, _PICTURE_COLUMNS), style="dim")
            activity.write(line)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Opens the timeline of the selected trace."""
        name = event.row_key.value
        if name is not None:
            self.run_worker(lambda: self._open(name), thread=True, group="open", exclusive=True)

    def _open(self, name: str) -> None:
        try:
            lines = self._steps(name)
        except StoreError as error:
            self.call_from_thread(self._say, one_line(error.message, 200))
            return
        self.call_from_thread(self.push_screen, Timeline(one_line(name, 60), lines))


def _statuses(facts: Facts) -> Text:
    rows = by_status(facts)
    most = max((n for _, n in rows), default=0)
    out = Text()
    for status, number in rows:
        length = 0 if most == 0 else max(1 if number else 0, round(_BAR * number / most))
        out.append(f"{_SYMBOLS[status]} {status:<10}", style=_COLOURS[status])
        out.append("█" * length, style=_COLOURS[status])
        out.append(f" {number:,}\n")
    live = [trace for trace in facts.traces if trace.status == "running"]
    out.append(f"\n{len(live)} under way" if live else "\nnothing under way", style="bold" if live else "dim")
    for trace in live[:3]:
        out.append(f"\n  {one_line(trace.agent_name, 18)} {trace.step_count:,} steps")
    return out


def _numbers(facts: Facts) -> Text:
    overall = facts.stats.get("overall")
    if not isinstance(overall, dict):
        return Text()
    average = duration(overall["avgDurationMs"])
    if overall["avgDurationSample"] != overall["traces"]:
        average += f" (over {count(overall['avgDurationSample'])})"
    rows = (
        ("Traces", count(overall["traces"])),
        ("Steps", count(overall["steps"])),
        ("Evals", count(overall["evals"])),
        ("Active policies", count(overall["policies"])),
        ("Avg duration", average),
        ("Total tokens", count(overall["totalTokens"])),
        ("Total cost", cost(overall["totalCost"])),
    )
    return Text("\n".join(f"{name:<16} {value}" for name, value in rows))


def _cells(trace: Trace) -> list[Text]:
    project = trace.project or ""
    short = project if len(project) <= 30 else "…" + project[-29:]
    return [
        Text(pad(one_line(trace.id, 14), 14)),
        Text(fit(one_line(trace.agent_name, 22), 22)),
        Text(f"{_SYMBOLS.get(trace.status, '?')} {trace.status}", style=_COLOURS.get(trace.status, "")),
        Text(count(trace.step_count), justify="right"),
        Text(duration(trace.effective_duration_ms), justify="right"),
        Text(count(trace.effective_tokens), justify="right"),
        Text(relative(_began(trace), int(time.time() * 1_000_000))),
        Text(one_line(short, 30)),
    ]


def _began(trace: Trace) -> int | None:
    from guardhook.store.instants import micros

    return micros(trace.started_at)
