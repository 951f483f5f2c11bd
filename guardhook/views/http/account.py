"""Accounts and assessments of runs, and of recordings that are sent along. With each account come the leaves that its pointers may show."""

from __future__ import annotations

from guardhook.archive import reader, source
from guardhook.archive.account import account, assess, declarations
from guardhook.archive.account.declarations import CONFIG, Declarations
from guardhook.archive.account.shown import Shower, pointers_of
from guardhook.archive.errors import ArchiveError, PackedRecordingTooLargeError, TooLargeError
from guardhook.core.jsontext import dumps
from guardhook.policy.settings import SettingsError
from guardhook.policy.settings import read as read_settings
from guardhook.rollout.options import Options
from guardhook.views.http import runs
from guardhook.views.http.answers import Answer, Refusal
from guardhook.views.http.call import Call

MOST_BYTES = 16 << 20  # of a body, and of what a packed recording in it stands for


def of_run(call: Call) -> Answer:
    place, hide = turn_of(call), hidden(call)
    recording, run_id = recorded(call)
    return _answer(recording, run_id, place, hide, declared(call))


def of_body(call: Call) -> Answer:
    """The account of an envelope, a recording or a packed one. Nothing is stored."""
    place, hide = turn_of(call), hidden(call)
    assert isinstance(call.body, bytes)
    try:
        document = reader.open_document(call.body, max_bytes=MOST_BYTES)
    except ArchiveError as error:
        raise refusal_of(error) from None
    run = document.run.get("runId")
    named = any(isinstance(e, dict) and isinstance(d := e.get("data"), dict) and d.get("run_id") == run for e in document.events)  # fmt: skip
    return _answer(document.recording, run if isinstance(run, str) and named else None, place, hide, declared(call))


def shown(call: Call) -> Answer:
    pointer = call.query.get("pointer", "")
    hide = hidden(call)
    recording, run_id = recorded(call)
    leaf = Shower(recording, run_id=run_id, declarations=declared(call), hide_paths=hide).show(pointer)
    return Answer({"pointer": pointer[:400], **leaf})


def assessment(call: Call) -> Answer:
    place = turn_of(call)
    recording, run_id = recorded(call)
    try:
        found = assess.assess_turn(recording, run_id=run_id, turn=place, declarations=declared(call))
    except assess.UnknownTurn as error:
        raise Refusal(400, "invalid_request", str(error)) from None
    return Answer({"assessment": found})


def _answer(recording: object, run_id: str | None, place: int | str, hide: bool, known: Declarations) -> Answer:
    try:
        found = account.account_for_answer(recording, run_id=run_id, turn=place, declarations=known, hide_paths=hide)
    except assess.UnknownTurn as error:
        raise Refusal(400, "invalid_request", str(error)) from None
    leaves = Shower(recording, run_id=run_id, declarations=known, hide_paths=hide).all(pointers_of(found))
    # Not indented: the answer has a size that it must keep to.
    return Answer(iter((dumps({"account": found, "shown": leaves}) + "\n",)))


def recorded(call: Call) -> tuple[dict[str, object], str]:
    """The recording of the run in the path, if the caller may see it. Raises StoreError."""
    with call.store() as store:
        ref = runs.find(call, store)
        found = source.gather(call.context.folders, store, ref, options=call.context.options or Options())
    return found.recording, ref.run_id


def turn_of(call: Call) -> int | str:
    text = call.query.get("turn", "last")
    if text == "last":
        return text
    number = call.number("turn", None, 1, 1_000_000)
    assert number is not None
    return number


def hidden(call: Call) -> bool:
    text = call.query.get("paths", "shown")
    if text not in ("shown", "hidden"):
        raise Refusal(400, "invalid_request", "paths is shown or hidden")
    return text == "hidden"


def declared(call: Call) -> Declarations:
    """What config.toml declares."""
    try:
        return declarations.of(read_settings(call.context.folders).section("account"), origin=CONFIG)
    except (SettingsError, TypeError, ValueError):
        raise Refusal(500, "configuration_error", "[account] in config.toml can't be used; `guardhook config list` says why") from None  # fmt: skip


def refusal_of(error: ArchiveError) -> Refusal:
    """A refusal of the archive: too large is 413, everything else is the document's or the caller's fault."""
    status = 413 if isinstance(error, (TooLargeError, PackedRecordingTooLargeError)) else 422
    return Refusal(status, error.code, error.message, details=error.details)
