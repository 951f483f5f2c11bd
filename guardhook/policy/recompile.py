"""What the hook program starts when its compiled policies are stale: `guardhook policy compile --stdout …`.

The hook waits for it, so it goes past the command framework. The bytes go to stdout, since the hook needs them now, and
into the data folder for the next time where that is possible.
"""

from __future__ import annotations

import contextlib
import sys

from guardhook.core.folders import Folders

FLAGS = ("--config", "--data", "--system", "--project")


def main(words: list[str]) -> int:
    """words are pairs of flag and value after `policy compile --stdout`. Returns 0; 2 with one line on stderr for wrong words."""
    given = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not set(given) <= set(FLAGS) or not {"--config", "--data", "--system"} <= set(given):
        print("guardhook: policy compile --stdout is for the hook program only", file=sys.stderr)
        return 2
    from guardhook.policy import compile as compiler

    folders = Folders(given["--config"], given["--data"], given["--system"])
    if "--project" in given:
        result = compiler.compile_project(folders, given["--project"])
    else:
        from guardhook.journal.rules import freeze_rules

        result = compiler.compile_main(folders, redact=freeze_rules())
    with contextlib.suppress(compiler.CompileError):
        compiler.write(result)
    sys.stdout.buffer.write(result.blob)
    sys.stdout.buffer.flush()
    return 0
