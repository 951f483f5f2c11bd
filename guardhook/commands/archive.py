"""`guardhook archive`: keep a run as a file of its own, pack it, look into it, check it, put it back into a store."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, NoReturn

import click

from guardhook.archive.collection import Item
from guardhook.archive.errors import ArchiveError, IndeterminateRunFactError, UnsupportedPrivacyModeError
from guardhook.archive.reader import Opened
from guardhook.archive.unpacking import DEFAULT_UNPACK_MAX_BYTES
from guardhook.commands import outfile, reading
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.folders import Folders
from guardhook.policy.settings import Settings, SettingsError
from guardhook.policy.settings import read as read_settings
from guardhook.views.text import one_line

# Which option states a fact that nothing proves.
FLAGS = {
    "complete": "--complete yes|no", "droppedEvents": "--dropped N", "runId": "--run-id ID", "sessionId": "--session-id ID",
    "principal": "--principal NAME", "tenant": "--tenant NAME", "startedAt": "--started-at TIME", "endedAt": "--ended-at TIME",
}  # fmt: skip

_bound = click.option("--max-bytes", type=reading.Number(least=0), default=DEFAULT_UNPACK_MAX_BYTES, metavar="N", help="The most that is read, and that a packed recording may stand for (512 MiB).")  # fmt: skip
_force = click.option("--force", is_flag=True, help="Replace what is there.")
_out = click.option("-o", "--output", metavar="FILE", help="Write to a file instead of stdout.")


@click.group("archive")
def command() -> None:
    """Keep a run as a file, and read such files."""


@contextlib.contextmanager
def refusals(as_json: bool, path: str | None = None) -> Iterator[None]:
    """Ends the command for whatever the archive refuses. A fact that an option can state is 2, everything else 1."""
    where = "" if path is None else f"{path}: "
    try:
        yield
    except ArchiveError as error:
        hint = FLAGS.get(error.field) if isinstance(error, IndeterminateRunFactError) else None
        refuse(error, where, 2 if isinstance(error, IndeterminateRunFactError) else 1, hint, as_json)
    except TypeError as error:
        fail(f"{where}{error}", code=1, as_json=as_json)
    except OSError as error:
        fail(f"{where or (error.filename and f'{error.filename}: ') or ''}{error.strerror or error}", code=1, as_json=as_json)  # fmt: skip


@contextlib.contextmanager
def _no_cycles() -> Iterator[None]:
    """A document has no cycles, and millions of values to look for them in."""
    import gc

    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def settings_of(folders: Folders, as_json: bool) -> Settings:
    """What config.toml says; one that can't be used ends the command."""
    try:
        return read_settings(folders)
    except SettingsError as error:
        fail(str(error), as_json=as_json)


def close_on(config: Settings) -> str:
    """What ends a run by `[forensics] close_on`: `session_end`, or `stop` where each turn is one."""
    return "stop" if config.get("forensics.close_on") == "stop" else "session_end"


def refuse(error: ArchiveError, where: str, code: int, hint: str | None, as_json: bool) -> NoReturn:
    """The refusal, for a program with its code and details."""
    hints = [] if hint is None else [f"state it with {hint}"]
    if not as_json:
        fail(where + error.message, hints=hints, code=code)
    emit({"ok": False, "error": where + error.message, "hints": hints, "code": error.code, **error.details})
    raise SystemExit(code)


