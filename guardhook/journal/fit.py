"""Keeping a line within its size: long strings lose their ends, and the line says which. Imported only for large payloads."""

from __future__ import annotations

from guardhook.core.jsontext import dumps, pointer, strings

# Longest string kept, in characters: the first step that makes the value fit is taken.
STEPS = (262_144, 65_536, 16_384, 4_096, 1_024, 256)
# Read beyond a cut while redacting, so that a secret that the cut goes through is still recognised.
MARGIN = 16_384


def level(value: object, most: int) -> int | None:
    """The longest string length at which all strings of a value together stay within `most` characters; None when they do anyhow."""
    lengths = [len(text) for text in strings(value)]
    if sum(lengths) <= most:
        return None
    for step in STEPS:
        if sum(min(length, step) for length in lengths) <= most:
            return step
    return STEPS[-1]


def clip(value: object, most: int) -> tuple[object, list[str]]:
    """The value with strings of at most `most` characters, and pointers to those that were cut. Unchanged parts are shared."""
    pointers: list[str] = []
    return _clip(value, most, [], pointers), pointers


def _clip(value: object, most: int, path: list[str | int], pointers: list[str]) -> object:
    if isinstance(value, str):
        if len(value) <= most:
            return value
        pointers.append(pointer(path))
        return value[:most]
    items: list[tuple[str | int, object]]
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        return value
    changed: dict[str | int, object] = {}
    for step, item in items:
        path.append(step)
        new = _clip(item, most, path, pointers)
        path.pop()
        if new is not item:
            changed[step] = new
    if not changed:
        return value
    return {**value, **changed} if isinstance(value, dict) else [changed.get(step, item) for step, item in items]


def trim(value: object, before: list[str], most: int) -> tuple[object, list[str]]:
    """After redaction of a value that was cut at most + MARGIN: ends that may hold half a secret go, then `clip`.

    before: pointers of the strings that were cut before.
    """
    cut = frozenset(before)
    path: list[str | int] = []

    def walk(item: object) -> object:
        if isinstance(item, str):
            if pointer(path) not in cut:
                return item
            return item[: max(0, min(most, len(item) - MARGIN))]
        if isinstance(item, dict):
            out: dict[str, object] = {}
            for key, below in item.items():
                path.append(key)
                out[key] = walk(below)
                path.pop()
            return out
        if isinstance(item, (list, tuple)):
            found: list[object] = []
            for index, below in enumerate(item):
                path.append(index)
                found.append(walk(below))
                path.pop()
            return found
        return item

    shorter, pointers = clip(walk(value), most)
    return shorter, sorted({*cut, *pointers})


def squeeze(data: dict[str, object], most: int) -> dict[str, object]:
    """The data of a line made to fit into `most` bytes of JSON: strings of the payload are cut, then effects go, then the payload. Redact first."""
    out = dict(data)
    cut = data.get("cut")
    pointers = {p for p in cut if isinstance(p, str)} if isinstance(cut, list) else set()
    payload = data.get("payload", {})
    longest = max(map(len, strings(payload)), default=0)
    for step in STEPS:
        if step >= longest:
            continue
        shorter, more = clip(payload, step)
        out["payload"] = shorter
        out["cut"] = sorted(pointers.union(more))
        if len(dumps(out)) <= most:
            return out
    out["effects"] = []
    out["payload"] = {}
    out["cut"] = [""]
    if len(dumps(out)) <= most:
        return out
    kept = {
        k: v
        for k, v in out.items()
        if v is None or isinstance(v, (bool, int)) or (isinstance(v, str) and len(v) <= 4096)
    }
    return {
        **kept,
        "payload": {},
        "cut": [""],
        "redacted": [],
        "effects": [],
        "verdict": _short_verdict(data.get("verdict")),
    }


def _short_verdict(verdict: object) -> object:
    if not isinstance(verdict, dict):
        return None
    return {
        k: v
        for k, v in verdict.items()
        if v is None or isinstance(v, (bool, int)) or (isinstance(v, str) and len(v) <= 4096)
    }
