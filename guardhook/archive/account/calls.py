"""The calls of a run, each judged: did it run, fail, was it stopped, turned down, or is nothing known. All are judged; only lists are capped."""

from __future__ import annotations

from collections.abc import Iterator

from guardhook.archive import plain
from guardhook.archive.account import results, shells
from guardhook.archive.account.declarations import Check, Declarations
from guardhook.archive.account.record import Happened, Record, kept_out
from guardhook.archive.account.results import Result
from guardhook.archive.errors import UnreadableError
from guardhook.journal import modifying

RAN, FAILED, REFUSED, DECLINED, OPEN, NOT_DISPATCHED = (
    "ran",
    "failed",
    "refused",
    "declined",
    "unknown",
    "not-dispatched",
)
UNNAMED = "unnamed"
_PATHS = ("file_path", "notebook_path", "path", "filePath", "target_file", "absolute_path", "file")
_PATCHES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_LOOK_BACK = 64  # calls among which a denial told afterwards is looked for
_WRITES = frozenset(("file_write", "file_edit"))


class Call:
    """One call. place: where its start stands among the run's events; done: where its end does."""

    def __init__(self, id: str | None, tool: str | None, place: int) -> None:
        self.id = id
        self.tool = tool or UNNAMED
        self.place = place
        self.start: Happened | None = None
        self.end: Happened | None = None
        self.done: int | None = None
        self.decision: Happened | None = None
        self.blocked: Happened | None = None
        self.denied: Happened | None = None  # by the harness, or at its prompt
        self.asked: Happened | None = None
        self.prompted = False
        self.withheld: Happened | None = None
        self.ambiguous = False  # its end was found by order, not by name
        self.ran_all_the_same: Happened | None = None
        self.arguments: object = None
        self.outcome = OPEN
        self.by: str | None = None  # who stopped it: guardhook, harness, prompt
        self.check: Check | None = None
        self.verdict: str | None = None  # of a declared check: pass, fail, unclear
        self.shape = Result(results.UNKNOWN)
        self.kept_out: list[str] = []
        self._target: tuple[str, str] | None = None
        self._paths: list[str] | None = None

    @property
    def policy(self) -> str:
        for event in (self.blocked, self.withheld, self.decision):
            found = event.text("policy") if event is not None else None
            if found is not None:
                return found
        return "guardhook"

    @property
    def is_shell(self) -> bool:
        kind = self.start.text("kind") if self.start is not None else None
        return kind == "shell" or (kind is None and self.tool.casefold() in shells.SHELLS)

    @property
    def path(self) -> str | None:
        """The file that the call names, the first one of a patch of several."""
        return next(iter(self.paths), None)

    @property
    def paths(self) -> list[str]:
        """All files that the call names."""
        if self._paths is None:
            self._paths = self._named()
        return self._paths

    def _named(self) -> list[str]:
        if isinstance(self.arguments, dict):
            for name in _PATHS:
                found = self.arguments.get(name)
                if isinstance(found, str) and found:
                    return [found]
            patch = self.arguments.get("input", self.arguments.get("patch", self.arguments.get("command")))
        else:
            patch = self.arguments
        if isinstance(patch, str) and "*** Begin Patch" in patch[:2000]:
            named = (
                line.removeprefix(word).strip()
                for line in patch.split("\n")
                for word in _PATCHES
                if line.startswith(word)
            )
            return [name for name in dict.fromkeys(named) if name]
        return []

    @property
    def changes(self) -> bool:
        """Whether it is a change that ran and names a file."""
        if self.outcome != RAN or self.path is None or self.is_shell:
            return False
        kind = self.start.text("kind") if self.start is not None else None
        return kind in _WRITES or (kind in (None, "other", "mcp") and modifying.changes(self.tool) == modifying.YES)

    @property
    def unclassified(self) -> bool:
        """Whether it may have changed anything: a shell command that is no declared check."""
        return self.is_shell and self.check is None and self.outcome in (RAN, FAILED, OPEN)

    def target(self) -> tuple[str, str]:
        """What the call is about: calls of equal target are attempts at the same thing. A declared check, else the tool with a file or its input."""
        if self._target is None:
            if self.check is not None:
                self._target = ("check", self.check.id)
            elif self.path is not None:
                self._target = (self.tool, f"file {self.path}")
            else:
                self._target = (self.tool, f"input {plain.text(_sorted(self.arguments))}")
        return self._target

    def pointer(self, path: str = "outcome") -> str:
        event = self.end or self.blocked or self.denied or self.start
        return event.at(path) if event is not None else ""


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {k: value[k] for k in sorted(value) if k != "description"}
    return value


def collect(record: Record, declared: Declarations) -> list[Call]:
    """All calls of a run, by their starts; results of calls that were never seen stand where they came."""
    found: list[Call] = []
    by_id: dict[str, Call] = {}
    for place, event in enumerate(record.events):
        if event.type == "trace.decision":
            _told_denied(found, event)
        if event.type not in _KINDS:
            continue
        name = event.text("call_id")
        call = by_id.get(name) if name is not None else None
        if event.type == "tool.call.started" or call is None:
            if event.type not in (
                "tool.call.started",
                "tool.call.completed",
                "tool.call.blocked",
                "tool.approval_denied",
            ):
                continue
            call = Call(name, _tool(event), place)
            found.append(call)
            if name is not None:
                by_id[name] = call
        _take(call, event, place)
    for call in found:
        _judge(call, declared)
    return found


