"""Code objects as C data: what the linker has laid out, no process has to unmarshal.

Reading the gate's modules from marshalled form takes a third of a hook's time, most of it for functions that are never
called. Written as initialised structures they cost nothing until they are touched. The layout is the interpreter's own
(its headers are what the result is compiled with), and it is known here for one version only: see `usable`.
"""

from __future__ import annotations

import opcode
import sys
from types import CodeType

# References that an object starts with: more than any process takes away.
_REFERENCES = 999999999
_WARMUP = -8  # calls of a function before the interpreter specialises its code, as in a fresh code object

PRELUDE = f"""
#define HEAD(type) {{{_REFERENCES}, &type}}
#define VAR_HEAD(type, size) {{HEAD(type), size}}
#define AT(object) ((PyObject *)&object)
struct set_place {{ PyObject **place, *items; }};

/* Strings that are names are one object each throughout the interpreter; frozen sets depend on its hash key. */
extern int _PyStaticCode_InternStrings(PyCodeObject *code);
static PyObject *made(PyCodeObject *code, const struct set_place *sets) {{
    for (; sets->place != NULL; sets++) {{
        if (*sets->place != NULL) continue;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sets->items); i++)
            if (PyUnicode_CheckExact(PyTuple_GET_ITEM(sets->items, i)))
                PyUnicode_InternInPlace(&((PyTupleObject *)sets->items)->ob_item[i]);
        *sets->place = PyFrozenSet_New(sets->items);
        if (*sets->place == NULL) return NULL;
    }}
    if (_PyStaticCode_InternStrings(code) < 0) return NULL;
    return Py_NewRef((PyObject *)code);
}}
"""


def usable() -> bool:
    """Whether this interpreter's code objects are of the known layout. They must also be linked statically."""
    return sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11)


