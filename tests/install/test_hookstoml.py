"""Hooks in TOML: whatever stands around our entries stays as it is."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.harness import hookstoml
from guardhook.harness.errors import HarnessError

OURS = "/d/bin/codex.enforce"


def ours(handler: object) -> bool:
    return isinstance(handler, dict) and str(handler.get("command")).startswith(OURS)


def groups(seconds: int = 10) -> dict[str, Any]:
    events = ("PreToolUse", "Stop")
    return {e: {"hooks": [{"type": "command", "command": f"{OURS} {e}", "timeout": seconds}]} for e in events}


CHUNKS = [
    "# a comment\n",
    "\n",
    "\n\n",
    '[[hooks.PreToolUse]]\nmatcher = \'x\'\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "theirs" # why\n',
    '[[hooks.Stop]]\n\n  [[hooks.Stop.hooks]]\n  command = """two\n[[hooks.Stop.hooks]]\nlines"""\n',
    "[[ hooks . Stop ]]\n# inside\nhooks = []\n",
    "[tools.N]\nlist = [\n  [1],\n  [\"]\"],\n]\ntext = '''\n[[hooks.PreToolUse]]\n'''\n",
    "[plain.N]\nx = 1\n\n",
    '[hooks.state."/f:stop:N:0"]\ntrusted_hash = "h"\n',
]


@st.composite
def files(draw: st.DrawFn) -> str:
    picked = draw(st.lists(st.sampled_from(range(len(CHUNKS))), max_size=6))
    text = "".join(CHUNKS[i].replace("N", f"n{at}") for at, i in enumerate(picked))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def before_headers(text: str) -> bool:
    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError:
        return False
    return True


@given(files(), files())
@settings(max_examples=80, deadline=None)
def test_entries_go_in_and_out_without_a_trace(above: str, below: str) -> None:
    below = below.replace("n", "m", 0).replace(".n", ".m").replace(":n", ":m")
    data = above.encode()
    added = hookstoml.register("f", data, groups(), ours)
    assert added.after is not None and added.after.startswith(data)
    assert hookstoml.register("f", added.after, groups(), ours).after == added.after
    assert hookstoml.unregister("f", added.after, ours).after == data or not data.endswith(b"\n")
    whole = added.after + below.encode()
    if not before_headers(whole.decode()):
        return
    assert tomllib.loads(above.replace("\r\n", "\n") + below.replace("\r\n", "\n")) is not None
    changed = hookstoml.register("f", whole, groups(5), ours)
    assert changed.after is not None and len(changed.after) == len(whole) - 2  # 10 became 5, twice
    out = hookstoml.unregister("f", changed.after, ours)
    assert out.after is not None
    # Blank lines that parted our block from its neighbours may go; every other line stays.
    kept = [line for line in out.after.splitlines() if line.strip()]
    assert kept == [line for line in (data + below.encode()).splitlines() if line.strip()]


def test_inline_hooks_are_taken_out_too() -> None:
    data = (
        f'hooks.Stop = [{{hooks = [{{type = "command", command = "{OURS} Stop"}}, {{command = "theirs"}}]}}]\n'.encode()
    )
    after = hookstoml.unregister("f", data, ours).after
    assert after is not None and tomllib.loads(after.decode()) == {
        "hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}
    }


def test_a_comment_is_never_lost() -> None:
    """Where tomlkit would drop one, nothing is written."""
    data = f'hooks.Stop = [\n  # theirs\n  {{hooks = [{{command = "{OURS}"}}]}},\n]\n'.encode()
    try:
        after = hookstoml.unregister("f", data, ours).after
    except HarnessError as error:
        assert "comment" in error.message
    else:
        assert after is not None and b"# theirs" in after


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a=" + "{b=" * 5000, "a" + ".b" * 5000 + " = 1\n"])
def test_endless_nesting_is_told_like_any_other_mistake(text: str) -> None:
    with pytest.raises(HarnessError, match=r"deeply|more than 100 parts"):
        hookstoml.register("f", text.encode(), groups(), ours)
