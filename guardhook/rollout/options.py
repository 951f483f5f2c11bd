"""What a rollout tells beyond the plain events: the opt-in families of `[forensics]`.

A hook records none of these settings, so it is the first rendering that fixes them for a run: run.started carries them, and whoever renders the run again
(the live folder, `rollout export` into it) takes them from there. A run under way keeps what it began with, whatever config.toml says later.
"""

from __future__ import annotations

import math

import msgspec

from guardhook.policy.settings import Settings

NOT_TOLD = ("prompt_hash_key",)


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """Names are those of `[forensics]`. tenant_id goes into run.started; prompt_hash_key turns prompt hashes into keyed ones and is never written."""

    cost_anomaly_detection_enabled: bool = False
    cost_anomaly_step_multiplier: float = 2.0
    causal_graph_enabled: bool = False
    error_chain_enabled: bool = False
    error_context_depth: int = 10
    context_window_snapshot_enabled: bool = False
    context_window_warning_threshold: float = 0.0
    model_context_window: int = 0
    trace_tool_decisions: bool = False
    detect_anti_patterns: bool = False
    volatile_arguments: tuple[str, ...] = ("description", "timeout")
    trace_hook_mutations: bool = False
    capture_request_envelope: bool = False
    capture_reasoning: bool = False
    tenant_id: str | None = None
    audit_trail_enabled: bool = False
    audit_tools: tuple[str, ...] = ()
    audit_exceptions: tuple[str, ...] = ()
    prompt_hash_key: str | None = None

    def told(self) -> dict[str, object]:
        """What differs from the defaults, as run.started says it."""
        found = msgspec.to_builtins(self)
        assert isinstance(found, dict)
        return {k: v for k, v in found.items() if k not in (*NOT_TOLD, "tenant_id")}

    def kept(self, told: object, tenant: object = None) -> Options:
        """The options of a run that was rendered before: told is what its run.started says. What can't be read counts as never said."""
        try:
            found = msgspec.convert(told if isinstance(told, dict) else {}, Options)
        except msgspec.ValidationError:
            found = Options()
        return msgspec.structs.replace(
            found, prompt_hash_key=self.prompt_hash_key, tenant_id=tenant if isinstance(tenant, str) else None
        )


class BadOptions(ValueError):
    """A value of `[forensics]` that means nothing; the message names the key."""


def of(settings: Settings, *, tenant: str | None = None) -> Options:
    """The options that config.toml asks for. Raises BadOptions."""
    given: dict[str, object] = {}
    for field in msgspec.structs.fields(Options):
        value = settings.get(f"forensics.{field.name}")
        if value is None or field.name == "tenant_id":
            continue
        given[field.name] = _checked(field.name, field.default, value)
    if tenant is not None:
        given["tenant_id"] = tenant
    try:
        return msgspec.convert(given, Options)
    except msgspec.ValidationError as error:
        raise BadOptions(f"[forensics] in config.toml: {error}") from None


def _checked(name: str, default: object, value: object) -> object:
    wrong = BadOptions(f"[forensics] {name} in config.toml: {value!r} is not what this setting takes")
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise wrong
    elif isinstance(default, (int, float)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            raise wrong
        if name == "cost_anomaly_step_multiplier" and value <= 0:
            return 2.0  # as if it were not there
        if isinstance(default, int):
            return int(value)
    elif isinstance(default, tuple):
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise wrong
    elif not isinstance(value, str):
        raise wrong
    return value
