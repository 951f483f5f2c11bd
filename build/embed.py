"""Builds the hook program as a small C program with the interpreter and the gate's compiled modules inside.

Linked statically where the interpreter comes with its static library, else against a copy of the shared one that lies
beside the program. Needs the interpreter's headers and a C compiler; EmbedError says what is missing, and the caller
falls back on PyInstaller's bootloader, which is about twice as slow to start.
"""

from __future__ import annotations

import ast
import marshal
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import CodeType

import closure
import static_code

from guardhook.harness.contents import Item
from guardhook.harness.launcher import source_folder

STDLIB = Path(sysconfig.get_path("stdlib"))
# What an interpreter imports before anybody asks it to, and that is not frozen into it already.
CODECS = {
    "encodings": STDLIB / "encodings" / "__init__.py",
    "encodings.aliases": STDLIB / "encodings" / "aliases.py",
    "encodings.utf_8": STDLIB / "encodings" / "utf_8.py",
}
RPATH = "-Wl,-rpath,@loader_path" if os.uname().sysname == "Darwin" else "-Wl,-rpath,$ORIGIN"

# Addresses that are known when linking: else the loader would rewrite every pointer in the modules, a hook's worth of work.
FIXED = ["-no-pie"] if sys.platform == "linux" else []


class EmbedError(Exception):
    """The embedding program can't be built here."""


def build(found: closure.Closure) -> list[Item]:
    """The hook program's files. Raises EmbedError."""
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise EmbedError(f"the interpreter's headers are missing ({headers})")
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise EmbedError("there is no C compiler")
    said = "the interpreter has neither a static nor a shared library"
    with tempfile.TemporaryDirectory() as work:
        for library, shared in libraries():
            header = frozen_header(CODECS, found, static=not shared and static_code.usable())
            Path(work, "frozen.h").write_text(header, encoding="ascii")
            target = Path(work, "guardhook-hook")
            words = [compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{headers}", f"-I{work}"]
            words += ["-o", str(target), str(source_folder() / "hook.c"), str(library)]
            words += [f"-DLINKED_STATICALLY={int(not shared)}"]
            words += [RPATH] if shared else ["-Wl,--export-dynamic", *FIXED, *system_libraries()]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode == 0:
                items = [Item("guardhook-hook", 0o500, stripped(target, work))]
                if shared:
                    items.append(Item(library.name, 0o400, stripped(library, work)))
                items += [
                    Item(f"{name.replace('.', '/')}.so", 0o400, stripped(path, work))
                    for name, path in found.extensions.items()
                ]
                return items
            said = next((line for line in done.stderr.splitlines() if "error" in line), "linking failed")
            print(f"build/embed: {library.name} can't be used: {said}", file=sys.stderr)
    raise EmbedError(said)


def libraries() -> list[tuple[Path, bool]]:
    """Candidates, best first, and whether each is a shared library."""
    variable = sysconfig.get_config_var
    static = Path(variable("LIBPL") or "/nonexistent", variable("LIBRARY") or "none")
    shared = Path(variable("LIBDIR") or "/nonexistent", variable("INSTSONAME") or "none")
    found = [(static, False)] if static.is_file() and static.suffix == ".a" else []
    if shared.is_file() and shared.suffix != ".a":
        found.append((shared, True))
    return found


def system_libraries() -> list[str]:
    words = f"{sysconfig.get_config_var('LIBS') or ''} {sysconfig.get_config_var('SYSLIBS') or ''}".split()
    return [word for word in words if word.startswith("-l")]


def stripped(path: Path, work: str) -> bytes:
    """The file without symbols and without search paths of the machine that it was built on."""
    copy = Path(work, "stripped")
    shutil.copyfile(path, copy)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True, capture_output=True)
    if path.suffix != "" and ".so" in path.name and shutil.which("patchelf"):
        subprocess.run(["patchelf", "--remove-rpath", str(copy)], check=True, capture_output=True)
    return copy.read_bytes()


def frozen_header(codecs: dict[str, Path], found: closure.Closure, *, static: bool) -> str:
    """frozen.h: the modules' code without docstrings and without the paths of this machine; the gate's as C data if `static`."""
    lines = [f'#define ENTRY "{closure.ENTRY}"']
    rows = []
    writer = static_code.Writer()
    for number, (name, path) in enumerate(sorted({**codecs, **found.modules}.items())):
        code = code_of(name, path)
        package = int(path.name == "__init__.py")
        if static and name not in codecs:
            rows.append(f'{{.name = "{name}", .is_package = {package}, .get_code = {writer.module(number, code)}}},')
            continue
        data = marshal.dumps(code)
        lines.append(f"static const unsigned char M{number}[] = {{{','.join(map(str, data))}}};")
        rows.append(f'{{.name = "{name}", .code = M{number}, .size = {len(data)}, .is_package = {package}}},')
    if static:
        lines += writer.lines
    lines += ["static const struct _frozen MODULES[] = {", *rows, "    {.name = NULL}};"]
    names = "".join(f'"{name}", ' for name in sorted(found.extensions))
    lines.append(f"static const char *const EXTENSIONS[] = {{{names}NULL}};")
    return "\n".join(lines) + "\n"


def code_of(name: str, path: Path) -> CodeType:
    """The compiled module, without what only people and type checkers read: docstrings, annotations, line numbers."""
    tree = Unannotated().visit(ast.parse(path.read_bytes(), f"<{name}>"))
    code: CodeType = compile(ast.fix_missing_locations(tree), f"<{name}>", "exec", dont_inherit=True, optimize=2)
    return without_lines(code)


class Unannotated(ast.NodeTransformer):
    """Drops annotations, and with them `from __future__ import annotations`, which loads a module at run time."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "__future__" else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def without_lines(code: CodeType) -> CodeType:
    """The code without the table of line numbers: no hook prints a traceback, and every exception would look into it."""
    consts = tuple(without_lines(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=consts)
