"""What the owner declares: which commands are checks, and what tools' results mean. Nothing of it is ever guessed.

From config.toml: `[[account.verify]]` with id, label, argv (words that the command begins with) or glob, covers_answer; `[[account.tool]]` with name, rows_at,
empty_text, role. A file for one report holds the same as JSON or TOML: `{"verify": […], "tools": […], "names_and_numbers": true}`.
"""

from __future__ import annotations

from typing import NamedTuple

from guardhook.archive.account import words
from guardhook.policy.declared import digest

CONFIG, REPORT = "config", "report"


class Check(NamedTuple):
    """A command that is a check. covers_answer: its owner says that passing it is what the answer claims."""

    id: str
    label: str
    argv: tuple[str, ...]
    glob: str | None
    covers_answer: bool


class Tool(NamedTuple):
    """What is known of a tool's results: the key that holds rows, texts that mean nothing was found, whether it searches."""

    name: str
    rows_at: str | None
    empty_text: tuple[str, ...]
    role: str | None


class Declarations(NamedTuple):
    """Everything declared. origin tells whether it was there before the report was asked for."""

    checks: tuple[Check, ...] = ()
    tools: tuple[Tool, ...] = ()
    names_and_numbers: bool = False
    origin: str = CONFIG
    checks_sha256: str | None = None

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def digest(self) -> str | None:
        """The digest of the declared checks, as the record of a run has it (guardhook.policy.declared)."""
        return self.checks_sha256


def of(value: object, *, origin: str = REPORT) -> Declarations:
    """Declarations from a parsed file or the `account` section of config.toml. Raises TypeError and ValueError, naming the entry."""
    if not isinstance(value, dict):
        raise TypeError("declarations must be an object with verify and tools")
    found = _known(value, ("verify", "tools", "tool", "names_and_numbers"), "declarations")
    checks = tuple(_check(row, f"verify[{n}]") for n, row in enumerate(_rows(found.get("verify"), "verify")))
    tools = tuple(
        _tool(row, f"tools[{n}]") for n, row in enumerate(_rows(found.get("tools", found.get("tool")), "tools"))
    )
    for names, what in (([c.id for c in checks], "verify"), ([t.name for t in tools], "tools")):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{what}: {twice!r} is declared twice")
    return Declarations(
        checks, tools, _flag(found, "names_and_numbers", "declarations"), origin, digest(found.get("verify"))
    )


def _rows(value: object, what: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"{what} must be a list of tables")
    return value


def _known(value: object, names: tuple[str, ...], where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"{where} must be a table")
    for key in value:
        if key not in names:
            raise TypeError(f"{where}: unknown key {key!r}; there are {', '.join(names)}")
    return value


def _flag(row: dict[str, object], name: str, where: str) -> bool:
    value = row.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(f"{where}: {name} must be true or false")
    return value


def _texts(row: dict[str, object], name: str, where: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise TypeError(f"{where}: {name} must be a list of texts")
    return tuple(value)


def _check(value: object, where: str) -> Check:
    row = _known(value, ("id", "label", "argv", "glob", "covers_answer"), where)
    name, glob, argv = row.get("id"), row.get("glob"), _texts(row, "argv", where)
    if (
        not isinstance(name, str)
        or not name
        or len(name) > words.LABEL_CHARS
        or words.clean(name) != name
        or "/" in name
    ):
        raise ValueError(f"{where}: id must be a short text without slashes")
    label = row.get("label", name)
    if not words.is_label(label) or not isinstance(label, str):
        raise ValueError(f"{where}: label must be one visible line of at most {words.LABEL_CHARS} characters")
    if glob is not None and (not isinstance(glob, str) or not glob.strip()):
        raise TypeError(f"{where}: glob must be a text")
    if bool(argv) == (glob is not None) or (argv and not argv[0]):
        raise ValueError(f"{where}: either argv or glob is needed")
    return Check(name, label, argv, glob, _flag(row, "covers_answer", where))


def _tool(value: object, where: str) -> Tool:
    row = _known(value, ("name", "rows_at", "rowsAt", "empty_text", "emptyText", "role"), where)
    name, role = row.get("name"), row.get("role")
    if not isinstance(name, str) or not name:
        raise TypeError(f"{where}: name must be a text")
    rows_at = row.get("rows_at", row.get("rowsAt"))
    if rows_at is not None:
        if not isinstance(rows_at, str):
            raise TypeError(f"{where}: rows_at must be a text")
        if not rows_at or "/" in rows_at or "." in rows_at:
            raise ValueError(f"{where}: rows_at must be the name of one key, without / and .")
    if role not in (None, "search"):
        raise ValueError(f"{where}: role can only be 'search'")
    key = "empty_text" if "empty_text" in row else "emptyText"
    return Tool(name, rows_at, _texts(row, key, where), "search" if role == "search" else None)
