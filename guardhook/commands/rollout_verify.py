"""`guardhook rollout verify`: rollout files held against the rules of the format, and against the journal where it has the run."""

from __future__ import annotations

import os

import click

from guardhook.commands import reading, rollout_named, rollout_shared
from guardhook.commands.folders import resolve
from guardhook.commands.output import say
from guardhook.core.folders import Folders


@click.command("verify")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--no-journal", is_flag=True, help="Don't compare with the journal.")
@rollout_named.headless
@reading.as_json
@reading.directory
def command(
    files: tuple[str, ...], no_journal: bool, allow_headless: bool, as_json: bool, directory: str | None
) -> None:
    """Check rollout files: every rule of the format, holes in the numbering, and whether the journal says the same.

    Status 0 when all is well, 1 when a file is refused, has a hole that no marker tells of, or differs from the journal (which is right then).
    """
    from guardhook.rollout.load import TERMINAL, Reader, RolloutError

    folders = resolve(directory)
    rollout_named.tolerate()
    results: list[dict[str, object]] = []
    for name in files:
        path = os.path.expanduser(name)
        result: dict[str, object] = {"file": name, "ok": False}
        results.append(result)
        try:
            with Reader(path, allow_headless=allow_headless) as reader:
                count = steps = 0
                start: dict[str, object] = {}
                last = ""
                for event in reader:
                    if count == 0 and event.payload is not None:
                        start = event.payload
                    count += 1
                    steps = event.step
                    last = event.type
                gaps = reader.gaps
        except RolloutError as error:
            result.update(error=error.reason, line=error.line)
            if os.path.basename(path) == "audit.jsonl" and error.line:
                result.update(error="this is an audit trail, which `guardhook audit verify` checks", line=0)
            continue
        undeclared = [g for g in gaps if not g.declared]
        run_id = start.get("run_id")
        same = None if no_journal or not isinstance(run_id, str) else _compare(folders, run_id, path, start)
        result.update(
            ok=not undeclared and same is not False, run_id=run_id, events=count, steps=steps, ended=last in TERMINAL,
            gaps=[g._asdict() for g in gaps], journal={None: "unknown", True: "same", False: "differs"}[same],
        )  # fmt: skip
    if as_json:
        reading.print_json({"ok": all(r["ok"] for r in results), "files": results})
    else:
        for result in results:
            _print(result)
    if not all(r["ok"] for r in results):
        raise SystemExit(1)


def _compare(folders: Folders, run_id: str, path: str, start: dict[str, object]) -> bool | None:
    """Whether the journal gives these bytes; None when it does not know the run."""
    from guardhook.rollout.export import lines
    from guardhook.rollout.render import render
    from guardhook.rollout.runs import find_in
    from guardhook.store import Missing, NotFound, StoreError, open_store

    found = rollout_shared.options(rollout_shared.settings(folders, False), False)
    options = found.kept(start.get("forensics"), start.get("tenant_id"))
    try:
        with open_store(folders, temporary=True) as store:
            ref = find_in(store, run_id)
        if ref.run_id != run_id:
            return None
        with open(path, "rb") as file:
            for raw in lines(render(folders, ref, options=options)):
                if file.read(len(raw)) != raw:
                    return False
            return not file.read(1)
    except (Missing, NotFound):
        return None
    except (StoreError, OSError) as error:
        why = error.message if isinstance(error, StoreError) else error.strerror or str(error)
        say(f"{path}: not compared with the journal: {why}")
        return None


def _print(result: dict[str, object]) -> None:
    from guardhook.views.text import count, one_line

    name = one_line(str(result["file"]))
    if "error" in result:
        where = f"line {result['line']}: " if result["line"] else ""
        say(f"{name}: refused: {where}{result['error']}")
        return
    events, steps = result["events"], result["steps"]
    assert isinstance(events, int) and isinstance(steps, int)
    gaps = result["gaps"]
    assert isinstance(gaps, list)
    told = [f"{count(events)} events, {count(steps)} steps", "ended" if result["ended"] else "no end"]
    for gap in gaps[:5]:
        told.append(f"{'lost' if gap['declared'] else 'MISSING without a marker'}: {gap['from_seq']}-{gap['to_seq']}")
    if len(gaps) > 5:
        told.append(f"{len(gaps) - 5} more gaps")
    if result["journal"] != "unknown":
        told.append("as the journal has it" if result["journal"] == "same" else "NOT what the journal says (the journal is right)")  # fmt: skip
    click.echo(f"{name}: {'ok' if result['ok'] else 'not ok'}: {'; '.join(told)}")
