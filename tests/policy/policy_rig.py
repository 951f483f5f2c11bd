"""Building policies and events the short way."""

from __future__ import annotations

from typing import Any

import msgspec

from guardhook.core.event import Event
from guardhook.policy import compile as compiler
from guardhook.policy import compiled, layers
from guardhook.policy.model import Policy


def policy(match: dict[str, Any], action: str = "deny", **more: Any) -> layers.Found:
    """A usable policy; `layer` may be given."""
    layer = more.pop("layer", "user")
    data = {"name": "p", "action": action, "match": match, **more}
    return layers.Found(msgspec.convert(data, Policy), layer, "test.toml", 1)


def sets(*found: layers.Found) -> list[compiled.Compiled]:
    return [compiler.in_memory(list(found))]


def call(tool: str = "Bash", input: object = None, **more: Any) -> Event:
    """A tool call before it runs."""
    from guardhook.dialects import tools

    event = Event("claude-code", "PreToolUse", "pre_tool", {})
    event.tool = tool
    event.input = {} if input is None else input
    tools.fill(event)
    for key, value in more.items():
        setattr(event, key, value)
    return event


def bash(command: str) -> Event:
    return call("Bash", {"command": command})