@command.command("save")
@click.argument("name", metavar="TRACE|RUN")
@click.option("--complete", type=click.Choice(["yes", "no"]), help="Whether the recording holds the whole run, where no end was captured.")  # fmt: skip
@click.option("--to", metavar="DIR|FILE.zip|URL", help="Where to: a folder, a zip file, or a store (s3://bucket/folder). Else `[archive] to` of config.toml.")  # fmt: skip
@click.option("--packed/--plain", default=None, help="Write equal values once.")
@click.option("--run-id", metavar="ID", help="State the run's id.")
@click.option("--session-id", metavar="ID", help="State the session's id.")
@click.option("--principal", metavar="NAME", help="State for whom the run was.")
@click.option("--tenant", metavar="NAME", help="State to which tenant it belongs.")
@click.option("--started-at", metavar="TIME", help="State when it started (ISO 8601 with a zone).")
@click.option("--ended-at", metavar="TIME", help="State when it ended.")
@click.option("--dropped", type=int, metavar="N", help="State how many events were lost.")
@click.option("--privacy", metavar="MODE", help="Only `full` can be produced.")
@click.option("--policy-id", metavar="ID", help="Name the privacy policy.")
@click.option("--max-events", type=reading.Number(least=1), metavar="N", help="Keep the newest N events.")
@_force
@reading.as_json
@reading.directory
def save(
    name: str, complete: str | None, to: str | None, packed: bool | None, privacy: str | None, policy_id: str | None, max_events: int | None,
    force: bool, as_json: bool, directory: str | None, **stated: object,
) -> None:  # fmt: skip
    """Write a run's archive. What nothing proves must be stated; nothing is guessed."""
    from guardhook.archive import envelope, sinks, source
    from guardhook.rollout import options, runs

    folders = resolve(directory)
    config = settings_of(folders, as_json)
    facts: dict[str, object] = {_STATED[key]: value for key, value in stated.items() if value is not None}
    if complete is not None:
        facts["complete"] = complete == "yes"
    for key in ("principal", "tenant"):
        told = os.environ.get(f"GUARDHOOK_{key.upper()}") or config.get(f"identity.{key}")
        if key not in facts and isinstance(told, str) and told:
            facts[key] = told
    private: dict[str, object] = {}
    if privacy is not None:
        private["mode"] = privacy
    if policy_id is not None:
        private["policy_id"] = policy_id
    target = to if to is not None else config.get("archive.to", f"{folders.data}/archives")
    if packed is None:
        packed = config.get("archive.packed") is True
    if not isinstance(target, str) or not target.strip():
        fail("--to needs a value", as_json=as_json)
    with reading.opened(directory, as_json) as store, refusals(as_json):
        ref = runs.find_in(store, name)
        try:
            chosen = options.of(config)
        except options.BadOptions as error:
            fail(str(error), as_json=as_json)
        # An unsupported mode is refused before anything is read.
        if private.get("mode", "full") != "full":
            raise UnsupportedPrivacyModeError(private["mode"])
        found = source.gather(
            folders, store, ref, options=chosen, most_events=max_events, packed=packed, spooled=True, close_on=close_on(config),
        )  # fmt: skip
        made = envelope.build_recording_envelope(found.recording, run=facts, privacy=private or None, capture=found.capture)  # fmt: skip
        name_ = sinks.name_of(made)
        sink = sinks.sink_for(target)
        run = made["run"]
        assert isinstance(run, dict)
        if not force and run["complete"] is False and _is_complete(sink.stored(str(run["runId"]))):
            fail(
                f"{one_line(name_)} is there already and holds the complete run; an incomplete recording would replace it",
                hints=["--force replaces it", "--to names another place"], as_json=as_json,
            )  # fmt: skip
        try:
            result = sink.write(made)
        except OSError as error:  # it names a temporary file, if anything
            fail(f"{target}: can't be written: {error.strerror or error}", code=1, as_json=as_json)
    if as_json:
        reading.print_json({**result, "run": run})
    else:
        click.echo(one_line(result["id"]))
        if "uri" in result:
            click.echo(one_line(result["uri"]))


_STATED = {
    "run_id": "run_id", "session_id": "session_id", "principal": "principal", "tenant": "tenant", "started_at": "started_at", "ended_at": "ended_at",
    "dropped": "dropped_events",
}  # fmt: skip


def _is_complete(data: bytes | None) -> bool:
    """Whether stored bytes say of themselves that they hold a complete run. What can't be read says nothing."""
    from guardhook.archive import plain

    if data is None:
        return False
    with contextlib.suppress(ArchiveError):
        value = plain.loads(data)
        run = value.get("run") if isinstance(value, dict) else None
        return isinstance(run, dict) and run.get("complete") is True
    return False


@command.command("pack")
@click.argument("file", type=click.Path(dir_okay=False))
@_out
@_force
@reading.as_json
def pack(file: str, output: str | None, force: bool, as_json: bool) -> None:
    """Write an archive (or a bare recording) packed: equal values once."""
    from guardhook.archive import reader, stream

    with refusals(as_json, file), _no_cycles(), reader.open_regular(file) as source:
        value = stream.pack_file(source)
    _document(value, output, force, as_json)


