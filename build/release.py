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
import inside  # noqa: E402
import sbom  # noqa: E402
import shared_spec  # noqa: E402

from guardhook.harness.contents import Item, launcher_item  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="build/release", description="Build the executable and what goes with it.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the results (default: dist/)")
    parser.add_argument("--no-embed", action="store_true", help="hook program with PyInstaller's bootloader")
    arguments = parser.parse_args()
    if shutil.which("strip") is None:
        print("build/release: there is no `strip`; the results will be larger and slower", file=sys.stderr)
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="guardhook-build-") as work:
        items = hook_program(Path(work), embedded=not arguments.no_embed)
        launcher = launcher_item()
        if launcher.note:
            sys.exit(f"build/release: no launcher, no release: {launcher.note}")
        items.append(launcher)
        executable = single_file(items, Path(work))
        check(items, executable, Path(work))
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
    policies = shared_spec.shipped_policies()
    if embedded:
        try:
            return embed.build(found) + [Item(f"policies/{name}", 0o400, data) for name, data in policies]
        except embed.EmbedError as error:
            print(f"build/release: the hook program gets PyInstaller's bootloader: {error}", file=sys.stderr)
    pyinstaller("hook_fallback.spec", work)
    folder = work / "dist" / "guardhook-hook"
    items = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            mode = 0o500 if os.access(path, os.X_OK) and path.suffix == "" else 0o400
            items.append(Item(path.relative_to(folder).as_posix(), mode, path.read_bytes()))
    # Not beside the program itself: PyInstaller's importer takes a file `guardhook` there for the package.
    return items + [Item(f"lib/policies/{name}", 0o400, data) for name, data in policies]


def check(items: list[Item], executable: Path, work: Path) -> None:
    """Runs both forms once, compiling included: a module that is missing must fail the build, not the first user."""
    folder = work / "check"
    for item in items:
        path = folder / item.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(item.data)
        path.chmod(item.mode)
    shutil.copy(executable, folder / "guardhook")
    payload = b'{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"/h/.claude/projects/p/s.jsonl",'
    payload += b'"cwd":"/","tool_name":"Bash","tool_input":{"command":"true"},"tool_use_id":"toolu_1"}'
    words = ["hook", "--enforce", "--dialect", "claude-code", "--dir"]
    for program in ("guardhook-hook", "guardhook"):
        (work / f"data-{program}").mkdir()
        command = [str(folder / program), *words, str(work / f"data-{program}")]
        for _ in range(4):
            done = subprocess.run(command, input=payload, capture_output=True, env={}, timeout=60)
            if b"compiling the policies took longer" not in done.stderr:  # as it should on a crowded machine
                break
        if (done.returncode, done.stdout, done.stderr) != (0, b"", b""):
            sys.exit(f"build/release: {program} does not work: {done.returncode} {done.stdout!r} {done.stderr!r}")


def single_file(items: list[Item], work: Path) -> Path:
    """The executable, with everything packed into it that a hook does not need."""
    inside.write(items, closure.find(), work / "generated")
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
    main()
