"""The hook process from start to finish: read, recognise, judge, append, answer, exit.

Enforcing, nothing but a verdict ends in silence: every exception, every bad payload, every missing file and the
watchdog end in the dialect's block. Observing, nothing is printed and the status is 0, whatever happens.
"""

from __future__ import annotations

import posix
import sys
import time
from _signal import ITIMER_REAL, SIG_IGN, SIG_UNBLOCK, SIGALRM, SIGPIPE, SIGXFSZ, pthread_sigmask, setitimer, signal

from guardhook.core import folders as folders_module
from guardhook.core import limits
from guardhook.core.event import JUDGED, Event
from guardhook.core.jsontext import PayloadError, loads, printable
from guardhook.core.verdict import SILENT, Answer, Verdict
from guardhook.gate import options as options_module
from guardhook.gate.output import BLOCK_STATUS, finish
from guardhook.gate.stdin import Deadline, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from guardhook.core.effect import Effect
    from guardhook.core.folders import Folders
    from guardhook.policy.compiled import Compiled

# Where `--dir` and the baked file are both absent, the program's own folder tells the installation.
PROGRAM = (
    sys.executable.rpartition("/")[0] if getattr(sys, "frozen", False) else __file__.rpartition("/guardhook/gate/")[0]
)


class Hook:
    """The state of one invocation, kept where the watchdog can reach it."""

    def __init__(self, argv: list[str]) -> None:
        self.started = time.monotonic()
        self.now = time.time_ns()
        self.enforce = options_module.enforcing(argv)
        self.argv = argv
        self.options = options_module.Options()
        self.told = False  # the options are what the command line says
        self.reading = False  # the timer interrupts a read instead of answering
        self.answering = False  # the answer is being written: nothing may write another one
        self.patience = limits.WATCHDOG_ENFORCING if self.enforce else limits.TOTAL_OBSERVING  # seconds in all
        self.size = 0  # bytes of the payload
        self.dialect: object = None  # the module of the recognised dialect
        self.likely: str | None = None  # the dialect that a payload looks like which is not what was registered
        self.event: Event | None = None
        self.verdict: Verdict | None = None
        self.answer: Answer | None = None
        self.folders: Folders | None = None
        self.compiled: Compiled | None = None
        self.effects: list[Effect] = []
        self.root: str | None = None
        self.projects_until: float | None = None  # time.monotonic value

    # --- the way through -------------------------------------------------------------------------------------

    def run(self) -> NoReturn:
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)  # a journal that may not grow is a fault like others, and has its reason
        signal(SIGALRM, self._alarm)
        pthread_sigmask(SIG_UNBLOCK, (SIGALRM,))  # whoever started this may have blocked it, and the timer with it
        if not self.enforce:
            setitimer(ITIMER_REAL, limits.STDIN_OBSERVING)
        else:
            setitimer(ITIMER_REAL, limits.STDIN_ENFORCING)
        self.options = options_module.parse(self.argv)
        self.told = True
        self.read_event()
        self.find_folders()
        self.load_policies()
        self.settings()
        if self.enforce and self.event is not None and self.event.event in JUDGED:
            self.judge()
        self.finish_recorded()

    def read_event(self) -> None:
        """Fills event and dialect. Raises PayloadError, Unknown or OSError."""
        from guardhook.dialects import table

        cap = limits.PAYLOAD_ENFORCING if self.enforce else limits.PAYLOAD_OBSERVING
        self.reading = True
        given = read_all(cap)
        self.reading = False
        setitimer(ITIMER_REAL, max(0.001, self.patience - (time.monotonic() - self.started)))
        if given.oversized:
            raise PayloadError("oversized", f"the payload is larger than {cap // (1024 * 1024)} MiB")
        if given.timed_out and not given.data:
            raise PayloadError("timeout", "no payload came on stdin in time")
        self.size = len(given.data)
        payload = loads(given.data, replace=not self.enforce)
        if not isinstance(payload, dict):
            raise PayloadError("malformed", "the payload is not a JSON object")
        env = recognition_env(table.RECOGNITION_ENV)
        registered = self.options.dialect
        if registered is not None and registered not in table.MODULES:
            raise Unknown(f"there is no dialect {printable(registered, 40)}")
        found = table.candidates(payload, env)
        chosen, why = table.choose(found, registered)
        if chosen is None:
            raise Unknown(why, found[0] if found else None)
        self.dialect = table.load(chosen)
        self.event = self.dialect.read(payload, env, self.options.event)

    def find_folders(self) -> None:
        directory = self.options.directory
        try:
            self.folders = folders_module.for_hook(directory, PROGRAM)
        except ValueError as error:
            raise Unusable("folders", str(error)) from None
        except KeyError:
            raise Unusable("folders", "the user database knows no home folder for this user") from None
        if directory is not None and self.enforce and not self.options.allow_empty:
            try:
                posix.stat(self.folders.data)
            except OSError:
                raise Unusable("folders", f"the folder given with --dir does not exist: {directory}") from None

    def load_policies(self) -> None:
        """Policies judge, and their file also holds the redaction rules that recording needs."""
        from guardhook.policy import compiled

        assert self.folders is not None
        try:
            self.compiled = compiled.load(self.folders)
        except compiled.Broken as broken:
            if self.judged():
                raise Unusable("policies", str(broken)) from None
        except compiled.CompiledError:
            from guardhook.gate import refresh

            try:
                self.compiled = refresh.refresh(self.folders, PROGRAM)
            except refresh.RefreshError as error:
                if self.judged():
                    raise Unusable("policies", str(error)) from None

    def settings(self) -> None:
        """What config.toml says about the gate itself: a shorter or longer watchdog, a smaller largest payload."""
        if self.compiled is None or not self.enforce:
            return
        watchdog = self.compiled.config.get("watchdog")
        if isinstance(watchdog, float) and watchdog != self.patience:
            self.patience = watchdog
            setitimer(ITIMER_REAL, max(0.001, watchdog - (time.monotonic() - self.started)))
        largest = self.compiled.config.get("oversize")
        if isinstance(largest, int) and self.size > largest and self.judged():
            raise PayloadError("oversized", f"the payload is larger than the {largest} bytes that config.toml allows")

    def judge(self) -> None:
        from guardhook.gate import judge, marks
        from guardhook.gate.facts import facts_of
        from guardhook.journal import write

        assert self.event is not None and self.folders is not None and self.compiled is not None
        event = self.event
        head = write.peek(self.folders.journal, event.dialect, event.session, event.cwd)
        pinned = head.root if head is not None else None
        sets, current = judge.project_sets(self.folders, event, pinned, self._refresh_project)
        self.root = pinned or current
        who = (self.folders.data, event.dialect, event.session, event.cwd)
        known = marks.read(*who)
        facts = facts_of(self.folders, self.root, event.cwd, PROGRAM, known)
        verdict, self.effects = judge.decide(
            [self.compiled, *sets],
            event,
            facts,
            allow_empty=self.options.allow_empty,
            data_folder=self.folders.data,
        )
        self.answer = self.dialect.answer(event, verdict)  # type: ignore[attr-defined]
        self.verdict = verdict
        if facts.brought and (verdict.action != "deny" or verdict.mode == "observe"):
            marks.add(*who, known, facts.brought)

    def finish_recorded(self) -> NoReturn:
        """Appends, then answers. A judged call that leaves no trace is blocked."""
        from guardhook.gate import record

        event = self.event
        assert event is not None and self.folders is not None
        budget = limits.JOURNAL_LOCK_ENFORCING if self.enforce else limits.JOURNAL_LOCK_OBSERVING
        if self.verdict is None:
            self.answer = self.greeting() if event.event == "session_start" and self.enforce else self.silent()
        data = record.data_of(
            event,
            self.verdict,
            self.answer,
            self.compiled,
            self.effects,
            no_input=self.options.no_input,
            behind_launcher=self.options.verdict_fd is not None,
        )
        outcome = record.append(self.folders.journal, event, self.root, data, budget, self.now, self.compiled)
        if outcome.state == "nowhere" and self.judged() and not self.options.allow_empty:
            from guardhook.gate.judge import blocks, fault

            if self.verdict is not None and not blocks(self.verdict):
                self.verdict = fault("journal", f"the call can't be recorded ({outcome.note})")
                self.answer = self.dialect.answer(event, self.verdict)  # type: ignore[attr-defined]
        assert self.answer is not None
        self.end(self.answer)

    # --- the ways out ----------------------------------------------------------------------------------------

    def fail(self, cause: str, message: str) -> NoReturn:
        """Ends the process after a fault: a verdict that exists stands, else the dialect's block.

        A verdict that lets the call pass stands only where time ran out: any other fault kept it from being recorded.
        """
        if self.verdict is not None and self.answer is not None and (cause == "watchdog" or self._stands()):
            self.end(self.answer)
        verdict = Verdict("deny", message)
        verdict.cause = cause
        if not self.enforce:
            verdict.mode = "observe"  # nothing is blocked, and the record must not say so
        self.end(self.blocking_answer(verdict), verdict)

    def _stands(self) -> bool:
        """Whether the verdict needs no record: it blocks or asks, or it is wanted that nothing blocks for this."""
        from guardhook.core.verdict import BLOCKING

        assert self.verdict is not None
        return self.verdict.action in BLOCKING or self.verdict.mode == "observe" or self.options.allow_empty

    def blocking_answer(self, verdict: Verdict) -> Answer:
        """The block in the words of whoever is asking, as far as that is known. Never raises."""
        try:
            if not self.enforce:
                return self.silent()
            if self.event is not None:
                if self.event.event not in JUDGED:
                    return self.silent()
                return self.dialect.answer(self.event, verdict)  # type: ignore[attr-defined,no-any-return]
            from guardhook.dialects import unknown

            return unknown.answer_for(self.options.dialect, self.options.event, verdict, self.likely)
        except Exception:
            reason = printable(verdict.reason, limits.REASON_CHARS)
            return Answer(BLOCK_STATUS, b"", f"guardhook: blocked: {reason}\n".encode("ascii", "backslashreplace"))

    def silent(self) -> Answer:
        """No objection: nothing at all, but for the harnesses that demand a word."""
        if self.event is None or self.dialect is None:
            return SILENT
        verdict = Verdict("allow")
        verdict.mode = "enforce" if self.enforce else "observe"
        return self.dialect.answer(self.event, verdict)  # type: ignore[attr-defined,no-any-return]

    def greeting(self) -> Answer:
        """Nothing, unless the harness was silent for long: then a person is told, in a dialect that has words for it."""
        from guardhook.gate import silence

        assert self.event is not None and self.folders is not None
        text = silence.words(self.folders.journal, self.event.dialect, self.now / 1e9)
        if text is None:
            return self.silent()
        return self.dialect.answer(self.event, Verdict("warn", text))  # type: ignore[attr-defined,no-any-return]

    def end(self, answer: Answer, unrecorded: Verdict | None = None) -> NoReturn:
        self.answering = True
        setitimer(ITIMER_REAL, 0)
        if unrecorded is not None:
            self._record_fault(unrecorded, answer)
        finish(answer, self.options.verdict_fd, enforce=self.enforce)

    def judged(self) -> bool:
        """Whether this event waits for a verdict."""
        return self.enforce and self.event is not None and self.event.event in JUDGED

    # --- helpers ---------------------------------------------------------------------------------------------

    def _alarm(self, signum: int, frame: object) -> None:
        if self.answering:
            return
        if self.reading:
            self.reading = False
            raise Deadline
        self.fail("watchdog", f"no verdict within {self.patience:g} seconds")

    def _refresh_project(self, root: str) -> Compiled | None:
        from guardhook.gate import refresh

        assert self.folders is not None
        if self.projects_until is None:
            # Shared by all projects of an event: two slow ones must not use up the watchdog's time, which blocks.
            self.projects_until = time.monotonic() + limits.RECOMPILE_SECONDS
        try:
            return refresh.refresh(self.folders, PROGRAM, root, self.projects_until)
        except refresh.RefreshError:
            return None

    def _record_fault(self, verdict: Verdict, answer: Answer) -> None:
        """A fault leaves a trace too, if it can without keeping anybody waiting."""
        try:
            from guardhook.gate import record

            if verdict.cause == "folders" or not self.told:
                return  # a folder that was named and does not exist is not made, nor another one taken for one that may be named
            if self.folders is None:
                self.folders = folders_module.for_hook(self.options.directory, PROGRAM)
            event = self.event
            if event is None:
                event = Event(self.options.dialect or "unknown", self.options.event or "", "other", {})
            data = record.data_of(
                event,
                verdict,
                answer,
                self.compiled,
                [],
                no_input=self.options.no_input,
                behind_launcher=self.options.verdict_fd is not None,
            )
            record.append(
                self.folders.journal, event, None, data, limits.JOURNAL_LOCK_OBSERVING, self.now, self.compiled
            )
        except Exception:
            return


