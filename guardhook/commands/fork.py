"""`guardhook fork`: a copy of a trace up to a step, to go on from there."""

from __future__ import annotations

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail


@click.command("fork")
@click.argument("trace_id", metavar="ID")
@click.option("--from-step", "number", type=reading.Number(least=1), required=True, metavar="N", help="The last step to copy.")  # fmt: skip
@click.option("--modify-input", metavar="JSON", help="An object in place of the trace's input.")
@click.option("--modify-context", metavar="JSON", help="An object in place of the last step's context window.")
@click.option("--tag", metavar="TAG", help="One more tag for the copy.")
@reading.as_json
@reading.directory
def command(
    trace_id: str,
    number: int,
    modify_input: str | None,
    modify_context: str | None,
    tag: str | None,
    as_json: bool,
    directory: str | None,
) -> None:
    """Copy a trace up to a step. The copy is a running trace of its own that remembers where it comes from."""
    from guardhook.store import open_store
    from guardhook.store.fork import fork
    from guardhook.views.text import one_line

    given = _object("--modify-input", modify_input, as_json)
    context = _object("--modify-context", modify_context, as_json)
    if tag is not None and not tag.strip():
        fail("--tag needs a value", as_json=as_json)
    folders = resolve(directory)
    with reading.opened(directory, as_json) as store:
        made = fork(store, folders, store.get(trace_id), number, input=given, context=context, tag=tag)
        with open_store(folders) as again:
            if again.get(made.trace_id).step_count != made.steps:
                fail(f"{made.trace_id} was written, but is not whole; see `guardhook journal verify`", code=1, as_json=as_json)  # fmt: skip
    if as_json:
        reading.print_json({**made._asdict(), "modified": list(made.modified)})
        return
    changed = f", with another {' and '.join(made.modified)}" if made.modified else ""
    click.echo(f"{made.trace_id}: {made.steps:,} step(s) of {one_line(made.parent_trace_id, 60)}{changed}")


def _object(name: str, text: str | None, as_json: bool) -> dict[str, object] | None:
    """The option's JSON object; null means no change."""
    if text is None:
        return None
    from guardhook.core.jsontext import PayloadError, loads_text

    try:
        value = loads_text(text)
    except PayloadError as error:
        fail(f"{name}: {error}", as_json=as_json)
    if value is not None and not isinstance(value, dict):
        fail(f"{name}: a JSON object is needed", as_json=as_json)
    return value
