"""Prints the launcher's generated parts, to be looked at: `launcher_table.py c` or `launcher_table.py sh`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from guardhook.harness import launcher


def main() -> None:
    form = sys.argv[1] if len(sys.argv) == 2 else ""
    if form == "c":
        sys.stdout.write(launcher.render_c(launcher.collect()))
    elif form == "sh":
        template = (launcher.source_folder() / "launcher.sh.in").read_text(encoding="ascii")
        sys.stdout.write(launcher.render_sh(launcher.collect(), template))
    else:
        sys.exit("usage: launcher_table.py c|sh")


if __name__ == "__main__":
    main()