_KINDS = frozenset((
    "tool.call.started", "tool.call.completed", "tool.call.blocked", "tool_hook.completed", "tool.approval_required", "tool.approval_granted",
    "tool.approval_denied",
))  # fmt: skip


def _told_denied(found: list[Call], event: Happened) -> None:
    """A producer of a trace tells that a call was denied: by the step and the words that stand as the call's error as well."""
    if event.text("chosen") != "deny" or event.text("rationale") is None:
        return
    for call in found[: -_LOOK_BACK - 1 : -1]:
        end = call.end
        if end is not None and end.data.get("step") == event.data.get("step") and end.text("error") == event.text("rationale"):  # fmt: skip
            call.denied, call.prompted = event, event.text("decided_by") == "user"
            return


def _tool(event: Happened) -> str | None:
    found = event.text("tool")
    return None if found == "unknown" else found


def _take(call: Call, event: Happened, place: int) -> None:
    kind = event.type
    if kind == "tool.call.started":
        call.start = event
        call.arguments = _arguments(event.data.get("arguments"))
    elif kind == "tool_hook.completed":
        if event.text("stage") == "post_tool_use":
            if event.text("decision") == "deny" and event.text("mode") is None:
                call.withheld = event
        elif call.decision is None or event.text("decision") != "allow":
            call.decision = event
    elif kind == "tool.call.blocked":
        call.blocked = event
    elif kind == "tool.approval_required":
        call.asked = event
        call.prompted = call.prompted or event.text("source") == "harness"
    elif kind == "tool.approval_granted":
        call.asked = None
    elif kind == "tool.approval_denied":
        call.denied = event
        call.asked = None
    else:
        ran = event.data.get("executed") is not False
        if (call.blocked is not None or call.denied is not None) and ran:
            call.ran_all_the_same = event
        if call.end is None or ran:
            call.end, call.done = event, place
        call.asked = None
        call.ambiguous = call.ambiguous or event.text("pairing") is not None or event.data.get("unpaired") is True


def _arguments(value: object) -> object:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return plain.loads(value)
        except UnreadableError:
            return value
    return value


def output_of(event: Happened) -> object:
    """A result: what fixtures call `result`, real runs `output`."""
    found = event.data.get("result")
    return found if found not in (None, "") else event.data.get("output")


def exit_code(event: Happened | None) -> int | None:
    code = event.data.get("exit_code") if event is not None else None
    return code if type(code) is int else None


def _judge(call: Call, declared: Declarations) -> None:
    end = call.end
    executed = end is not None and end.data.get("executed") is not False and "executed" in end.data
    executed = executed and end is not None and end.data["executed"] is not None
    if end is not None and "executed" not in end.data:
        executed = call.blocked is None and call.denied is None
    if call.blocked is not None:
        call.outcome, call.by = REFUSED, "guardhook"
    elif call.denied is not None:
        call.outcome, call.by = (DECLINED, "prompt") if call.prompted else (REFUSED, "harness")
    elif end is not None and executed:
        code = exit_code(end)
        call.outcome = FAILED if end.data.get("error") not in (None, "", False) or (code or 0) != 0 else RAN
    elif end is not None and end.data.get("executed") is False:
        call.outcome, call.by = REFUSED, "harness"
    if call.start is not None and kept_out(call.start.data.get("arguments")):
        call.kept_out.append("arguments")
    if call.is_shell:
        _check(call, declared)
    if end is not None and executed and call.outcome in (RAN, FAILED):
        output = output_of(end)
        missing = end.data.get("incomplete")
        if kept_out(output) or (isinstance(missing, list) and "stripped" in missing):
            call.kept_out.append("output")
        elif call.withheld is None and call.outcome == RAN:
            call.shape = results.judge(output, declared.tool(call.tool))


def _check(call: Call, declared: Declarations) -> None:
    """Whether the call ran a declared check, and how that ended: only an exit code that the harness reports tells."""
    command = shells.command_of(call.arguments)
    tried = None if command is None else shells.attempt(command, declared.checks, background=shells.in_background(call.arguments))  # fmt: skip
    if tried is None:
        return
    call.check = tried.check
    if call.outcome in (RAN, FAILED):
        code = exit_code(call.end)
        call.verdict = "unclear" if code is None or not tried.clear else "pass" if code == 0 else "fail"


def is_cut(call: Call) -> bool:
    """Whether the capture or the harness says that the result is not whole."""
    end = call.end
    if end is None or call.outcome not in (RAN, FAILED):
        return False
    missing = end.data.get("incomplete")
    marked = isinstance(missing, list) and "cut" in missing
    return marked or "output_truncated" in end.data or end.data.get("truncated") is True or call.shape.cut


def error_kind(call: Call) -> str:
    """A word for how a call failed. Nothing of what it printed."""
    code = exit_code(call.end)
    if code not in (None, 0):
        return f"exit code {code}"
    return "interrupted" if call.end is not None and call.end.data.get("error") == "interrupted" else "error"


def retries(calls: list[Call]) -> Iterator[tuple[Call, int]]:
    """Calls that failed three times or more, unchanged, and never otherwise."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault((call.tool, plain.text(_sorted(call.arguments))), []).append(call)
    for group in groups.values():
        if len(group) >= 3 and all(call.outcome == FAILED for call in group):
            yield group[0], len(group)
