"""What the layers say: policies and where each stands, settings, and what is wrong with any of it. Cold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from guardhook.policy.model import Policy, PolicyException
from guardhook.policy.sources import SourceError, Sources
from guardhook.policy.tomlfile import PolicyError, parse

T = TypeVar("T")
LAYERS = ("shipped", "system", "user", "project")


@dataclass
class Found:
    """One policy and where it stands."""

    policy: Policy
    layer: str
    path: str
    line: int | None
    on: bool = True  # enabled, after presets and overrides
    why_off: str = ""
    exceptions: list[tuple[PolicyException, float]] = field(default_factory=list)


@dataclass
class Loaded:
    """Everything that the layers say."""

    policies: list[Found] = field(default_factory=list)
    errors: list[PolicyError] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    expired: list[PolicyException] = field(default_factory=list)
    sources: Sources = field(default_factory=Sources)
    config: dict[str, object] = field(default_factory=dict)
    secrets: tuple[list[str], list[str]] = (
        [],
        [],
    )  # patterns beside the shipped redaction rules, and rules to leave out
    system_preset: str | None = None  # what the machine's own config.toml says

    def ordered(self) -> list[Found]:
        """By priority, high first, then name."""
        return sorted(self.policies, key=lambda f: (-f.policy.priority, f.policy.name, LAYERS.index(f.layer)))


def read(loaded: Loaded, path: str, type_: type[T]) -> tuple[T, str] | None:
    """A file as a model, and its text; None when it is not there, or wrong, which is noted among the errors."""
    try:
        data = loaded.sources.file(path)
        if data is None:
            return None
        return parse(data, path, type_), data.decode("utf-8")
    except SourceError as error:
        loaded.errors.append(PolicyError(error.path, None, "", str(error)))
    except PolicyError as error:
        loaded.errors.append(error)
    return None
