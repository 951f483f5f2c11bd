"""`guardhook explain`: what a call would do and how it would be judged and answered. Looks only: runs nothing, records nothing.

JSON, version 1 (keys are only ever added):

    {"ok": true, "v": 1,
     "event": {"dialect", "native_event", "event", "tool", "kind", "cwd", "project"},
     "commands": [{"text", "shell", "parse": {"ok": true, "tree": NODE, "cut": bool} | {"ok": false, "error", "at"} | null}],
     "files": [{"op", "path"}], "urls": [str],
     "effects": [{"kind", "flags": [str], "program", "argv": [str], "path", "path_classes": [str], "host", "git", "detail", "via": [str],
                  "span": [start, end] | null, "excerpt": str | null, "lookalike": bool}],
     "matched": [{"policy", "action", "layer", "why", "reason", "suggest", "span", "lookalike", "effect": number | null}],
     "nearly": [{"policy", "action", "layer", "held": [str], "missing": str | null, "excused": "unless" | "exception" | null,
                 "effect": number | null}],
     "verdict": {"action", "policy", "layer", "reason", "suggest", "span", "mode", "cause", "degraded"} | null,
     "answers": [{"harness", "action", "policy", "exit", "stdout", "stderr"}],
     "notes": [str]}

NODE is {"type", "span", "text", "children": [NODE], …} with words, assignments, redirects, name, word, after and background where they apply.
Spans are character ranges of the command (of the first one where there are several: then effects have none). verdict is null for events
that are only recorded. The verdict is that of the dialect in event; `answers` judges the same call in the others' names.
"""

from __future__ import annotations

import os
import sys

import click

from guardhook.commands.explained import SHELL_TOOL, as_data, explain, native_name
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail
from guardhook.core.event import Event

# The field that the argument of `--tool NAME ARGUMENT` fills, by the tool's kind.
_MAIN_FIELD = {
    "shell": "command", "file_write": "file_path", "file_edit": "file_path", "file_read": "file_path", "search": "pattern",
    "web_fetch": "url", "subagent": "prompt",
}  # fmt: skip


@click.command("explain", context_settings={"ignore_unknown_options": False})
@click.argument("call", required=False, metavar="[COMMAND | ARGUMENT | -]")
@click.option("--cwd", metavar="DIR", help="Where the call would run (default: here).")
@click.option(
    "--tool", metavar="NAME", help="A tool other than the shell; ARGUMENT is then its path, address or pattern."
)
@click.option("--input", "given", metavar="JSON", help="The tool's whole input as a JSON object.")
@click.option("--dialect", metavar="ID", help="Judge in this dialect (default: claude-code, or the payload's own).")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    call: str | None,
    cwd: str | None,
    tool: str | None,
    given: str | None,
    dialect: str | None,
    directory: str | None,
    as_json: bool,
) -> None:
    """Show what a call would do and how it would be judged. Nothing is run and nothing is recorded.

    \b
    guardhook explain 'rm -rf build'
    guardhook explain --tool write_file ~/.ssh/config
    guardhook explain --tool mcp__db__query --input '{"sql": "drop table users"}'
    guardhook explain - < payload.json
    """
    from guardhook.dialects import table

    if dialect is not None and dialect not in table.MODULES:
        fail(f"there is no dialect {dialect!r}; use one of {', '.join(table.MODULES)}", as_json=as_json)
    if call == "-" and tool is None and given is None:
        event = _payload(dialect, cwd, as_json)
    else:
        event = _call(call, tool, given, dialect or "claude-code", cwd, as_json)
    found = explain(resolve(directory), event)
    if as_json:
        emit(as_data(found))
        return
    from guardhook.commands.explain_view import show

    show(found)


# --- the call ------------------------------------------------------------------------------------------------------


def _call(call: str | None, tool: str | None, given: str | None, dialect: str, cwd: str | None, as_json: bool) -> Event:
    from guardhook.dialects import names, tools

    event = Event(dialect, native_name(dialect, "pre_tool"), "pre_tool", {})
    event.tool = tool or SHELL_TOOL.get(dialect, "Bash")
    event.cwd = os.path.abspath(os.path.expanduser(cwd)) if cwd else os.getcwd()
    if not event.tool.strip():
        fail("--tool: a name is needed", as_json=as_json)
    if given is not None:
        if call is not None:
            fail("--input holds the whole input: leave the argument out", as_json=as_json)
        if tool is None:
            fail("--input needs --tool NAME", as_json=as_json)
        event.input = _object(given, "--input", as_json)
    elif call is None:
        fail(
            "nothing to explain",
            hints=["give a command, `--tool NAME` with an argument or --input JSON, or - to read a payload from stdin"],
            as_json=as_json,
        )
    else:
        key = _MAIN_FIELD.get(names.kind_of(event.tool)) if tool is not None else "command"
        if key is None:
            fail(f"--tool {tool}: say what its input is with --input JSON", as_json=as_json)
        event.input = {key: call}
    tools.fill(event)
    return event


def _object(text: str, where: str, as_json: bool) -> dict[str, object]:
    from guardhook.core.jsontext import PayloadError, loads_text

    try:
        value = loads_text(text)
    except PayloadError as error:
        fail(f"{where}: {error}", hints=['for example {"file_path": "a.txt", "content": "x"}'], as_json=as_json)
    if not isinstance(value, dict):
        fail(f"{where}: a JSON object is needed", as_json=as_json)
    return value


def _payload(dialect: str | None, cwd: str | None, as_json: bool) -> Event:
    from guardhook.core import limits
    from guardhook.core.jsontext import PayloadError, loads
    from guardhook.gate.check import event_of

    try:
        data = sys.stdin.buffer.read(limits.PAYLOAD_ENFORCING + 1)
        if len(data) > limits.PAYLOAD_ENFORCING:
            raise PayloadError("oversized", f"larger than {limits.PAYLOAD_ENFORCING // 1048576} MiB")
        event = event_of(loads(data), dialect)
    except PayloadError as error:
        fail(f"stdin: {error}", hints=["- reads a hook payload or a step as JSON"], as_json=as_json)
    if cwd is not None:
        event.cwd = os.path.abspath(os.path.expanduser(cwd))
    return event
