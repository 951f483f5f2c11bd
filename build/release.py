"""Builds a release for this platform: the executable, the launcher, checksums and the bill of materials.

build/release [--out DIR] [--no-embed]

DIR/guardhook      one file; works as downloaded, `guardhook install` unpacks the hook program from it
DIR/launcher       the static launcher (also inside the executable), for other installers
DIR/sbom.cdx.json  CycloneDX, from the metadata of the installed packages
DIR/SHA256SUMS     of all of these
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import closure  # noqa: E402
import embed  # noqa: E402
import sbom  # noqa: E402
import shared_spec  # noqa: E402

from guardhook.harness.contents import PAYLOAD_MODULE, Item, launcher_item, pack  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="build/release", description="Build the executable and what goes with it.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the results (default: dist/)")
    parser.add_argument("--no-embed", action="store_true", help="hook program with PyInstaller's bootloader")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guardhook-build-") as work:
        items = hook_program(Path(work), embedded=not arguments.no_embed)
        launcher = launcher_item()
        if launcher.note:
            sys.exit(f"build/release: no launcher, no release: {launcher.note}")
        items.append(launcher)
        check(items, Path(work))
        executable = single_file(items, Path(work))
        results = {"guardhook": executable.read_bytes(), "launcher": launcher.data, "sbom.cdx.json": sbom.render()}
    for name, data in results.items():
        partial = out / f".{name}.tmp"
        partial.write_bytes(data)
        partial.chmod(0o644 if name.endswith(".json") else 0o755)
        partial.replace(out / name)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(results.items()))
    (out / "SHA256SUMS").write_text(sums)
    for name, data in results.items():
        print(f"{out / name}  {len(data) / 1e6:.1f} MB")


def hook_program(work: Path, *, embedded: bool) -> list[Item]:
    """The unpacked hook program: the embedding one, or PyInstaller's where that can't be built."""
    found = closure.find()
    policies = [Item(f"policies/{name}", 0o400, data) for name, data in shared_spec.shipped_policies()]
    if embedded:
        try:
            return embed.build(found) + policies
        except embed.EmbedError as error:
            print(f"build/release: the hook program gets PyInstaller's bootloader: {error}", file=sys.stderr)
    pyinstaller("hook_fallback.spec", work)
    folder = work / "dist" / "guardhook-hook"
    items = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            mode = 0o500 if os.access(path, os.X_OK) and path.suffix == "" else 0o400
            items.append(Item(path.relative_to(folder).as_posix(), mode, path.read_bytes()))
    return items + policies


def check(items: list[Item], work: Path) -> None:
    """Starts the hook program once: a module that is missing in it must fail the build, not the first user."""
    folder = work / "check"
    for item in items:
        path = folder / item.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(item.data)
        path.chmod(item.mode)
    payload = b'{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"true"}}'
    command = [
        str(folder / "guardhook-hook"),
        "hook",
        "--enforce",
        "--dialect",
        "claude-code",
        "--dir",
        "/nonexistent/folder",
    ]
    done = subprocess.run(command, input=payload, capture_output=True, env={}, timeout=30)
    if done.returncode != 2 or b"--dir does not exist" not in done.stderr:
        sys.exit(f"build/release: the hook program does not work: {done.returncode} {done.stderr!r}")


def single_file(items: list[Item], work: Path) -> Path:
    """The executable, with the hook program packed into a module that only `install` loads."""
    generated = work / "generated"
    generated.mkdir()
    (generated / f"{PAYLOAD_MODULE}.py").write_text(f"DATA = {pack(items)!r}\n")
    pyinstaller("guardhook.spec", work)
    return work / "dist" / "guardhook"


def pyinstaller(spec: str, work: Path) -> None:
    env = {**os.environ, "GUARDHOOK_WORK": str(work), "PYINSTALLER_ZLIB_COMPRESSION_LEVEL": "0", "PYTHONHASHSEED": "0"}
    env.setdefault("SOURCE_DATE_EPOCH", "315532800")
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", str(work / "dist"), "--workpath", str(work / "pyinstaller"), str(HERE / spec)]
    done = subprocess.run(command, env=env)
    if done.returncode != 0:
        sys.exit(f"build/release: PyInstaller failed on {spec}")


if __name__ == "__main__":
    if shutil.which("strip") is None:
        print("build/release: there is no `strip`; the results will be larger and slower", file=sys.stderr)
    main()
