"""Which modules the hook program consists of: everything that the gate can import, found by reading the source.

Imports inside functions count, imports below `if TYPE_CHECKING:` don't. Outside this package only the interpreter's
built-in modules, its frozen ones and a few C extensions may appear: anything else would cost every hook its start-up time, so
it is an error here.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ENTRY = "guardhook.gate.hook"
# The C extensions that the gate may use where they are not built into the interpreter. unicodedata only for non-ASCII text.
EXTENSIONS = frozenset(("_json", "fcntl", "_blake2", "unicodedata", "_sha256", "_sha2"))
ENGINE = "regex._regex"


class Closure(NamedTuple):
    """Source files by module name, and the C extensions by module name."""

    modules: dict[str, Path]
    extensions: dict[str, Path]


class ClosureError(Exception):
    """The gate imports something that it must not."""


def find(entry: str = ENTRY) -> Closure:
    """Everything that the hook program needs beside the interpreter. Raises ClosureError."""
    sys.path.insert(0, str(ROOT))
    modules: dict[str, Path] = {}
    extensions: dict[str, Path] = {}
    waiting = [entry, *dialect_modules()]
    while waiting:
        name = waiting.pop()
        if name in modules or name in extensions:
            continue
        if name.partition(".")[0] != "guardhook":
            origin = outside(name)
            if origin is not None:
                extensions[ENGINE if name.startswith("regex") else name] = origin
            continue
        path = source_of(name)
        if path is None:  # a name inside a module, not a module
            continue
        modules[name] = path
        waiting += imported(path, name)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return Closure(dict(sorted(modules.items())), dict(sorted(extensions.items())))


def dialect_modules() -> list[str]:
    """The dialects are imported by name, from a table."""
    from guardhook.dialects import table

    return [f"guardhook.dialects.{module}" for module in table.MODULES.values()]


def source_of(name: str) -> Path | None:
    base = ROOT.joinpath(*name.split("."))
    if (base / "__init__.py").is_file():
        return base / "__init__.py"
    path = base.with_suffix(".py")
    return path if path.is_file() else None


def outside(name: str) -> Path | None:
    """None for what every interpreter has in itself, the file of an allowed extension otherwise. Raises ClosureError."""
    if name == "regex" or name.startswith("regex."):
        spec = importlib.util.find_spec(ENGINE)
        assert spec is not None and spec.origin is not None
        return Path(spec.origin)
    if name in sys.builtin_module_names or name == "__future__":
        return None
    if name not in EXTENSIONS:
        raise ClosureError(f"the gate must not import {name}")
    spec = importlib.util.find_spec(name)
    if spec is None:  # named differently in this version; the gate knows both names
        return None
    return None if spec.origin in (None, "built-in", "frozen") else Path(spec.origin)


def imported(path: Path, name: str) -> Iterator[str]:
    """Full names of what a source file imports; for `from a import b` both `a` and `a.b`."""
    for node in walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ClosureError(f"{name} has a relative import")
            module = node.module or ""
            if module == "__future__":
                continue
            yield module
            if module.partition(".")[0] == "guardhook":
                yield from (f"{module}.{alias.name}" for alias in node.names)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs, which leaves out what stands below `if TYPE_CHECKING:`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            for other in child.orelse:
                yield from walk(other)
            continue
        yield from walk(child)


if __name__ == "__main__":
    found = find()
    for module, file in {**found.modules, **found.extensions}.items():
        print(module, file)
