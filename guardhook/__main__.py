"""The only entry. `hook` goes straight to the gate; everything else to the command table."""

from __future__ import annotations

import sys


def main() -> None:
    """Console script `guardhook`."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and words[1:] not in (["--help"], ["-h"]):
        hook(words)
    from guardhook.commands import main as command

    command()


def hook(words: list[str]) -> None:
    """Runs the gate. A gate that can't even be imported blocks when it was asked to enforce."""
    try:
        from guardhook.gate.hook import main as gate
    except BaseException as error:
        import os

        if "--enforce" not in words:
            os._exit(0)
        os.write(2, f"guardhook: blocked: guardhook is damaged ({type(error).__name__})\n".encode())
        os._exit(2)
    gate(words)


if __name__ == "__main__":
    main()
