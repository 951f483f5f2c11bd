"""`guardhook demo`: sample traces to look around in, and sample policies to read.

JSON: `{"ok": true, "loaded": [trace id], "policies": str, "hits": [{policy, action, trace_id, step_number, name}]}`; with --reset
`{"ok": true, "removed": [trace id], "skipped": int}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from guardhook.commands import reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders

if TYPE_CHECKING:
    from guardhook.store.demo import Hit


@click.command("demo")
@click.option("--reset", is_flag=True, help="Take the sample traces out again, and nothing else.")
@click.option("--no-interactive", "_quiet", is_flag=True, help="Ask nothing; it never does, scripts may say so.")
@reading.as_json
@reading.directory
def command(reset: bool, _quiet: bool, as_json: bool, directory: str | None) -> None:
    """Put a few made-up traces into the store, to try the other commands on.

    They carry the tag `demo`. Sample policies are printed with what they would say to these traces; they are not enforced, and nothing about your own policies changes.
    """
    from guardhook.store import StoreError, demo

    folders = resolve(directory)
    try:
        if reset:
            _reset(folders, as_json)
            return
        loaded = demo.load(folders)
    except StoreError as error:
        fail(error.message, code=1, as_json=as_json)
    with reading.opened(directory, as_json) as store:
        hits = demo.hits(store, folders)
        if as_json:
            from guardhook.store.samples import POLICIES

            emit({"ok": True, "loaded": loaded, "policies": POLICIES, "hits": [h._asdict() for h in hits]})
        else:
            _tell(loaded, hits)


def _reset(folders: Folders, as_json: bool) -> None:
    from guardhook.journal import line
    from guardhook.store import demo
    from guardhook.store.samples import DIALECT, SAMPLES

    known = {line.key(DIALECT, sample.id): sample.id for sample in SAMPLES}
    done = demo.reset(folders)
    names = [known.get(session.key, session.key) for session in done.removed]
    if as_json:
        emit({"ok": True, "removed": names, "skipped": done.skipped})
    else:
        click.echo(f"{len(names)} sample trace(s) removed" if names else "there are no sample traces")
        if done.skipped:
            say(f"{done.skipped} sample trace(s) are in use; try again")


def _tell(loaded: list[str], hits: list[Hit]) -> None:
    from guardhook.store.samples import POLICIES, SAMPLES

    paint = reading.paint()
    click.echo(f"{len(loaded)} sample traces are in the store now, with the tag demo:" if loaded else "The sample traces are there already:")  # fmt: skip
    for sample in SAMPLES:
        click.echo(f"  {sample.id:<20}{paint.status(str(sample.end['status']))}  {sample.start['agent_name']}")
    click.echo("\nThree policies as examples. They are not in force:\n")
    for row in POLICIES.splitlines():
        click.echo(paint.dim(f"  {row}") if row else "")
    click.echo("\nWhat they would say to the sample traces:")
    for hit in hits:
        click.echo(f"  {hit.action:<6}{hit.policy:<26}step {hit.step_number} of {hit.trace_id}: {hit.name}")
    click.echo("\nLook around:")
    for row in (
        "guardhook list --tag demo", "guardhook show trc_demo-travel --tree", "guardhook why trc_demo-travel --step 9",
        "guardhook decisions trc_demo-admin", "guardhook replay trc_demo-coder --speed 20", "guardhook diff trc_demo-support trc_demo-admin",
    ):  # fmt: skip
        click.echo(f"  {row}")
    click.echo("`guardhook policy new NAME` starts a policy of your own; `guardhook demo --reset` takes the samples out again.")  # fmt: skip
