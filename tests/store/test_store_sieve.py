"""Looking for secrets in many values at once says nothing else than looking at each."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.journal import redact
from guardhook.journal.rules import freeze_rules
from guardhook.store.sieve import Sieve

ROWS = freeze_rules()
SECRETS = ("ghp_" + "a1B2" * 9, "AKIA" + "ABCDEFGH12345678", "-----BEGIN RSA PRIVATE KEY-----\nabc", "password=hunter2hunter2", "Bearer " + "x9Y8" * 10)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=12), st.sampled_from(SECRETS), st.sampled_from(SECRETS).map(lambda s: s[:9]), st.sampled_from(SECRETS).map(lambda s: s[9:]))  # fmt: skip
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("a", "password", "tokens_used", "token", "x")), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(values=st.lists(VALUES, max_size=8))
def test_what_is_called_harmless_is_not_changed(values: list[object]) -> None:
    seen = Sieve(ROWS).look(values)
    assert len(seen) == len(values)
    for value, (harmless, chars) in zip(values, seen, strict=True):
        changed = redact.redact(value, ROWS)[0]
        assert not harmless or changed == value
        assert chars == sum(map(len, redact._collect(value)[0]))


def test_most_are_harmless_and_one_with_a_secret_does_not_hide() -> None:
    plain: list[object] = [{"step": n, "text": "nothing " * 600} for n in range(40)]
    assert all(harmless for harmless, _ in Sieve(ROWS).look(plain))
    seen = Sieve(ROWS).look([*plain, {"token": "x"}, f"my key is {SECRETS[0]}"])
    assert [harmless for harmless, _ in seen[-2:]] == [False, False] and seen[0][0]


def test_too_deep_is_not_harmless() -> None:
    deep: object = "x"
    for _ in range(redact.DEPTH + 5):
        deep = [deep]
    assert Sieve(ROWS).look([deep])[0][0] is False
