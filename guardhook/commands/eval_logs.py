"""Coverage for safety-record: the harnesses' own logs, read once for all runs that are evaluated."""

from __future__ import annotations

from guardhook.commands import progress
from guardhook.core.folders import Folders
from guardhook.evals.safety import Coverage
from guardhook.store import Trace

_MARGIN_US = 60_000_000  # a harness's log may begin before its first hook


class Logs:
    """Tells the coverage of a run, None where no log of it was found. since_us: when the first run began, microseconds since the epoch."""

    def __init__(self, folders: Folders, since_us: int | None) -> None:
        self._folders = folders
        self._since = None if since_us is None else since_us - _MARGIN_US
        self._found: dict[tuple[str, str], Coverage] | None = None

    def __call__(self, trace: Trace) -> Coverage | None:
        if not trace.live or trace.dialect is None or trace.session_id is None:
            return None
        if self._found is None:
            self._found = self._read()
        return self._found.get((trace.dialect, trace.session_id))

    def _read(self) -> dict[tuple[str, str], Coverage]:
        from guardhook.intake import coverage

        out = {}
        for one in coverage.measure(self._folders, self._since, progress=progress.Bar("reading session logs")):
            if one.session is not None:
                ran = frozenset(missed.call for missed in one.ran_although_blocked if missed.call is not None)
                out[one.dialect, one.session] = Coverage(one.reached, one.calls, ran)
        return out
