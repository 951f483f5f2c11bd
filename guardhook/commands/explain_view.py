"""`guardhook explain` for a person: 80 columns, colours only on a terminal, nothing unescaped that came from the call."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guardhook.commands import explain_tree
from guardhook.commands.explained import parsed
from guardhook.core.jsontext import printable

if TYPE_CHECKING:
    from guardhook.commands.explained import Explained
    from guardhook.core.effect import Effect

WIDTH = 80
_LINES = 40  # lines of a tree, and of a command, that are shown
_NEAR = 6
_STYLES = {"deny": "bold red", "require_review": "bold yellow", "warn": "cyan", "allow": "green"}


def show(found: Explained) -> None:
    """Prints everything on stdout."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=WIDTH)
    with console.capture() as captured:
        _all(console, found)
    # Tables are padded to their width: not wanted where the output is kept or searched.
    click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False, color=True)


def _all(console: Console, found: Explained) -> None:
    _call(console, found)
    for number in range(len(found.event.commands)):
        _tree(console, found, number)
    _effects(console, found)
    _matched(console, found)
    _nearly(console, found)
    _verdict(console, found)
    _answers(console, found)
    if found.notes:
        console.print()
        for line in found.notes:
            console.print(Text("note: " + printable(line), style="yellow"), overflow="fold")


