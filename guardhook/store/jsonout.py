"""JSON for `--json`: indented by two blanks, ASCII only, so that nothing in it can control a terminal."""

from __future__ import annotations

from guardhook.core.jsontext import dumps


def pretty(value: object) -> str:
    """The value's JSON text. Small documents only; steps are streamed by guardhook.store.steps_json."""
    parts: list[str] = []
    _write(value, "\n", parts)
    return "".join(parts)


def _write(value: object, newline: str, parts: list[str]) -> None:
    if isinstance(value, dict) and value:
        inner = newline + "  "
        before = "{"
        for key, item in value.items():
            parts.append(f"{before}{inner}{scalar(str(key))}: ")
            _write(item, inner, parts)
            before = ","
        parts.append(newline + "}")
    elif isinstance(value, (list, tuple)) and value:
        inner = newline + "  "
        before = "["
        for item in value:
            parts.append(before + inner)
            _write(item, inner, parts)
            before = ","
        parts.append(newline + "]")
    else:
        parts.append(scalar(value))


def scalar(value: object) -> str:
    """One scalar (or an empty list or object). DEL is escaped too, which JSON does not ask for."""
    text = dumps(value)
    return text.replace("\x7f", "\\u007f") if "\x7f" in text else text
