"""The only entry. `hook` goes straight to the gate; everything else to the command table."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Console script `guardhook`."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and words[1:] not in (["--help"], ["-h"]):
        hook(words)
    run(words)


def run(words: list[str]) -> None:
    """Runs a command. What nobody expected is told in one line; GUARDHOOK_TRACEBACK=1 shows developers the rest."""
    import os

    for number in (0, 1, 2):  # a stream that was closed (`>&-`) goes nowhere, and its number to no other file
        try:
            os.fstat(number)
        except OSError:
            # Where the output is the gate's answer, an answer that nobody can get is none: writing it has to fail.
            answer = number == 1 and words[:2] == ["guard", "check"]
            os.open(os.devnull, os.O_RDONLY if answer else os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if not os.path.isabs(os.environ.get("HOME", "/")):
        del os.environ["HOME"]  # empty or relative: home is then what the user database says, never the root folder
    try:
        if words[:3] == ["policy", "compile", "--stdout"]:
            from guardhook.policy import recompile

            sys.exit(recompile.main(words[3:], _redaction))
        from guardhook.commands import main as command

        command(words)
    except KeyboardInterrupt:
        sys.exit(130)  # Ctrl-C before the command had begun
    except Exception as error:
        if os.environ.get("GUARDHOOK_TRACEBACK"):
            raise
        from guardhook.commands.output import say

        if isinstance(error, OSError) and error.filename is None and error.errno in (5, 28):
            # EIO or ENOSPC of stdout. What is still in its buffer would fail once more at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            say(f"guardhook: the output can't be written: {error.strerror}")
            sys.exit(1)
        if isinstance(error, FileNotFoundError) and error.filename is None:  # what os.getcwd raises
            say("guardhook: the current folder is not there any more; go to another one")
            sys.exit(2)
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = f" ({os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno})" if where else ""
        say(f"guardhook: internal error: {type(error).__name__}: {error}{place}")
        sys.exit(1)


def _redaction(custom: Sequence[str], off: Sequence[str]) -> tuple[object, ...]:
    from guardhook.journal.rules import freeze_rules

    return freeze_rules(custom, off)


def hook(words: list[str]) -> None:
    """Runs the gate. A gate that can't even be imported blocks when it was asked to enforce."""
    try:
        from guardhook.gate.hook import main as gate

        gate(words)
    except BaseException as error:
        import os  # not posix: there may be none, and that must block like anything else that is missing

        if words and "--enforce" not in words:
            os._exit(0)
        os.write(2, f"guardhook: blocked: guardhook is damaged ({type(error).__name__})\n".encode())
        os._exit(2)


if __name__ == "__main__":
    main()
