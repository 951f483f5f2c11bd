"""`guardhook rollout fork`: the beginning of a run as messages, and as a trace of its own."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

import click

from guardhook.commands import reading, rollout_named, rollout_shared
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail, say

if TYPE_CHECKING:
    from guardhook.core.folders import Folders
    from guardhook.rollout.fork import Fork
    from guardhook.rollout.load import Rollout

_FORMATS = ("bundle", "messages", "prompt")


@click.command("fork")
@click.argument("name", metavar="RUN|FILE")
@click.option("--step", type=reading.Number(), required=True, metavar="N", help="The last step to take over; 0 is the prompt alone.")  # fmt: skip
@click.option("--format", "form", default="bundle", show_default=True, metavar="FORM", help="bundle, messages (chat form) or prompt (Markdown).")  # fmt: skip
@click.option("--append", metavar="TEXT", help="With --format prompt: what to do now.")
@click.option("--include-system-prompt", is_flag=True, help="Keep the system prompt.")
@click.option("--include-tool-results", is_flag=True, help="Keep what tools printed.")
@click.option("--unsafe-preserve-tool-calls", is_flag=True, help="Keep calls that have a result; needs --include-tool-results.")  # fmt: skip
@click.option("--output", metavar="FILE", help="Write there instead of stdout.")
@click.option("--record/--no-record", default=True, help="Keep the fork as a trace of its own (by default for runs of the journal).")  # fmt: skip
@click.option("--exec", "execute", metavar="CMD", help="Then run this; {bundle} stands for the file of --output. No shell is used.")  # fmt: skip
@reading.as_json
@reading.directory
def command(
    name: str,
    step: int,
    form: str,
    append: str | None,
    include_system_prompt: bool,
    include_tool_results: bool,
    unsafe_preserve_tool_calls: bool,
    output: str | None,
    record: bool,
    execute: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """The beginning of a run, up to and including step N, as messages to go on from.

    System prompt, tool calls and tool results are left out unless asked for. No agent is started, unless --exec names a program that is given the bundle.
    """
    from guardhook.rollout import fork as forking

    if form not in _FORMATS:
        fail(f"--format {form!r}: there are {', '.join(_FORMATS)}", as_json=as_json)
    if append is not None and form != "prompt":
        fail("--append goes with --format prompt", as_json=as_json)
    if output is not None and not output.strip():
        fail("--output needs a value", as_json=as_json)
    argv = _argv(execute, output, form, as_json)
    if as_json and output is None:
        fail("--json tells about the fork and needs --output FILE for the fork itself", as_json=True)
    safety = forking.Safety(include_system_prompt, include_tool_results, unsafe_preserve_tool_calls)
    made, source, recorded = _make(name, step, safety, record, directory, as_json)
    rollout_named.tolerate()
    text = _text(made, source, form, append)
    if output is None:
        _print(text)
    else:
        _save(output, text, as_json)
        answer: dict[str, object] = {
            "mode": "fork", "run_id": recorded, "from_step": made.from_step, "original_step_count": made.original_step_count,
            "original_outcome": made.original_outcome, "messages_restored": len(made.messages), "file": output,
        }  # fmt: skip
        if as_json:
            reading.print_json(answer)
        else:
            kept = "" if recorded is None else f", kept as trace {recorded}"
            say(f"{len(made.messages)} messages up to step {made.from_step} of {made.original_step_count} ({made.original_outcome}){kept}")  # fmt: skip
    for warning in made.warnings:
        say(f"guardhook: {warning}")
    if argv is not None:
        sys.stdout.flush()
        try:
            os.execvp(argv[0], argv)
        except OSError as error:
            fail(f"--exec: {argv[0]}: {error.strerror or error}", code=1, as_json=as_json)


def _make(
    name: str, step: int, safety: object, record: bool, directory: str | None, as_json: bool
) -> tuple[Fork, dict[str, object], str | None]:
    from guardhook.rollout import fork as forking

    assert isinstance(safety, forking.Safety)

    def forked(rollout: Rollout) -> Fork:
        try:
            return _clean(forking.fork(rollout.events, step, safety), resolve(directory), as_json)
        except forking.ForkError as error:
            hint = ["give --include-tool-results as well"] if safety.unsafe_preserve_tool_calls and not safety.include_tool_results else []  # fmt: skip
            fail(str(error), hints=hint, code=2, as_json=as_json)

    if rollout_named.is_file(name):
        rollout = rollout_named.from_file(name, as_json)
        made = forked(rollout)
        with open(os.path.expanduser(name), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return made, _source(rollout, digest), _keep(rollout, made, directory) if record else None
    folders = resolve(directory)
    found: tuple[Fork, dict[str, object], str | None] | None = None
    with reading.opened(directory, as_json) as store:
        from guardhook.rollout.recorded import keep
        from guardhook.rollout.runs import find_in

        ref = find_in(store, name)
        rollout = rollout_named.from_store(store, folders, ref.run_id, as_json)
        made = forked(rollout)
        recorded = keep(store, folders, ref, made) if record else None
        found = made, _source(rollout, rollout_named.digest(folders, ref, as_json)), recorded
    assert found is not None
    return found


def _clean(made: Fork, folders: Folders, as_json: bool) -> Fork:
    """Without secrets, unless config.toml wants everything kept: a file may come from elsewhere. What was redacted already stays as it is."""
    if rollout_shared.settings(folders, as_json).get("capture.mode", "redacted") == "full":
        return made
    from guardhook.journal import redact
    from guardhook.journal.rules import configured

    cleaned, _ = redact.redact(made.messages, configured(folders), "redacted")
    assert isinstance(cleaned, list)
    return made._replace(messages=cleaned)


def _keep(rollout: Rollout, made: Fork, directory: str | None) -> str | None:
    """Keeps the fork of a file where the store knows its run."""
    from guardhook.rollout.recorded import keep
    from guardhook.rollout.runs import find_in
    from guardhook.store import Missing, NotFound, StoreError, open_store

    folders = resolve(directory)
    run_id = rollout.start.get("run_id")
    if not isinstance(run_id, str):
        return None
    try:
        with open_store(folders) as store:
            ref = find_in(store, run_id)
            return keep(store, folders, ref, made) if ref.run_id == run_id else None
    except (Missing, NotFound):
        return None
    except StoreError as error:
        say(f"the fork is not kept as a trace: {error.message}")
        return None


def _source(rollout: Rollout, digest: str) -> dict[str, object]:
    start = rollout.start
    session = start.get("session")
    return {
        "run_id": start.get("run_id"),
        "session_id": start.get("conversation_id"),
        "harness": session.get("harness") if isinstance(session, dict) else None,
        "rollout_sha256": digest,
    }


def _text(made: Fork, source: dict[str, object], form: str, append: str | None) -> str:
    from guardhook.rollout import fork as forking
    from guardhook.store.jsonout import pretty

    if form == "prompt":
        return "\n".join(forking.as_prompt(made, source, append)) + "\n"
    return pretty(forking.bundle(made, source) if form == "bundle" else forking.chat(made)) + "\n"


def _print(text: str) -> None:
    """What strangers said reaches a terminal escaped, a pipe as it is."""
    if sys.stdout.isatty():
        from guardhook.views.text import one_line

        text = "".join(one_line(line) + "\n" for line in text.split("\n")[:-1])
    sys.stdout.write(text)
    sys.stdout.flush()


def _argv(execute: str | None, output: str | None, form: str, as_json: bool) -> list[str] | None:
    if execute is None:
        return None
    import shlex

    try:
        words = shlex.split(execute)
    except ValueError as error:
        fail(f"--exec: {error}", as_json=as_json)
    if not words:
        fail("--exec needs a value", as_json=as_json)
    if output is None or form != "bundle":
        fail("--exec needs --output FILE and the bundle format", as_json=as_json)
    return [word.replace("{bundle}", os.path.abspath(output)) for word in words]


def _save(output: str, text: str, as_json: bool) -> None:
    from guardhook.rollout.recorded import write_private

    try:
        write_private(os.path.abspath(os.path.expanduser(output)), text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        fail(f"{output}: can't be written: {error.strerror or error}", code=1, as_json=as_json)
