"""`POST /v1/runs/replay`: whether a rollout's calls fit together, whether today's code and policies see them alike, and forks."""

from __future__ import annotations

from guardhook.rollout import replay_api
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
            rollout = replay_api.opened(request, folder, call.sees)
            return Answer(replay_api.forked(rollout, request, call.context.folders, call.caller.tenant), 202)
        if not request.detect_drift:
            return Answer(replay_api.simulated(replay_api.opened(request, folder, call.sees), request))
        # Asked for before anything is read: a third one must not begin.
        if not call.context.drifts.take():
            raise Refusal(503, "replay_busy", "as many drift checks as may run at once are under way", (("Retry-After", "5"),))  # fmt: skip
        try:
            rollout = replay_api.opened(request, folder, call.sees)
            return Answer(replay_api.drifted(rollout, call.context.folders, lambda trace: _sees(call, trace)))
        finally:
            call.context.drifts.give()
    except replay_api.Refused as refused:
        raise Refusal(_STATUS[refused.kind], refused.kind, refused.message) from None


def _sees(call: Call, trace_id: str) -> bool:
    with call.store() as store:
        return call.sees(tenant_of(store.get(trace_id), call.context.tenant))