@command.command("unpack")
@click.argument("file", type=click.Path(dir_okay=False))
@_bound
@_out
@_force
@reading.as_json
def unpack(file: str, max_bytes: int, output: str | None, force: bool, as_json: bool) -> None:
    """Write an archive with its recording plain. How much it stands for is found out before any of it is built."""
    from guardhook.archive import plain, reader
    from guardhook.archive.packing import is_packed_recording
    from guardhook.archive.unpacking import unpack_recording

    with refusals(as_json, file), _no_cycles():
        value = plain.loads(reader.read_bytes(file, max_bytes=max_bytes))
        bare = is_packed_recording(value)
        document = reader.opened(value, max_bytes=max_bytes, parsed=True) if not bare else None
        if document is not None and document.envelope is not None:
            value = {**document.envelope, "recording": document.recording}
        else:
            value = unpack_recording(value, max_bytes=max_bytes, parsed=True)
    _document(value, output, force, as_json)


def _document(value: object, output: str | None, force: bool, as_json: bool) -> None:
    """Writes a document in compact form, piece by piece."""
    from guardhook.archive import stream

    written = 0

    def to(file: IO[bytes]) -> Callable[[bytes], object]:
        def put(data: bytes) -> None:
            nonlocal written
            written += len(data)
            file.write(data)

        return put

    with refusals(as_json):
        if output is not None:
            with outfile.binary(output, replace=force, as_json=as_json) as file:
                stream.write(value, to(file))
            if as_json:
                emit({"file": output, "bytes": written})
            return
        if sys.stdout.isatty():
            fail("the document holds text of others as it is, which is not for a terminal", hints=["-o FILE writes it to a file"], as_json=as_json)  # fmt: skip
        try:
            stream.write(value, to(sys.stdout.buffer))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            fail(f"the output can't be written: {error.strerror}", code=1, as_json=as_json)


@command.command("check")
@click.argument("file", type=click.Path())
@_bound
@reading.as_json
def check(file: str, max_bytes: int, as_json: bool) -> None:
    """Check that an archive (a folder or zip file of them, a bug-report bundle) holds what it says. Status 3: something does not add up."""
    from guardhook.archive import check as checking
    from guardhook.archive import collection

    found: list[dict[str, object]] = []
    names = 0
    with refusals(as_json, file):
        for item in collection.items(file, max_bytes=max_bytes):
            names += item.document is not None
            try:
                problems = item.problems if item.document is None else checking.check(item.document(), item.name)
                found += [{"file": item.name, "field": f.field, "message": f.message} for f in problems]
            except ArchiveError as error:
                if not item.among:
                    raise
                found.append({"file": item.name, "field": str(error.details.get("field", "document")), "message": error.message})  # fmt: skip
    if as_json:
        emit({"ok": not found, "file": file, "checked": names, "findings": found})
    else:
        for row in found:
            click.echo(one_line(f"{row['file']}: {row['field']}: {row['message']}"))
        if not found:
            click.echo("1 archive adds up." if names == 1 else f"{names} archives add up.")
    raise SystemExit(3 if found else 0)


@command.command("open")
@click.argument("file", type=click.Path())
@click.option("--run", "run_id", metavar="ID", help="Which one, in a folder or zip file of archives.")
@click.option("--events", is_flag=True, help="The run's events, one a line.")
@click.option("--import", "import_", is_flag=True, help="Put the run back into the store.")
@click.option("--replace", is_flag=True, help="With --import: write an archive's run anew that was put into the store before.")  # fmt: skip
@click.option("--verify", is_flag=True, help="As `archive check`.")
@_bound
@reading.as_json
@reading.directory
@click.pass_context
def open_(
    ctx: click.Context, file: str, run_id: str | None, events: bool, import_: bool, replace: bool, verify: bool, max_bytes: int, as_json: bool,
    directory: str | None,
) -> None:  # fmt: skip
    """Look into an archive, or list a folder or zip file of them."""
    from guardhook.archive import collection

    if sum((events, import_, verify)) > 1:
        fail("only one of --events, --import and --verify", as_json=as_json)
    if verify:
        ctx.invoke(check, file=file, max_bytes=max_bytes, as_json=as_json)
        return
    with refusals(as_json, file):
        items = [item for item in collection.items(file, max_bytes=max_bytes) if item.document is not None]
        if run_id is not None:
            items = [i for i in items if i.run_id == run_id or i.name == run_id] or [
                i for i in items if i.run_id.startswith(run_id)
            ]
        if not items:
            fail(f"{file}: no archive" + ("" if run_id is None else f" of {run_id!r}"), code=1, as_json=as_json)
        if len(items) > 1 and (events or import_ or run_id is not None):
            fail(f"{file} holds {len(items)} archives; --run names one", hints=[i.name for i in items[:20]], as_json=as_json)  # fmt: skip
        if len(items) > 1 or (items[0].among and run_id is None and not (events or import_)):
            _list(items, as_json)
            return
        item = items[0]
        if item.document is None:
            fail(f"{item.name} is no archive", code=1, as_json=as_json)
        document = item.document()
    if events:
        _events(document)
    elif import_:
        with refusals(as_json, file):
            _import(document, file, replace, as_json, directory)
    else:
        _show(document, as_json)


