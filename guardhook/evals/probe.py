"""`config test-ai`: whether key, model and network work, found out with the smallest of questions."""

from __future__ import annotations

import sys

from guardhook.core.folders import Folders
from guardhook.core.jsontext import printable
from guardhook.evals.ai import cleaning, settings
from guardhook.evals.ai.provider import ProviderError, Question
from guardhook.evals.ai.transport import Patience, ask
from guardhook.policy.settings import SettingsError
from guardhook.policy.settings_check import masked
from guardhook.store.jsonout import pretty

MOST_TOKENS = 64


def run(folders: Folders, as_json: bool, patience: Patience | None = None) -> int:
    """Asks and tells the outcome on stdout (errors for people: stderr). Gives the exit code: 0; 1 when it did not work; 2 when config.toml is broken."""
    try:
        choice, rows = settings.choose(folders), cleaning.rules(folders)
    except settings.NoProvider as error:
        return _failed(str(error), error.hints, as_json, 1)
    except SettingsError as error:
        return _failed(str(error), (), as_json, 2)
    question = Question("Answer with one word.", "Say OK.", min(choice.max_tokens, MOST_TOKENS))
    try:
        answered = ask(choice, question, patience, rows)
    except ProviderError as error:
        return _failed(f"{choice.provider}, {choice.model}: {error}", _hints(error, choice), as_json, 1)
    told: dict[str, object] = {
        "ok": True, "provider": choice.provider, "model": choice.model, "base_url": choice.base_url,
        "key": None if choice.key is None else masked(choice.key), "latency_ms": answered.latency_ms,
        "reply": cleaning.answer(answered.reply.text, rows, choice.key)[:200], "ignored": list(choice.ignored),
    }  # fmt: skip
    if as_json:
        print(pretty(told))
    else:
        print(printable(f"{choice.provider} answers: {choice.model} at {choice.host}, {answered.latency_ms} ms", 300))
        for line in choice.ignored:
            print(printable(f"guardhook: warning: {line}", 600), file=sys.stderr)
    return 0


def _hints(error: ProviderError, choice: settings.Choice) -> tuple[str, ...]:
    own = {
        "auth": f"check {settings.ENVIRONMENT[choice.provider]} or ai.api_keys.{choice.provider}",
        "rejected": "check ai.model and ai.base_urls",
        "rate": "try again later",
        "network": "check the network, a proxy, or ai.base_urls",
        "timeout": "try again, or raise ai.timeout",
    }.get(error.kind)
    return (*((own,) if own else ()), *choice.ignored)


def _failed(message: str, hints: tuple[str, ...], as_json: bool, code: int) -> int:
    if as_json:
        print(pretty({"ok": False, "error": message, "hints": list(hints)}))
        return code
    print(printable(f"guardhook: {message}", 1000), file=sys.stderr)
    for hint in hints:
        print(printable(f"  {hint}", 600), file=sys.stderr)
    return code
