"""What stays packed inside the single-file executable: generated modules that hold files as bytes, and the gate's modules.

guardhook_payload        the hook program, for `install`
guardhook_cold           names of the C extensions that the gate doesn't need, the libraries that they need, and the policy files
first_entry.py           the gate's modules in one piece, and what runs them: 80 reads of the archive are 80 file openings
guardhook_cold_<n>       one such extension or library each
guardhook_cold_codecs    codecs of the standard library
"""

from __future__ import annotations

import marshal
from pathlib import Path

import closure
import shared_spec
from embed import code_of

from guardhook.harness.contents import PAYLOAD_MODULE, Item, pack

# C extensions that are unpacked at every start: what the gate imports, and what PyInstaller's own start needs.
HOT = frozenset(("_json", "fcntl", "_blake2", "_sha256", "_sha2", "_struct", "zlib", "regex._regex"))
# The libraries behind the other extensions, and the files that they are no good without: start of the file name -> extension.
COLD_LIBRARIES = {
    "libsqlite3": "_sqlite3",
    "libssl": "_ssl",
    "libcrypto": "_ssl",
    "cacert.pem": "_ssl",
    "libstdc++": "google._upb._message",
    "libgcc_s": "google._upb._message",
}


def write(items: list[Item], found: closure.Closure, folder: Path) -> None:
    """Writes the modules that don't depend on PyInstaller's analysis."""
    folder.mkdir()
    _module(folder, PAYLOAD_MODULE, DATA=pack(items))
    hot = {
        name: (path.name == "__init__.py", marshal.dumps(code_of(name, path))) for name, path in found.modules.items()
    }
    first = (Path(__file__).resolve().parent / "first_entry.py").read_text(encoding="utf-8")
    (folder / "first_entry.py").write_text(f"MODULES = {hot!r}\n{first}")


def take_out(
    binaries: list[shared_spec.Entry], codecs: dict[str, bytes], folder: Path
) -> tuple[list[shared_spec.Entry], list[shared_spec.Entry]]:
    """Splits the C extensions that only other commands need off: (binaries to unpack at start, modules that hold the others)."""
    kept: list[shared_spec.Entry] = []
    modules: list[shared_spec.Entry] = []
    names: dict[str, str] = {}
    libraries: dict[str, list[tuple[str, str]]] = {}
    for entry in binaries:
        name = extension_name(entry)
        base = Path(entry[0]).name
        behind = next((needs for start, needs in COLD_LIBRARIES.items() if base.startswith(start)), None)
        if name in HOT or (name is None and behind is None):
            kept.append(entry)
            continue
        holder = f"guardhook_cold_{len(modules)}"
        if name is not None:
            names[name] = holder
        elif behind is not None:
            libraries.setdefault(behind, []).append((entry[0] if entry[2] == "DATA" else base, holder))
        modules.append(_module(folder, holder, DATA=Path(entry[1]).read_bytes()))
    policies = {f"policies/{name}": data for name, data in shared_spec.shipped_policies() if name != "DIGEST"}
    modules.append(_module(folder, "guardhook_cold", NAMES=names, LIBRARIES=libraries, POLICIES=policies))
    modules.append(_module(folder, "guardhook_cold_codecs", CODECS=codecs))
    return kept, modules


def extension_name(entry: shared_spec.Entry) -> str | None:
    """The module name of an extension's entry, None for any other library."""
    if entry[2] != "EXTENSION":
        return None
    parts = entry[0].replace("\\", "/").split("/")
    if "lib-dynload" in parts:
        parts = parts[parts.index("lib-dynload") + 1 :]
    parts[-1] = parts[-1].partition(".")[0]
    return ".".join(parts)


def _module(folder: Path, name: str, **values: object) -> shared_spec.Entry:
    path = folder / f"{name}.py"
    path.write_text("".join(f"{key} = {value!r}\n" for key, value in values.items()))
    return (name, str(path), "PYMODULE")
