"""`guardhook bundle`: a run as a zip file for a bug report, without secrets, with a manifest of hashes."""

from __future__ import annotations

from collections.abc import Mapping

import click

from guardhook.archive.account.declarations import Declarations
from guardhook.archive.bundle import Extra
from guardhook.archive.errors import ArchiveError
from guardhook.archive.reader import Opened
from guardhook.commands import outfile, reading
from guardhook.commands.archive import close_on, refusals, settings_of
from guardhook.commands.folders import resolve
from guardhook.commands.output import fail
from guardhook.core.folders import Folders
from guardhook.views.text import one_line


@click.command("bundle")
@click.argument("name", metavar="TRACE|RUN")
@click.option("-o", "--output", metavar="FILE", help="Where to write. Default: guardhook-<run>.zip in this folder.")
@click.option("--complete", type=click.Choice(["yes", "no"]), help="Whether the recording holds the whole run, where no end was captured.")  # fmt: skip
@click.option("--no-doctor", is_flag=True, help="Without what `guardhook doctor` says of this machine.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@reading.as_json
@reading.directory
def command(
    name: str, output: str | None, complete: str | None, no_doctor: bool, force: bool, as_json: bool, directory: str | None
) -> None:  # fmt: skip
    """Write a bug report: archive, rollout, account, report and `doctor`'s findings, redacted."""
    from guardhook.archive import bundle, source
    from guardhook.archive.account import declarations
    from guardhook.journal import rules
    from guardhook.rollout import options, runs

    if output is not None and not output.strip():
        fail("--output needs a value", as_json=as_json)
    folders = resolve(directory)
    config = settings_of(folders, as_json)
    with reading.opened(directory, as_json) as store, refusals(as_json):
        ref = runs.find_in(store, name)
        try:
            chosen = options.of(config)
            declared = declarations.of(config.section("account"), origin=declarations.CONFIG)
        except (options.BadOptions, TypeError, ValueError) as error:
            fail(f"config.toml: {error}", as_json=as_json)
        gathered = source.gather(folders, store, ref, options=chosen, close_on=close_on(config))
        made = bundle.make(
            gathered, rules.configured(folders), stated={} if complete is None else {"complete": complete == "yes"}, declared=declared,
            extras=extras(folders, ref.run_id, declared, doctor=not no_doctor),
        )  # fmt: skip
    path = output or f"guardhook-{ref.run_id}.zip"
    with outfile.binary(path, replace=force, as_json=as_json) as file:
        file.write(made.data)
    notes = made.manifest["notes"]
    assert isinstance(notes, list)
    if as_json:
        reading.print_json({"file": path, "bytes": len(made.data), "manifest": made.manifest})
        return
    click.echo(one_line(path))
    for note in notes:
        click.echo(one_line(f"  note: {note['file']}: {note['message']}"), err=True)


def extras(folders: Folders, run: str, declared: Declarations, *, doctor: bool) -> Mapping[str, Extra]:
    """Files that this installation can add to a bundle, by name. All of them tell the account of the run by the same declarations."""
    from guardhook.archive.account.account import account_for_answer

    def account(document: Opened) -> dict[str, object]:
        return account_for_answer(document.recording, run_id=run, declarations=declared)

    out: dict[str, Extra] = {
        "account.md": lambda document: _markdown(account(document)),
        "report.html": lambda document: _report(document, account(document)),
    }
    if doctor:
        out["doctor.json"] = lambda _: _doctor(folders)
    return out


def _markdown(account: dict[str, object]) -> bytes:
    from guardhook.views.account import as_markdown

    return ("\n".join(as_markdown(account)) + "\n").encode()


def _report(document: Opened, account: dict[str, object]) -> bytes:
    """The report, made of the redacted recording: it is put into a store of its own first."""
    import tempfile

    from guardhook.archive.give_back import give_back
    from guardhook.core.folders import explicit
    from guardhook.store import StoreError, open_store
    from guardhook.views.report import page

    sections = [page.account(account)]
    with tempfile.TemporaryDirectory() as folder:
        own = explicit(folder)
        try:
            given = give_back(own, document, "", exists=False)
            parts: list[bytes] = []
            with open_store(own) as store:
                page.write(parts.append, store, [page.Part(store.get(given.trace_id), sections)], version=_version())
        except StoreError as error:
            raise ArchiveError(error.message) from None
    return b"".join(parts)


def _version() -> str:
    from guardhook import __version__

    return __version__


def _doctor(folders: Folders) -> bytes:
    """What doctor finds, secrets taken out."""
    from guardhook.archive import plain
    from guardhook.harness import machine, places, table
    from guardhook.harness.examine import examine
    from guardhook.journal import redact, rules

    here = machine.here(None)
    shared = places.shared(here)
    reports = [examine(table.load(n), here, folders, shared, asked=False) for n in sorted(table.MODULES)]
    value, _ = redact.redact({"harnesses": [r.plain() for r in reports]}, rules.configured(folders))
    return plain.pretty(value)
