"""What goes into the hook program: nothing beside the gate, and nothing that is slow to import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build"
sys.path.insert(0, str(BUILD))

import closure  # noqa: E402
import embed  # noqa: E402


def test_the_gate_imports_only_what_is_cheap() -> None:
    found = closure.find()
    assert "guardhook.gate.hook" in found.modules
    assert {name for name in found.modules if name.startswith("guardhook.dialects.")} > {"guardhook.dialects.codex"}
    assert set(found.extensions) <= closure.EXTENSIONS | {closure.ENGINE}
    cold = ("commands", "harness", "store", "views", "intake", "rollout", "archive", "evals")
    assert not [name for name in found.modules if name.split(".")[1:2] and name.split(".")[1] in cold]
    assert not {"guardhook.policy.model", "guardhook.policy.load", "guardhook.policy.compile"} & set(found.modules)


@pytest.mark.parametrize("line", ["import json", "from typing import NamedTuple", "def f():\n    import re"])
def test_an_expensive_import_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    (tmp_path / "guardhook").mkdir()
    (tmp_path / "guardhook" / "__init__.py").write_text("")
    (tmp_path / "guardhook" / "hot.py").write_text(line + "\n")
    monkeypatch.setattr(closure, "ROOT", tmp_path)
    monkeypatch.setattr(closure, "dialect_modules", list)
    with pytest.raises(closure.ClosureError, match="must not import"):
        closure.find("guardhook.hot")


def test_imports_for_type_checkers_only_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "guardhook").mkdir()
    (tmp_path / "guardhook" / "__init__.py").write_text("")
    (tmp_path / "guardhook" / "hot.py").write_text(
        "from __future__ import annotations\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n    from typing import Any\n"
    )
    monkeypatch.setattr(closure, "ROOT", tmp_path)
    monkeypatch.setattr(closure, "dialect_modules", list)
    assert set(closure.find("guardhook.hot").modules) == {"guardhook", "guardhook.hot"}


def test_compiled_modules_carry_only_what_runs(tmp_path: Path) -> None:
    source = tmp_path / "m.py"
    source.write_text(
        '"""Text."""\n'
        "from __future__ import annotations\n\n\n"
        "class C:\n    a: Undefined\n    b: Undefined = 1\n\n\n"
        "def f(x: Undefined, *y: Undefined, z: Undefined = 2) -> Undefined:\n"
        "    here: Undefined = x\n    there: Undefined\n    C.c: Undefined = 3\n    return here, y, z\n"
    )
    code = embed.code_of("m", source)
    assert "__future__" not in code.co_names
    assert not list(code.co_lines())
    space: dict[str, object] = {"__name__": "m"}
    exec(code, space)
    f, c = space["f"], space["C"]
    assert f.__annotations__ == {}  # type: ignore[attr-defined]
    assert f(1, 5) == (1, (5,), 2)  # type: ignore[operator]
    assert (c.b, c.c) == (1, 3)  # type: ignore[attr-defined]
    assert "__annotations__" not in space