class Writer:
    """Collects C definitions. Equal constants of different modules are one object."""

    def __init__(self) -> None:
        self.lines = [PRELUDE]
        self._known: dict[object, str] = {}
        self._sets: list[tuple[str, str]] = []

    def module(self, number: int, code: CodeType) -> str:
        """Defines a module's code; returns the name of the C function that gives it."""
        self._sets = []
        name = self._code(code)
        rows = "".join(f"{{{place}, {items}}}, " for place, items in self._sets)
        self.lines.append(f"static const struct set_place S{number}[] = {{{rows}{{NULL, NULL}}}};")
        self.lines.append(f"static PyObject *G{number}(void) {{ return made((PyCodeObject *)&{name}, S{number}); }}")
        return f"G{number}"

    def _define(self, kind: str, value: str) -> str:
        name = f"o{len(self.lines)}"
        self.lines.append(f"static {kind} {name} = {value};")
        return name

    def _object(self, value: object) -> str:
        """An expression for the address of a constant."""
        if value is None:
            return "Py_None"
        if value is True or value is False:
            return f"Py_{value}"
        if value is Ellipsis:
            return "Py_Ellipsis"
        if isinstance(value, CodeType):
            return f"AT({self._code(value)})"
        if isinstance(value, tuple):
            return self._tuple(value)
        key = (type(value), repr(value))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = f"AT({self._leaf(value)})"
        return known

    def _leaf(self, value: object) -> str:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bytes):
            kind = f"struct {{ PyObject_VAR_HEAD Py_hash_t hash; char bytes[{len(value) + 1}]; }}"
            return self._define(kind, f"{{VAR_HEAD(PyBytes_Type, {len(value)}), -1, {c_string(value)}}}")
        if isinstance(value, int):
            digits = []
            rest = abs(value)
            while rest:
                digits.append(rest & 0x3FFFFFFF)
                rest >>= 30
            size = -len(digits) if value < 0 else len(digits)
            kind = f"struct {{ PyObject_VAR_HEAD digit digits[{max(1, len(digits))}]; }}"
            return self._define(kind, f"{{VAR_HEAD(PyLong_Type, {size}), {{{', '.join(map(str, digits)) or '0'}}}}}")
        if isinstance(value, float):
            return self._define("PyFloatObject", f"{{HEAD(PyFloat_Type), {value.hex()}}}")
        raise TypeError(f"no constant of this kind can be written: {value!r}")

    def _text(self, value: str) -> str:
        if value.isascii():
            kind = f"struct {{ PyASCIIObject head; char text[{len(value) + 1}]; }}"
            head = f"{{.ob_base = HEAD(PyUnicode_Type), .length = {len(value)}, .hash = -1, "
            head += ".state = {.kind = 1, .compact = 1, .ascii = 1, .ready = 1}}"
            return self._define(kind, f"{{{head}, {c_string(value.encode())}}}")
        width = 1 if max(value) < "\u0100" else 2 if max(value) < "\U00010000" else 4
        kind = f"struct {{ PyCompactUnicodeObject head; Py_UCS{width} text[{len(value) + 1}]; }}"
        head = f"{{._base = {{.ob_base = HEAD(PyUnicode_Type), .length = {len(value)}, .hash = -1, "
        head += f".state = {{.kind = {width}, .compact = 1, .ready = 1}}}}}}"
        return self._define(kind, f"{{{head}, {{{', '.join(str(ord(c)) for c in value)}, 0}}}}")

    def _tuple(self, value: tuple[object, ...]) -> str:
        items = [None if isinstance(item, frozenset) else self._object(item) for item in value]
        # A place in which a frozen set is put is nobody else's.
        key = ("tuple", *items) if None not in items else object()
        known = self._known.get(key)
        if known is not None:
            return known
        # The collector keeps its links before a tuple.
        kind = f"struct {{ uintptr_t links[2]; struct {{ PyObject_VAR_HEAD PyObject *items[{max(1, len(items))}]; }} tuple; }}"
        listed = ", ".join(item or "NULL" for item in items)
        name = self._define(kind, f"{{{{0, 0}}, {{VAR_HEAD(PyTuple_Type, {len(items)}), {{{listed or 'NULL'}}}}}}}")
        for place, item in enumerate(value):
            if isinstance(item, frozenset):
                members = tuple(sorted(item, key=repr))
                self._sets.append((f"&{name}.tuple.items[{place}]", self._tuple(members)))
        known = self._known[key] = f"AT({name}.tuple)"
        return known

    def _code(self, code: CodeType) -> str:
        names, kinds = locals_of(code)
        words = code.co_code
        entry = next((i for i, op in enumerate(words[::2]) if op == opcode.opmap["RESUME"]), len(words) // 2)
        cells = len(code.co_cellvars)
        fields = {
            "ob_base": f"VAR_HEAD(PyCode_Type, {len(words) // 2})",
            "co_consts": self._object(code.co_consts),
            "co_names": self._object(code.co_names),
            "co_exceptiontable": self._object(code.co_exceptiontable),
            "co_flags": code.co_flags,
            "co_warmup": _WARMUP,
            "co_argcount": code.co_argcount,
            "co_posonlyargcount": code.co_posonlyargcount,
            "co_kwonlyargcount": code.co_kwonlyargcount,
            "co_stacksize": code.co_stacksize,
            "co_firstlineno": code.co_firstlineno,
            "co_nlocalsplus": len(names),
            "co_nlocals": code.co_nlocals,
            "co_nplaincellvars": len(names) - code.co_nlocals - len(code.co_freevars),
            "co_ncellvars": cells,
            "co_nfreevars": len(code.co_freevars),
            "co_localsplusnames": self._object(names),
            "co_localspluskinds": self._object(kinds),
            "co_filename": self._object(code.co_filename),
            "co_name": self._object(code.co_name),
            "co_qualname": self._object(code.co_qualname),
            "co_linetable": self._object(code.co_linetable),
            "_co_firsttraceable": entry,
            "co_code_adaptive": c_string(words),
        }
        listed = ", ".join(f".{key} = {value}" for key, value in fields.items())
        return self._define(f"struct _PyCode_DEF({len(words)})", f"{{{listed}}}")


def locals_of(code: CodeType) -> tuple[tuple[str, ...], bytes]:
    """What a function's frame holds: names of locals, cells and free variables, and which each is."""
    local, cell, free = 0x20, 0x40, 0x80
    names = list(code.co_varnames)
    kinds = [local | (cell if name in code.co_cellvars else 0) for name in names]
    for name in code.co_cellvars:
        if name not in code.co_varnames:
            names.append(name)
            kinds.append(cell)
    names += code.co_freevars
    kinds += [free] * len(code.co_freevars)
    return tuple(names), bytes(kinds)


def c_string(data: bytes) -> str:
    """A C string literal that is exactly these bytes. Octal escapes end after three digits whatever follows."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in data) + '"'
