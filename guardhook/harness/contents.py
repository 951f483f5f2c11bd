"""What one version of the hook program consists of: from the payload inside the executable, or made from this source.

The single-file executable carries the hook program as one compressed object that is only touched here, so that its own
start never pays for it. Installed from a package index the hook program is a small sh script that starts this interpreter
on the package as it lies there; the launcher is compiled on the spot, or takes its sh form.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from guardhook.harness import launcher

PAYLOAD_MODULE = "guardhook_payload"  # exists only inside the executable; DATA = pack(items)


@dataclass(frozen=True)
class Item:
    """One file: a name relative to the version's folder (with `/`), its mode, its bytes. note: why this is a weaker form than usual."""

    name: str
    mode: int
    data: bytes
    note: str = ""


def pack(items: list[Item]) -> bytes:
    """Items as one compressed object."""
    return zlib.compress(marshal.dumps([(item.name, item.mode, item.data) for item in items]), 9)


def unpack(data: bytes) -> list[Item]:
    """The inverse of pack. Only ever given what the executable itself carries."""
    return [Item(name, mode, content) for name, mode, content in marshal.loads(zlib.decompress(data))]


def contents() -> list[Item]:
    """Every file of this program's version but the baked folders. Raises OSError, LauncherError, ValueError."""
    return frozen_contents() if getattr(sys, "frozen", False) else source_contents()


def frozen_contents() -> list[Item]:
    """The hook program that the executable carries, and the executable itself, which compiles policies."""
    import importlib

    items = unpack(importlib.import_module(PAYLOAD_MODULE).DATA)
    name = "guardhook.exe" if os.name == "nt" else "guardhook"
    return [*items, Item(name, 0o500, Path(sys.executable).read_bytes())]


HOOK_SCRIPT = """\
#!/bin/sh
exec {interpreter} -I -S -E -c {code} "$0" "$@"
"""

# The script's own folder, where the baked folders are, takes the place of the package's.
HOOK_CODE = """\
import gc, sys
gc.disable()
sys.path += {paths!r}
from guardhook.gate import hook
hook.PROGRAM = sys.argv.pop(1).rpartition("/")[0]
hook.main()
"""


def source_contents() -> list[Item]:
    """The hook program as a script that starts this interpreter on the package, and a launcher made here."""
    interpreter = Path(sys.executable)
    with open(interpreter, "rb") as file:
        if file.read(2) == b"#!":
            raise ValueError(f"{interpreter} is a script that looks for an interpreter, not an interpreter")
    code = HOOK_CODE.format(paths=package_folders())
    script = HOOK_SCRIPT.format(interpreter=_quote(str(interpreter)), code=_quote(code))
    items = [Item("guardhook-hook", 0o500, script.encode())]
    if os.name == "nt":
        raise ValueError("on Windows only the executable can be installed as a hook")
    return [*items, launcher_item()]


def package_folders() -> list[str]:
    """The folders that the hook imports from beside the standard library: this package's, and the regex engine's."""
    from importlib.util import find_spec

    found = [str(Path(__file__).resolve().parent.parent.parent)]
    engine = find_spec("regex")
    if engine is not None and engine.origin:
        folder = str(Path(engine.origin).parent.parent)
        if folder not in found:
            found.append(folder)
    return found


def launcher_item() -> Item:
    """The compiled launcher, else its sh form (with a note that says why)."""
    import tempfile

    table = launcher.collect()
    try:
        with tempfile.TemporaryDirectory() as work:
            built = Path(work, "launcher")
            launcher.compile_c(built, table)
            return Item("launcher", 0o500, built.read_bytes())
    except launcher.LauncherError as error:
        template = (launcher.source_folder() / "launcher.sh.in").read_text(encoding="ascii")
        text = launcher.render_sh(table, template)
        return Item("launcher.sh", 0o400, text.encode("ascii"), note=str(error))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
