"""Whom to ask: environment, configuration, families of models, addresses; and what is never said."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardhook.core.folders import Folders
from guardhook.evals.ai import prices, settings
from guardhook.evals.ai.settings import Choice, NoProvider, choose, without_keys

A, G, OAI = "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"
LONG = "sk-0123456789abcdefghij"


def chosen(tmp_path: Path, toml: str = "", **environ: str) -> Choice:
    (tmp_path / "config.toml").write_text(toml)
    folder = str(tmp_path)
    return choose(Folders(folder, folder, str(tmp_path / "system")), environ)


@pytest.mark.parametrize(
    ("toml", "environ", "provider", "model"),
    [
        ("", {A: "k"}, "anthropic", "claude-haiku-4-5-20251001"), ("", {OAI: "k", G: "k"}, "google", "gemini-2.5-flash-lite"), ("", {OAI: "k"}, "openai", "gpt-5.4-nano"),
        ("[ai]\nmodel='gpt-9'", {A: "k", OAI: "k"}, "openai", "gpt-9"), ("[ai]\nmodel='o3-mini'", {A: "k", OAI: "k"}, "openai", "o3-mini"),
        ("[ai]\nmodel='Claude-x'", {A: "k", OAI: "k"}, "anthropic", "Claude-x"), ("[ai]\nmodel='gpt-9'", {A: "k"}, "anthropic", "claude-haiku-4-5-20251001"),
        ("[ai]\nmodel='house'", {G: "k"}, "google", "house"), ("[ai]\nmodel=5", {G: "k"}, "google", "gemini-2.5-flash-lite"), ("[ai]\nmodel='  '", {G: "k"}, "google", "gemini-2.5-flash-lite"),
        ("[ai]\nprovider='openai'\n[ai.api_keys]\nopenai='stored'", {A: "k"}, "openai", "gpt-5.4-nano"), ("[ai]\nprovider='openai'\nmodel='gemini-1'", {OAI: "k"}, "openai", "gpt-5.4-nano"),
        ("[ai]\nmodel='llama'\n[ai.base_urls]\nopenai='http://localhost:1/v1'", {A: "k"}, "openai", "llama"),
        ("[ai]\nprovider='auto'", {OAI: "k"}, "openai", "gpt-5.4-nano"), ("[ai]\nprovider='skynet'", {OAI: "k"}, "openai", "gpt-5.4-nano"),
        ("[ai.base_urls]\nopenai='http://localhost:1/v1'", {}, "openai", "gpt-5.4-nano"), ("[ai]\nmodel='gemini-1'\n[ai.base_urls]\nopenai='http://[::1]:1/v1/'", {}, "openai", "gemini-1"),
    ],
)  # fmt: skip
def test_who_is_asked(tmp_path: Path, toml: str, environ: dict[str, str], provider: str, model: str) -> None:
    found = chosen(tmp_path, toml, **environ)
    assert (found.provider, found.model) == (provider, model)


def test_the_environment_wins_and_blanks_are_unset(tmp_path: Path) -> None:
    stored = "[ai.api_keys]\nanthropic = 'stored'\n"
    assert chosen(tmp_path, stored, **{A: "given"}).key == "given"
    assert chosen(tmp_path, stored, **{A: "  "}).key == "stored"
    assert chosen(tmp_path, "[ai.api_keys]\nanthropic = ' '\nopenai = 'o'").provider == "openai"


@pytest.mark.parametrize(
    ("toml", "environ", "said"),
    [
        ("", {}, "no model provider"), ("[ai]\nprovider='google'", {A: "k"}, "no key"), ("[ai.base_urls]\nopenai='http://models.example/v1'", {OAI: LONG}, "plain text"),
        ("", {A: "two\nlines"}, "no model provider"), ("", {A: "k\u00e9y"}, "no model provider"), ("[ai.base_urls]\nopenai='file:///etc/passwd'", {}, "no model provider"),
        ("[ai.base_urls]\nopenai='https://user:pw@x'", {}, "no model provider"), ("[ai.base_urls]\nopenai='http://x:99999'", {}, "no model provider"),
    ],
)  # fmt: skip
def test_nobody(tmp_path: Path, toml: str, environ: dict[str, str], said: str) -> None:
    with pytest.raises(NoProvider, match=said) as caught:
        chosen(tmp_path, toml, **environ)
    assert caught.value.hints and LONG not in str(caught.value) + str(caught.value.hints)


def test_plain_http_without_a_key_and_https_with_one(tmp_path: Path) -> None:
    assert chosen(tmp_path, "[ai.base_urls]\nopenai='http://models.example/v1'").key is None
    assert (
        chosen(tmp_path, "[ai.base_urls]\nopenai='https://models.example/v1'", **{OAI: LONG}).base_url
        == "https://models.example/v1"
    )


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("max_tokens = 0", "max_tokens", 1024), ("max_tokens = '9'", "max_tokens", 1024), ("max_tokens = true", "max_tokens", 1024), ("max_tokens = 9", "max_tokens", 9),
        ("timeout = -1", "timeout", 60), ("timeout = inf", "timeout", 60), ("timeout = 5", "timeout", 5),
    ],
)  # fmt: skip
def test_unusable_numbers_are_told_and_replaced(tmp_path: Path, line: str, field: str, value: float) -> None:
    found = chosen(tmp_path, f"[ai]\n{line}", **{OAI: "k"})
    assert getattr(found, field) == value and bool(found.ignored) == (str(value) not in line)


def test_keys_are_never_shown(tmp_path: Path) -> None:
    found = chosen(tmp_path, "", **{OAI: LONG})
    assert LONG not in repr(found)
    told = without_keys(f"{LONG} and {LONG[:12]}… and …{LONG[-12:]}", LONG, None)
    assert LONG[:12] not in told and LONG[-12:] not in told


@pytest.mark.parametrize(
    ("model", "pair"),
    [
        ("gpt-5.4-nano", (0.2, 1.25)), ("gpt-5.4-nano-2026-01-01", (0.2, 1.25)), ("gpt-5.4-nano-pro", (1, 5)), ("gpt-5.4-nano2", (1, 5)), ("gemini-2.5-flash-lite-001", (0.1, 0.4)),
        ("gemini-2.5-flash-lite-", (1, 5)), ("anything", (1, 5)), ("", (1, 5)),
    ],
)  # fmt: skip
def test_prices(model: str, pair: tuple[float, float]) -> None:
    assert prices.price(model) == pair
    assert settings.DEFAULT_MODELS.keys() == set(settings.PROVIDERS)
