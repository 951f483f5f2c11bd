"""Code objects as C data are the code objects that the compiler made, and run like them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build"
sys.path.insert(0, str(BUILD))

import embed  # noqa: E402
import static_code  # noqa: E402

STATIC = next((path for path, shared in embed.libraries() if not shared), None)
COMPILER = shutil.which("cc")

MODULE = r"""
TABLE = frozenset(("a", "b"))
KINDS = (1, -1, 0, 256, 2**29, -(2**30), 2**64, 1.5, -0.0, 1e300, True, None, ..., b"", b"\x00\xff", "", "\x00?\\\"", "\xe9",
         "\u0416", "\U0001f600", "\ud800", ("nested", ("deeper", ())))


class Base:
    word = "base"

    def __init__(self, first, /, second=2, *rest, third, **more):
        self.all = (first, second, rest, third, more)


class Derived(Base):
    def __init__(self, *given):
        super().__init__(*given, third={"x": 1, "y": 2}, extra=given)


def closure(count):
    def add(step):
        nonlocal count
        count += step
        return count, [count * i for i in range(3)]

    return add


def chosen(word):
    return word in {"yes", "ja", 3} or word in ("no",)


def caught(value):
    try:
        return {"k": 1}[value]
    except KeyError as error:
        return f"no {error.args[0]!r:>5}"
    finally:
        TRAIL.append(value)


def numbers():
    got = yield 1
    yield from (got, 2)


TRAIL = []
generator = numbers()
RESULT = [Derived(1).all, closure(1)(2), chosen("ja"), chosen(3), chosen("x"), caught("k"), caught("\xe9"), TRAIL,
          next(generator), generator.send(5), list(generator), sorted(TABLE), KINDS, [Base("z", third=0).word for _ in "ab" * 20]]
"""

PROGRAM = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "code.h"
int main(int argc, char **argv) {
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    PyConfig_SetBytesString(&config, &config.home, argv[1]);
    if (argc != 3 || PyStatus_Exception(Py_InitializeFromConfig(&config))) return 3;
    PyObject *space = PyModule_GetDict(PyImport_AddModule("__main__"));
    PyDict_SetItemString(space, "static", G0());
    PyDict_SetItemString(space, "again", G0());
    return PyRun_SimpleString(argv[2]) != 0;
}
"""

COMPARISON = """
def same(one, other):
    for name in dir(other):
        if name.startswith("co_") and name not in ("co_consts", "co_lines", "co_positions"):
            assert getattr(one, name) == getattr(other, name), (one, name, getattr(one, name), getattr(other, name))
    assert len(one.co_consts) == len(other.co_consts)
    for a, b in zip(one.co_consts, other.co_consts):
        assert type(a) is type(b) and repr(a) == repr(b) or isinstance(a, (frozenset, type(one))), (a, b)
        if isinstance(b, type(one)):
            same(a, b)
        elif isinstance(b, frozenset):
            assert a == b

other = compile(source, "<m>", "exec", dont_inherit=True, optimize=2)
same(static, other)
assert static == other and static is again
spaces = {"__name__": "m"}, {"__name__": "m"}
exec(static, spaces[0])
exec(other, spaces[1])
assert repr(spaces[0]["RESULT"]) == repr(spaces[1]["RESULT"]), spaces[0]["RESULT"]
import gc
gc.collect()
print("same", flush=True)
"""


@pytest.mark.skipif(
    not static_code.usable() or STATIC is None or COMPILER is None, reason="this interpreter has no known layout here"
)
def test_static_code_is_the_compilers_code(tmp_path: Path) -> None:
    writer = static_code.Writer()
    assert writer.module(0, compile(MODULE, "<m>", "exec", dont_inherit=True, optimize=2)) == "G0"
    (tmp_path / "code.h").write_text("\n".join(writer.lines), encoding="ascii")
    (tmp_path / "main.c").write_text(PROGRAM)
    words = [str(COMPILER), "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{sysconfig.get_path('include')}"]
    words += ["-o", str(tmp_path / "program"), str(tmp_path / "main.c"), str(STATIC), "-Wl,--export-dynamic"]
    subprocess.run([*words, *embed.FIXED, *embed.system_libraries()], check=True)
    script = f"source = {MODULE!r}\n{COMPARISON}"
    done = subprocess.run([tmp_path / "program", sys.base_prefix, script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "same\n"), done.stderr


def test_a_constant_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(TypeError, match="no constant of this kind"):
        static_code.Writer().module(0, compile("x = 1j", "<m>", "exec"))
