"""`POST /v1/runs/replay`: whether a rollout's calls fit together, whether today's code and policies see them alike, and forks."""

from __future__ import annotations

from guardhook.rollout import replay_api, runs
from guardhook.rollout.load import Rollout
from guardhook.store import Ambiguous, Missing, NotFound
from guardhook.views.http.answers import Answer, Refusal
from guardhook.views.http.call import Call, tenant_of

_STATUS = {
    "invalid_request": 400,
    "not_configured": 501,
    "rollout_not_found": 404,
    "rollout_invalid": 422,
    "replay_error": 500,
}


def replay(call: Call) -> Answer:
    folder = call.context.rollout_dir
    try:
        path = replay_api.place(replay_api.path_of(call.body), folder)
        assert folder is not None
        request = replay_api.request_of(call.body, path)
        if request.mode == "fork":
            rollout = _opened(call, request, folder)
            return Answer(replay_api.forked(rollout, request, call.context.folders, call.caller.tenant), 202)
        if not request.detect_drift:
            return Answer(replay_api.simulated(_opened(call, request, folder), request))
        # Asked for before anything is read: a third one must not begin.
        if not call.context.drifts.take():
            raise Refusal(503, "replay_busy", "as many drift checks as may run at once are under way", (("Retry-After", "5"),))  # fmt: skip
        try:
            rollout = _opened(call, request, folder)
            return Answer(replay_api.drifted(rollout, call.context.folders, lambda trace: _sees(call, trace)))
        finally:
            call.context.drifts.give()
    except replay_api.Refused as refused:
        raise Refusal(_STATUS[refused.kind], refused.kind, refused.message) from None


def _opened(call: Call, request: replay_api.Request, folder: str) -> Rollout:
    """The rollout, if it is the caller's. Where this machine recorded the run, its trace says whose it is now; the file may be older, or say more than it should."""
    rollout = replay_api.opened(request, folder, call.sees)
    run = rollout.start.get("run_id")
    if call.caller.tenant is not None and isinstance(run, str) and run:
        try:
            with call.store() as store:
                ref = runs.find_in(store, run)
                if ref.run_id == run and not call.sees(tenant_of(store.get(ref.trace_id), call.context.tenant)):
                    raise replay_api.missing()
        except (NotFound, Missing, Ambiguous):
            pass  # recorded elsewhere
    return rollout


def _sees(call: Call, trace_id: str) -> bool:
    with call.store() as store:
        return call.sees(tenant_of(store.get(trace_id), call.context.tenant))
