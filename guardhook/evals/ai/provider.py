"""What all providers have in common: a question, a reply, and the ways in which that can fail."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Protocol

from guardhook.evals.ai.settings import Choice


@dataclass(frozen=True)
class Question:
    """What is asked. system: how to go about it; text: the question with the data."""

    system: str
    text: str
    max_tokens: int


@dataclass(frozen=True)
class Request:
    """A question in a provider's own form. Headers hold the key, so they are never shown."""

    url: str
    headers: dict[str, str] = field(repr=False)
    body: dict[str, object] = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """What came back. Tokens are None when the provider does not say; cut: the reply ended because max_tokens were used up."""

    text: str
    tokens_in: int | None
    tokens_out: int | None
    cut: bool = False


class ProviderError(Exception):
    """The provider could not be asked, or did not answer usefully. kind: auth, rate, rejected, server, network, timeout, reply.

    billed: how many attempts may have been charged for all the same.
    """

    def __init__(self, kind: str, message: str, billed: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.billed = billed


class Form(Protocol):
    """A provider: how a question looks, and where the reply is in the answer. Each is a module with these two functions."""

    def request(self, choice: Choice, question: Question) -> Request: ...

    def reply(self, answer: dict[str, object]) -> Reply:
        """Raises ProviderError of kind `reply` for an answer of another shape."""
        ...


def form(provider: str) -> Form:
    """The module of a provider."""
    module: Form = importlib.import_module(f"guardhook.evals.ai.{provider}")
    return module


# --- reading answers: anything may be missing or of another type ---------------------------------------------------


def table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def count(value: object) -> int | None:
    """A number of tokens, None when it is none."""
    return value if type(value) is int and 0 <= value < 1 << 40 else None


def joined(parts: list[str], provider: str, cut: bool) -> str:
    """The text of a reply. Raises ProviderError when there is none."""
    text = "".join(parts)
    if not text.strip():
        why = "; thinking used up ai.max_tokens, raise it" if cut else ""
        raise ProviderError("reply", f"{provider} answered without any text{why}")
    return text
