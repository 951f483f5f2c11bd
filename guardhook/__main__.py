"""The only entry. `hook` and `guard check` go straight to the gate; everything else to the command table."""

from __future__ import annotations

import sys


def main() -> None:
    """Console script `guardhook`."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and words[1:] not in (["--help"], ["-h"]):
        from guardhook.gate.hook import main as hook

        hook(words)
    from guardhook.commands import main as command

    command()


if __name__ == "__main__":
    main()