class Unknown(Exception):
    """The payload is of no known dialect, or of another one than was registered."""

    def __init__(self, why: str, likely: str | None = None) -> None:
        super().__init__(why)
        self.likely = likely


class Unusable(Exception):
    """Something that judging needs is not there."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


def recognition_env(names: tuple[str, ...]) -> dict[str, str]:
    """The few environment variables that recognition may use as a tie-break."""
    found: dict[str, str] = {}
    for name in names:
        value = posix.environ.get(name.encode())
        if value is not None:
            found[name] = value.decode("utf-8", "replace")
    return found


def main(argv: list[str] | None = None) -> NoReturn:
    """Runs one hook invocation and ends the process. Nothing gets past it: no exception, no return."""
    words: list[str] = []
    try:
        words = sys.argv[1:] if argv is None else argv
        _guarded(words)
    except BaseException:
        # Even reporting the fault failed. Below here there is nothing left that could.
        last_resort(words)
    last_resort(words)


def _guarded(words: list[str]) -> None:
    hook = Hook(words)
    try:
        hook.run()
    except Unusable as error:
        hook.fail(error.cause, str(error))
    except Unknown as error:
        hook.likely = error.likely
        hook.fail("unknown", str(error))
    except PayloadError as error:
        hook.fail("payload", str(error))
    except options_module.OptionError as error:
        hook.options, hook.told = error.options, True
        hook.fail("usage", f"{error}; the registration of guardhook is wrong, run `guardhook doctor`")
    except BaseException as error:
        hook.fail("internal", f"guardhook failed ({type(error).__name__}); nothing is allowed until it works again")


def last_resort(words: list[str]) -> NoReturn:
    """Blocks (or stays silent, observing) with what the interpreter itself offers."""
    try:
        if not options_module.enforcing(words):
            posix._exit(0)
        posix.write(2, b"guardhook: blocked: guardhook failed; nothing is allowed until it works again\n")
    finally:
        posix._exit(BLOCK_STATUS)
