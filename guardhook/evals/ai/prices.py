"""What models cost. Dollars per million tokens; a model that is not known counts as the dearest one, so that a ceiling never gives way."""

from __future__ import annotations

from guardhook.evals.ai.settings import DEFAULT_MODELS

PRICES = {
    DEFAULT_MODELS["anthropic"]: (1.0, 5.0),
    DEFAULT_MODELS["google"]: (0.1, 0.4),
    DEFAULT_MODELS["openai"]: (0.2, 1.25),
}
CHARS_PER_TOKEN = 4


def price(model: str) -> tuple[float, float]:
    """Dollars per million tokens (in, out). A dated or numbered variant of a known model (`name-2026…`) has its price."""
    for known, pair in PRICES.items():
        rest = model.removeprefix(known)
        if rest == "" or (rest != model and rest[0] == "-" and rest[1:2].isascii() and rest[1:2].isdigit()):
            return pair
    return max(p[0] for p in PRICES.values()), max(p[1] for p in PRICES.values())


def cost(model: str, tokens_in: float, tokens_out: float) -> float:
    """Dollars."""
    into, out = price(model)
    return (tokens_in * into + tokens_out * out) / 1_000_000


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return -(-len(text) // CHARS_PER_TOKEN)
