"""YAML as far as it can be trusted: plain values, a few aliases, no merging, no key twice.

Aliases repeated over levels (and merge keys above all) let a small file stand for billions of values; a rubric needs neither.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

MOST_ALIASES = 64
MOST_DEPTH = 32
MOST_DIGITS = 100


class _Loader(yaml.SafeLoader):
    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._aliases = 0
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            self._aliases += 1
            if self._aliases > MOST_ALIASES:
                raise _error("too many aliases", self.get_mark())
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise _error("nested too deep", self.get_mark())
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def flatten_mapping(self, node: Any) -> None:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise _error("merge keys (<<) are not supported", key.start_mark)
        super().flatten_mapping(node)

    def construct_yaml_int(self, node: Any) -> int:
        return super().construct_yaml_int(_short(node))

    def construct_yaml_float(self, node: Any) -> float:
        return super().construct_yaml_float(_short(node))

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise _error(f"the key {key.value[:80]!r} appears twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _short(node: Any) -> Any:
    """A number's node. Numbers of many digits (base 60 above all) take time that grows with their square."""
    if isinstance(node, yaml.ScalarNode) and len(node.value) > MOST_DIGITS:
        raise _error(f"a number of more than {MOST_DIGITS} characters", node.start_mark)
    return node


for _tag, _construct in (("int", _Loader.construct_yaml_int), ("float", _Loader.construct_yaml_float)):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _construct)


def _error(what: str, mark: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, what, mark)


def load(data: bytes) -> object:
    """The document's value. Raises ValueError naming the line."""
    try:
        loader = _Loader(data)
        try:
            value: object = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise ValueError(f"{place}{error.problem or 'no valid YAML'}") from None
    except yaml.YAMLError as error:  # bytes that are no text
        raise ValueError(" ".join(str(error).split())[:300]) from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value
