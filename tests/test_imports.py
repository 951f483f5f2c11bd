"""The order of the house: a package imports only itself and what stands before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "guardhook"

# Packages of one row don't know of each other.
ORDER = (
    ("core",),
    ("dialects",),
    ("analysis",),
    ("policy",),
    ("journal",),
    ("gate",),
    ("store",),
    ("intake", "rollout", "evals"),
    ("archive",),  # keeps runs as rollout events
    ("harness",),
    ("views",),
    ("commands",),
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}
ENTRY = {"__main__.py", "__init__.py"}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of each import, inside functions and for type checkers included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def wrong(package: str, source: str) -> list[str]:
    """What a module of a package imports although it stands after the package, or beside it."""
    found = []
    for line, name in imported(source):
        words = name.split(".")
        if words[0] != "guardhook" or words[1:2] in ([package], ["__version__"]):
            continue
        if RANK.get(words[1], len(ORDER)) >= RANK[package]:
            found.append(f"{line}: {name}")
    return found


def packages() -> list[str]:
    return sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def test_every_package_has_its_place() -> None:
    assert set(packages()) <= set(RANK)
    assert {path.name for path in PACKAGE.glob("*.py")} == ENTRY


@pytest.mark.parametrize("package", packages())
def test_imports_point_one_way(package: str) -> None:
    found = {
        str(path.relative_to(PACKAGE)): wrong(package, path.read_text()) for path in (PACKAGE / package).rglob("*.py")
    }
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("policy", "from guardhook.journal import rules"),
        ("core", "import guardhook.gate.hook"),
        ("store", "def f():\n    from guardhook import commands"),
        ("rollout", "from guardhook.archive import packing"),
        ("gate", "from guardhook import __main__"),
    ],
)
def test_an_import_against_the_order_is_found(package: str, line: str) -> None:
    assert wrong(package, line)