def _rows(console: Console, rows: Iterable[tuple[str | Text, str | Text]], width: int, indent: int = 2) -> None:
    """Two columns, the second one folded below itself."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=width + indent, no_wrap=True)
    grid.add_column(overflow="fold")
    empty = True
    for left, right in rows:
        empty = False
        first = Text(" " * indent)
        first.append_text(left if isinstance(left, Text) else Text(left))
        grid.add_row(first, right if isinstance(right, Text) else Text(right))
    if not empty:
        console.print(grid)


def _head(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _call(console: Console, found: Explained) -> None:
    event = found.event
    rows: list[tuple[str, str]] = []
    for command in event.commands:
        lines = command.split("\n")
        rows += [("command" if not n else "", printable(line, 2000)) for n, line in enumerate(lines[:_LINES])]
        if len(lines) > _LINES:
            rows.append(("", f"… {len(lines) - _LINES} more lines"))
    rows += [(target.op, printable(target.path, 400)) for target in event.files[:_LINES]]
    rows += [("url", printable(url, 400)) for url in event.urls[:_LINES]]
    if event.tool:
        rows.append(("tool", f"{printable(event.tool, 100)} ({event.kind})"))
    rows.append(("event", f"{event.event} of {printable(event.dialect, 40)}"))
    if event.cwd:
        rows.append(("runs in", printable(event.cwd, 400)))
    if found.project and found.project != event.cwd:
        rows.append(("project", printable(found.project, 400)))
    _rows(console, rows, 8, 0)


def _tree(console: Console, found: Explained, number: int) -> None:
    result = parsed(found, number)
    if result is None:
        return
    _head(console, "Parse tree" if len(found.event.commands) == 1 else f"Parse tree {number + 1}")
    if not result["ok"]:
        console.print(Text(f"  not understood at character {result['at']}: {printable(result['error'])}"))
        return
    lines = explain_tree.lines(result["tree"])
    for depth, label, text in lines[:_LINES]:
        indent = "  " * (min(depth, 20) + 1)
        line = Text(indent)
        line.append(printable(label, 60), style="dim")
        line.append(("  " if text else "") + text)
        console.print(line, overflow="ellipsis", no_wrap=True)
    if len(lines) > _LINES or result["cut"]:
        console.print(Text(f"  … {max(0, len(lines) - _LINES)} more; --json shows them"))


def _effects(console: Console, found: Explained) -> None:
    _head(console, "Effects")
    rows: list[tuple[str | Text, str | Text]] = []
    for number, effect in enumerate(found.effects[:_LINES], 1):
        line = Text(effect.kind, style="bold")
        if effect.flags:
            line.append(":" + ":".join(sorted(effect.flags)), style="")
        line.append("  " + target(effect))
        rows.append((f"{number:>2}", line))
        rows += [("", Text(more, style="dim")) for more in _details(found, effect)]
    _rows(console, rows, 2)
    if not found.effects:
        console.print(Text("  none"))
    if len(found.effects) > _LINES:
        console.print(Text(f"  … {len(found.effects) - _LINES} more; --json shows them"))


def target(effect: Effect) -> str:
    """What an effect is on, in a few words."""
    if effect.path:
        return printable(effect.path, 300)
    if effect.host:
        return printable(effect.host, 200)
    if effect.git:
        return printable(f"git {effect.git}", 100)
    return printable(" ".join((effect.program, *effect.argv)).strip(), 200)


def _details(found: Explained, effect: Effect) -> list[str]:
    out = []
    excerpt = found.excerpt(effect)
    if excerpt is not None and effect.span is not None:
        out.append(f"from {effect.span[0]}-{effect.span[1]}: {printable(excerpt, 120)}")
    if effect.path_classes:
        out.append("path class: " + ", ".join(sorted(effect.path_classes)))
    if effect.detail and effect.detail != effect.path:
        out.append(printable(effect.detail, 200))
    if effect.via:
        out.append("through " + printable(" > ".join(effect.via), 120))
    if effect.lookalike:
        out.append("seen only after look-alike characters were folded")
    return out


def _matched(console: Console, found: Explained) -> None:
    _head(console, "Policies that match")
    matches = found.verdict.matches if found.verdict is not None else []
    rows: list[tuple[str | Text, str | Text]] = []
    for m in matches:
        at = found.number(m.effect)
        rows.append((_action(m.action), Text(f"{printable(m.policy, 100)} ({m.layer})", style="bold")))
        rows.append(("", printable(m.why, 300) + ("" if at is None else f"; effect {at + 1}")))
        rows.append(("", printable(m.reason)))
        if m.suggest:
            rows.append(("", "instead: " + printable(m.suggest)))
    _rows(console, rows, 6)
    if not matches:
        console.print(Text("  none"))


def _nearly(console: Console, found: Explained) -> None:
    if not found.near:
        return
    _head(console, "Policies that nearly match")
    rows: list[tuple[str | Text, str | Text]] = []
    for near in found.near[:_NEAR]:
        at = found.number(near.effect)
        where = "" if at is None else f" (effect {at + 1})"
        rows.append((_action(near.action), f"{printable(near.policy, 100)} ({near.layer})"))
        if near.excused:
            rows.append(("", Text(f"kept out by {_excuse(near.excused)}{where}", style="dim")))
        else:
            rows.append(("", Text(f"missing: {printable(near.missing, 300)}{where}", style="dim")))
    _rows(console, rows, 6)
    if len(found.near) > _NEAR:
        console.print(Text(f"  … {len(found.near) - _NEAR} more; --json shows them"))


def _excuse(word: str) -> str:
    return "its `unless`" if word == "unless" else "an exception"


def _action(action: str) -> Text:
    return Text(action.removeprefix("require_"), style=_STYLES[action])


def _verdict(console: Console, found: Explained) -> None:
    _head(console, "Verdict")
    verdict = found.verdict
    if verdict is None:
        console.print(Text("  none: this event is only recorded"))
        return
    line = Text("  ")
    line.append_text(_action(verdict.action))
    if verdict.policy:
        line.append(f" by {printable(verdict.policy, 100)}" + (f" ({verdict.layer})" if verdict.layer else ""))
    elif verdict.cause != "policy":
        line.append(f" because of a fault ({verdict.cause})")
    else:
        line.append(" (no policy objects)")
    if verdict.mode != "enforce":
        line.append(f", {verdict.mode}")
    console.print(line, overflow="fold")
    rows: list[tuple[str, str]] = []
    if verdict.reason:
        rows.append(("reason", printable(verdict.reason)))
    if verdict.suggest:
        rows.append(("instead", printable(verdict.suggest)))
    if verdict.degraded:
        rows.append(("weaker", printable(verdict.degraded)))
    _rows(console, rows, 8)


def _answers(console: Console, found: Explained) -> None:
    _head(console, "Answers")
    rows: list[tuple[str | Text, str | Text]] = []
    for harness, said, answer in found.answers:
        words = Text(f"status {answer.exit}")
        if said is not None and found.verdict is not None and said.action != found.verdict.action:
            words.append(f", {said.action}" + (f" by {printable(said.policy, 100)}" if said.policy else ""))
        if not answer.stdout and not answer.stderr:
            words.append(", silence")
        rows.append((printable(harness, 14), words))
        for name, data in (("stdout", answer.stdout), ("stderr", answer.stderr)):
            if data:
                text = printable(data.decode("utf-8", "replace").rstrip("\n"), 1200)
                rows.append(("", Text.assemble((name + " ", "dim"), text)))
    _rows(console, rows, 12)
