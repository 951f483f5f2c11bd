"""guardhook's own commands on an agent's command line: what it may ask, what it may not, and what it writes or runs that way."""

from __future__ import annotations

from guardhook.analysis.call import options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.call import Call

# Everything that only reads or judges, or adds to the record. What changes settings or takes from the record is a person's.
_HARMLESS = frozenset((
    "list", "show", "explain", "doctor", "why", "decisions", "stats", "coverage", "diff", "replay", "watch", "check", "export", "report", "eval", "account", "dashboard",
    "bundle", "completions", "demo", "run", "--version", "--help", "-h", "backtest", "rollout", "import", "record", "archive", "ingest", "fork",
))  # fmt: skip
_HARMLESS_SUB = {
    "guard": ("list", "test", "check"),
    "policy": ("list", "show", "test"),
    "config": ("list", "get"),
    "journal": ("show", "verify"),
    "audit": ("verify", "anchor"),
}
# Options that take from the record what was there, of commands that otherwise don't.
_REWRITING = {"import": "--replace", "archive": "--replace"}
_WRITES = ("--output", "--junit", "--to")
_VALUES = (
    *_WRITES, "--exec", "--dir", "--since", "--format", "--project", "--agent", "--agent-name", "--tag", "--tags", "--session", "--status", "--grace", "--by",
    "--interval", "--tenant", "--step", "--append", "--run-id", "--complete", "--key-file", "--max-events", "--max-bytes", "--rubric", "--preset",
)  # fmt: skip


def judge(call: Call, args: list[Val], *, by_hand: bool) -> None:
    """by_hand: the program called is the hook itself, or a launcher."""
    words = [a.text for a in args if not a.text.startswith("-") or a.text in ("--version", "--help", "-h")]
    if by_hand or (words and words[0] == "hook"):
        call.emit("guard_change", ("hook-by-hand",), detail="runs the hook in the harness's place")
        return
    if not words:
        return
    first = words[0]
    if HOLE in first:
        call.emit("guard_change", ("unknown",), detail="a guardhook command that isn't known")
        return
    second = words[1] if len(words) > 1 else ""
    allowed = _HARMLESS_SUB.get(first)
    if allowed is None:
        fine = first in _HARMLESS
    else:
        fine = not second or second in allowed or (first == "guard" and words[1:3] == ["exception", "list"])
    if fine and not (first in _REWRITING and any(_REWRITING[first].startswith(a.text) and len(a.text) > 3 for a in args)):  # fmt: skip
        _does(call, first, args)
        return
    verb = f"{first} {second}" if allowed is not None else first
    named = second if allowed is not None and second.isalpha() else "command"
    call.emit("guard_change", ("command", first if first.isalpha() else "command", named), detail=f"guardhook {verb}")


def _does(call: Call, first: str, args: list[Val]) -> None:
    """Programs that a harmless command starts, and files that it writes where it is told to."""
    if first == "run":
        at = next((index for index, value in enumerate(args) if value.text == "run"), 0)
        rest = options(args[at + 1 :], long=_VALUES, permute=False).rest
        if rest:
            call.run(rest, "guardhook run")
        return
    opts = options(list(args), short="o", long=_VALUES, known=_VALUES)
    for value in opts.every("--exec"):
        call.code(value, "inline")
    for value in opts.every("-o", *_WRITES):
        _written(call, value, folder=first == "archive" and not value.text.endswith((".zip", ".json")))
    if first == "rollout" and [v.text for v in opts.rest[1:2]] == ["export"]:
        for value in opts.rest[2:]:
            _written(call, value, folder=True)


def _written(call: Call, value: Val, *, folder: bool) -> None:
    if "://" in value.text and not value.text.startswith("file://"):
        host = value.text.partition("://")[2].partition("/")[0]
        call.emit("connect", ("upload",), host=host, detail=f"sends to {value.text[:200]}")
        return
    place = Val(f"{value.text.rstrip('/')}/run.json", value.taint, value.origin, value.raw) if folder else value
    call.change("write", place, () if folder else ("truncate",))
