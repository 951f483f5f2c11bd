"""What may stand in a policy file, and every rule that a policy must keep. Cold: never imported by the gate.

A policy:

    [[policy]]
    name = "no-force-push"            # unique in its layer
    description = "…"
    action = "deny"                   # allow, warn, require_review, deny
    priority = 0                      # only decides which of two equally strict matches is cited
    enabled = true
    presets = ["balanced", "strict"]  # shipped policies: the presets it is on in (default: both; `observe` uses balanced's)
    reason = "…"                      # told to the person and the agent
    suggest = "…"                     # what to do instead
    match = { input_contains = "…" }  # every key must hold
    unless = { … }                    # the policy stays out where all of these hold

    [[policy.example]]                # what it must and must not match; `guardhook policy test` runs them
    command = "git push --force"
    expect = "deny"

A policy without `event` looks at tool calls (pre_tool, permission_request); prompts, stops and the like only where it says so.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Action = Literal["allow", "warn", "require_review", "deny"]
Words = str | list[str]

EVENT_KEYS = (
    "step_type", "name_contains", "name_regex", "input_contains", "output_contains", "input_regex",
    "event", "tool", "harness", "agent",
)  # fmt: skip
EFFECT_KEYS = ("effect", "program", "argument", "path", "path_class", "host", "git")
CLASSIC_KEYS = ("step_type", "name_contains", "name_regex", "input_contains", "output_contains")


class Pattern(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The keys of `match` and `unless`. Lists mean any of."""

    step_type: str | None = None
    name_contains: str | None = None
    name_regex: str | None = None
    input_contains: str | None = None
    output_contains: str | None = None
    input_regex: str | None = None
    event: Words | None = None
    tool: Words | None = None
    harness: Words | None = None
    agent: Words | None = None
    effect: Words | None = None
    program: Words | None = None
    argument: Words | None = None
    path: Words | None = None
    path_class: Words | None = None
    host: Words | None = None
    git: Words | None = None

    def given(self) -> dict[str, str | list[str]]:
        """The keys that were set, in the order of the class."""
        return {f: v for f in self.__struct_fields__ if (v := getattr(self, f)) is not None}


class Example(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One call and the verdict that this policy alone must give on it.

    A call is `command` (a shell line), `tool` with `input`, or `prompt`.
    """

    expect: Action
    command: str | None = None
    tool: str | None = None
    input: dict[str, object] | None = None
    prompt: str | None = None
    cwd: str | None = None
    harness: str | None = None  # the dialect that asks; default none in particular
    note: str = ""


class Policy(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    action: Action
    match: Pattern
    description: str = ""
    priority: int = 0
    enabled: bool = True
    reason: str = ""
    suggest: str = ""
    presets: list[Literal["balanced", "strict"]] | None = None
    unless: Pattern | None = None
    example: list[Example] = []


class PolicyFile(msgspec.Struct, forbid_unknown_fields=True):
    policy: list[Policy] = []


class Override(msgspec.Struct, forbid_unknown_fields=True):
    """Switches a shipped policy on or off for this user."""

    policy: str
    enabled: bool


class OverrideFile(msgspec.Struct, forbid_unknown_fields=True):
    override: list[Override] = []


class PolicyException(msgspec.Struct, forbid_unknown_fields=True):
    """Narrows one shipped, user or project policy until a day. It never outranks a policy, and never touches a system one."""

    policy: str
    match: Pattern
    reason: str
    expires: object  # a date, a date-time, or one of them as text


class ExceptionFile(msgspec.Struct, forbid_unknown_fields=True):
    exception: list[PolicyException] = []
