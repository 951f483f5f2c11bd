"""`POST /v1/runs/{id}/archive`: the run's envelope as the answer. Nothing is written here; where it goes is the caller's affair."""

from __future__ import annotations

from guardhook.archive import envelope, plain, source
from guardhook.archive.errors import ArchiveError, UnsupportedPrivacyModeError
from guardhook.core.jsontext import dumps
from guardhook.rollout.options import Options
from guardhook.views.http import runs
from guardhook.views.http.account import refusal_of
from guardhook.views.http.answers import Answer, Refusal
from guardhook.views.http.call import Call

_OTHERS = ("packed", "policy_id", "privacy", "max_events")


def archive(call: Call) -> Answer:
    body = call.body
    if not isinstance(body, dict):
        raise Refusal(400, "invalid_request", "the body must be an object of stated facts; {} states nothing")
    unknown = sorted(set(body) - set(envelope.STATED) - set(_OTHERS))
    if unknown:
        raise Refusal(400, "invalid_request", f"no such fact: {unknown[0]!r}")
    packed, most = body.get("packed", False), body.get("max_events")
    if not isinstance(packed, bool) or (most is not None and (type(most) is not int or most < 1)):
        raise Refusal(400, "invalid_request", "packed is true or false, max_events a whole number of at least 1")
    if call.caller.tenant is not None and body.get("tenant", call.caller.tenant) != call.caller.tenant:
        raise Refusal(422, "ERR_INDETERMINATE_RUN_FACT", "the run is yours, and of no other tenant", details={"field": "tenant"})  # fmt: skip
    facts = {key: body[key] for key in envelope.STATED if key in body}
    privacy = {key: body[name] for key, name in (("mode", "privacy"), ("policy_id", "policy_id")) if name in body}
    try:
        if privacy.get("mode", "full") != "full":
            raise UnsupportedPrivacyModeError(privacy["mode"])
        with call.store() as store:
            ref = runs.find(call, store)
            found = source.gather(
                call.context.folders, store, ref, options=call.context.options or Options(), most_events=most, packed=packed, close_on=call.context.close_on,
            )  # fmt: skip
        made = envelope.build_recording_envelope(found.recording, run=facts, privacy=privacy or None, capture=found.capture)  # fmt: skip
        plain.encode(made)
    except ArchiveError as error:
        raise refusal_of(error) from None
    except TypeError as error:
        raise Refusal(422, "invalid_request", str(error)) from None
    return Answer(iter((dumps(made) + "\n",)))
