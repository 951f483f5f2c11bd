"""How large an account may be. Lists are shortened, never what was counted or raised. Bytes are those of ASCII JSON, which is what is sent and never shorter."""

from __future__ import annotations

from guardhook.archive.account.templates import Teller
from guardhook.core.jsontext import dumps

ITEMS = 12
ROW_CHARS = 3000
CALLS = 50
ACCOUNT_BYTES = 128 * 1024
RESPONSE_BYTES = 192 * 1024
SHOWN_BYTES = 64 * 1024
LEAF_CHARS = 2048
MORE = "#more"
QUESTION_CHARS = 3000
ANSWER_CHARS = 4000


def row(lines: list[dict[str, object]], teller: Teller) -> tuple[list[dict[str, object]], int]:
    """The lines of a row that fit, and how many don't. The first one always stays."""
    kept: list[dict[str, object]] = []
    chars = 0
    for line in lines:
        chars += len(str(line["text"]))
        if kept and (len(kept) >= ITEMS or chars > ROW_CHARS):
            break
        kept.append(line)
    return kept, len(lines) - len(kept)


def shrink(account: dict[str, object]) -> None:
    """Shortens lists until the account fits: first the row that lists most, then the calls. Works on the account as it is."""
    rows = account["rows"]
    facts = account["facts"]
    assert isinstance(rows, list) and isinstance(facts, dict)
    while len(dumps(account)) > ACCOUNT_BYTES:
        longest = max(rows, key=lambda r: sum(len(str(line["text"])) for line in r["lines"]) if len(r["lines"]) > 1 else -1)  # fmt: skip
        if len(longest["lines"]) > 1:
            longest["lines"].pop()
            longest["more"] = longest.get("more", 0) + 1
        elif facts["calls"]:
            facts["calls"].pop()
            facts["omitted"] += 1
        else:
            return