def _list(items: list[Item], as_json: bool) -> None:
    """Lists archives, with why one can't be read. Status 1 when none can."""
    rows = []
    for item in items:
        try:
            document = item.document() if item.document is not None else None
            run = document.run if document is not None else {}
            rows.append({"file": item.name, "runId": run.get("runId"), "startedAt": run.get("startedAt"), "complete": run.get("complete"),
                         "events": len(document.events) if document is not None else None, "error": None})  # fmt: skip
        except ArchiveError as error:
            rows.append({"file": item.name, "runId": None, "startedAt": None, "complete": None, "events": None, "error": error.message})  # fmt: skip
    if as_json:
        reading.print_json({"items": rows})
    for row in rows if not as_json else ():
        state = row["error"] or ("complete" if row["complete"] is True else "incomplete" if row["complete"] is False else "no envelope")  # fmt: skip
        click.echo(one_line(f"{row['startedAt'] or '-':24}  {row['file']}  {'-' if row['events'] is None else row['events']} events  {state}"))  # fmt: skip
    if all(row["error"] is not None for row in rows):
        raise SystemExit(1)


def _events(document: Opened) -> None:
    from guardhook.archive import stream
    from guardhook.core.jsontext import dumps

    events = (event for event in document.events if isinstance(event, dict))
    if sys.stdout.isatty():  # what others said is not for a terminal as it is
        for event in events:
            click.echo(dumps(event))
        return
    try:
        for event in events:
            sys.stdout.buffer.write(stream.event_line(event))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        fail(f"the output can't be written: {error.strerror}", code=1)


def _import(document: Opened, path: str, replace: bool, as_json: bool, directory: str | None) -> None:
    from guardhook.archive.give_back import give_back
    from guardhook.store import Filter, Missing, StoreError, open_store

    folders = resolve(directory)
    snapshot = document.recording.get("snapshot")
    trace = snapshot.get("trace") if isinstance(snapshot, dict) else None
    name = trace.get("id") if isinstance(trace, dict) else None
    try:
        exists = False
        with contextlib.suppress(Missing), open_store(folders) as store:
            exists = isinstance(name, str) and bool(store.traces(Filter(ids=(name,))).items)
        given = give_back(folders, document, path, exists=exists, replace=replace)
    except StoreError as error:
        fail(error.message, as_json=as_json)
    if as_json:
        emit({"trace_id": given.trace_id, "steps": given.steps, "replaced": given.replaced})
    else:
        say(f"{given.steps} steps of trace {given.trace_id} {'written anew' if given.replaced else 'put into the store'}")  # fmt: skip


def _show(document: Opened, as_json: bool) -> None:
    from guardhook.archive import facts

    seen = facts.look(document.events)
    envelope = document.envelope
    shown = {
        "format": envelope.get("format") if envelope is not None else None,
        "packed": document.packed,
        "producer": envelope.get("producer") if envelope is not None else None,
        "run": document.run or None,
        "configuration": envelope.get("configuration") if envelope is not None else None,
        "privacy": envelope.get("privacy") if envelope is not None else None,
        "events": seen.losses.kept,
    }
    if as_json:
        reading.print_json(shown)
        return
    if envelope is None:
        click.echo("A bare recording: nothing is stated about it.")
    run = document.run
    basis = run.get("basis") if isinstance(run.get("basis"), dict) else {}
    assert isinstance(basis, dict)
    for name, value in run.items():
        if name != "basis":
            source = f"  ({basis[name]})" if name in basis else ""
            click.echo(one_line(f"{name:24} {_plain(value)}{source}"))
    for name in ("producer", "configuration", "privacy"):
        if shown[name] is not None:
            click.echo(one_line(f"{name:24} {_plain(shown[name])}"))
    click.echo(f"{'events':24} {seen.losses.kept}{', packed' if document.packed else ''}")


def _plain(value: object) -> str:
    from guardhook.core.jsontext import dumps

    return value if isinstance(value, str) else dumps(value)[:500]
