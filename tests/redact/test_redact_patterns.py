"""The eight basic patterns, one by one, and what all of redaction keeps to."""

from __future__ import annotations

import copy
import hashlib
import json
import marshal
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.commands import main
from guardhook.core.folders import explicit
from guardhook.journal import redact, rules
from guardhook.policy import config
from guardhook.store import TraceRecorder, open_store

ROWS: tuple[redact.Row, ...] = marshal.loads(marshal.dumps(rules.freeze_rules()))
BASIC: tuple[redact.Row, ...] = marshal.loads(marshal.dumps(rules.freeze_rules((), config.OPTIONAL_RULES)))
A20, A32, A40 = "a1B2c3D4e5F6g7H8i9J0", "0123456789abcdef0123456789abcdef", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def basic(text: str) -> str:
    return redact.redact_text(text, BASIC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # jwt
        ("eyJa.b.c", "[REDACTED:jwt]"), ("xeyJa-_9.b-_8.c-_7 y", "x[REDACTED:jwt] y"), ("eyJ.a.b", "eyJ.a.b"), ("eyJa.b", "eyJa.b"), ("eyja.b.c", "eyja.b.c"), ("eyJa..c", "eyJa..c"),
        # private keys: types need not agree; without an end only so much goes
        ("a-----BEGIN RSA PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----b", "a[REDACTED:private_key]b"), ("-----BEGIN PRIVATE KEY-----x-----END PRIVATE KEY-----", "[REDACTED:private_key]"),
        ("-----BEGIN PUBLIC KEY-----x-----END PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----x-----END PUBLIC KEY-----"),
        ("-----BEGIN PRIVATE KEY-----1-----END PRIVATE KEY----- and -----BEGIN PRIVATE KEY-----2-----END PRIVATE KEY-----", "[REDACTED:private_key] and [REDACTED:private_key]"),
        ("-----BEGIN PRIVATE KEY-----rest", "[REDACTED:private_key]"), ("-----begin private key-----x-----end private key-----", "-----begin private key-----x-----end private key-----"),
        # aws
        ("AKIA0123456789ABCDEF", "[REDACTED:aws_key]"), ("XAKIA0123456789ABCDEFZ", "X[REDACTED:aws_key]Z"), ("akia0123456789abcdef", "akia0123456789abcdef"), ("AKIA0123456789ABCDE", "AKIA0123456789ABCDE"),
        (f"aws_secret_access_key={A40}", "[REDACTED:aws_secret]"), (f"AWS_Secret_Access_Key  :  {A40}", "[REDACTED:aws_secret]"), ("aws_secret_access_key=short", "aws_secret_access_key=short"),
        # connection strings
        ("postgres://u:p@h/d", "[REDACTED:connection_string]"), ("POSTGRESQL://u@h", "[REDACTED:connection_string]"), ("x mysql://h, y", "x [REDACTED:connection_string] y"),
        ('"redis://h:1"', '"[REDACTED:connection_string]"'), ("'mongodb://h'", "'[REDACTED:connection_string]'"), ("amqp://a\namqps://b", "[REDACTED:connection_string]\n[REDACTED:connection_string]"),
        ("postgres://", "postgres://"), ("https://example.com/a?b=c", "https://example.com/a?b=c"), ("postgres://u:a\\b@h/d", "[REDACTED:connection_string]"),
        ('{\\"url\\": \\"postgres://u:p@h/d\\"}', '{\\"url\\": \\"[REDACTED:connection_string]\\"}'),
        # api keys
        ("sk-" + A20, "[REDACTED:api_key]"), ("sk-" + A20[:19], "sk-" + A20[:19]), ("task-" + A20, "ta[REDACTED:api_key]"), ("SK-" + A20, "SK-" + A20),
        (f"api_key={A32}", "[REDACTED:api_key]"), (f"API-KEY : '{A32}'", "[REDACTED:api_key]"), (f'secretkey="{A32}"', "[REDACTED:api_key]"), (f"access_token:{A32}", "[REDACTED:api_key]"),
        (f"AuthToken = {A32}", "[REDACTED:api_key]"), (f"api_key={A32[:31]}", f"api_key={A32[:31]}"), (f'"api_key": "{A32}"', f'"api_key": "{A32}"'),
        # bearer tokens
        ("Bearer " + A20, "[REDACTED:bearer_token]"), ("authorization:   BEARER   " + A20, "[REDACTED:bearer_token]"), ("Bearer " + A20[:19], "Bearer " + A20[:19]), ("Bearer\t" + A20, "[REDACTED:bearer_token]"),
        # their order
        ("Authorization: Bearer sk-" + A20, "Authorization: Bearer [REDACTED:api_key]"), ("secret_key=sk-" + A20, "secret_key=[REDACTED:api_key]"), ("Bearer eyJabc.def.ghi", "Bearer [REDACTED:jwt]"),
    ],
)  # fmt: skip
def test_the_basic_patterns(text: str, expected: str) -> None:
    assert basic(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"api_key": "0123456789abcdef0123456789abcdef"', f'{{"aws_secret_access_key": "{A40}"}}', "mongodb+srv://u:p@c.example", "ASIA0123456789ABCDEF", "ghp_" + "a1B2" * 9,
        "xoxb-123456789012-abcdefABCDEF", "AIza" + "SyA-1234567" * 3 + "ab", "https://user:pass1@example.com/x",
    ],
)  # fmt: skip
def test_further_patterns(text: str) -> None:
    secret = max(text.replace('"', " ").replace("@", " ").split(), key=len)
    assert secret not in redact.redact_text(text, ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "See https://example.com/docs/page?id=42#part for more.", "2026-08-16T23:00:00.123456Z INFO started worker-3", "for (let i = 0; i < n; i++) { total += items[i].price; }",
        "def token(self) -> str: return self._token", "SELECT key, value FROM settings WHERE name = 'theme'", "The secret of success is work; the key to it is patience.",
        "git commit -m 'Fix the api key check in the tests'", "a" * 5000, "sha256:" + "ab" * 32,
    ],
)  # fmt: skip
def test_safe_texts_stay(text: str) -> None:
    assert redact.redact_text(text, ROWS) == text


def test_the_modes() -> None:
    value: dict[str, object] = {"a": ["x", {"b": "sk-" + A20}], "n": 1, "t": True, "z": None, "f": 1.5}
    before = copy.deepcopy(value)
    assert redact.redact(value, ROWS, "full") == (before, [])
    assert redact.redact(value, ROWS, "none") == ({}, [""])
    hashed, _ = redact.redact(value, ROWS, "hashed")
    assert hashed == {
        **before,
        "a": [hashlib.sha256(b"x").hexdigest(), {"b": hashlib.sha256(b"sk-" + A20.encode()).hexdigest()}],
    }
    assert hashed["a"][0] == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # type: ignore[index]
    for mode in ("redacted", "anything else", ""):
        assert redact.redact(value, ROWS, mode)[0] == {**before, "a": ["x", {"b": "[REDACTED:api_key]"}]}
    assert value == before


@pytest.mark.parametrize("depth", [30, 150])
def test_deep_values(depth: int) -> None:
    value: object = f"sk-{A20}"
    for _ in range(depth):
        value = {"k": [value]}
    found = json.dumps(redact.redact(value, ROWS)[0])
    assert A20 not in found and found.count('"k"') in (depth, redact.DEPTH // 2)


def test_beyond_what_is_walked_nothing_passes_unread() -> None:
    value: object = "harmless"
    for _ in range(redact.DEPTH + 10):
        value = [value]
    assert "harmless" not in json.dumps(redact.redact({"a": value, "b": f"sk-{A20}"}, ROWS)[0])


@pytest.mark.parametrize("at", [65_536, 65_526, 65_530, 61_440, 131_072])
def test_long_texts_are_read_to_their_end(at: int) -> None:
    text = "x" * (at - 10) + " sk-" + A20 + " " + "y" * 100_000 + " tail"
    new = redact.redact_text(text, ROWS)
    assert (
        A20 not in new
        and new.endswith("y tail")
        and len(new) == len(text) - len("sk-" + A20) + len("[REDACTED:api_key]")
    )


def test_many_secrets_at_once() -> None:
    value = {f"k{n}": f"sk-{A20}{n}" for n in range(1000)}
    new, pointers = redact.redact(value, ROWS)
    assert new == dict.fromkeys(value, "[REDACTED:api_key]") and len(pointers) == 1000


def test_keys_are_never_changed() -> None:
    value = {f"sk-{A20}": "x", f"Bearer {A20}": f"Bearer {A20}"}
    new, _ = redact.redact(value, ROWS)
    assert isinstance(new, dict) and list(new) == list(value)


@given(
    st.lists(
        st.sampled_from(
            [
                "-----BEGIN RSA PRIVATE KEY-----",
                "-----END RSA PRIVATE KEY-----",
                "eyJ",
                ".",
                "sk-",
                "a" * 30,
                "postgres://",
                " ",
                "\n",
                "api_key=",
                "Bearer ",
                "AKIA",
                "'",
            ]
        ),
        max_size=30,
    )
)
@settings(max_examples=100)
def test_doing_it_twice_changes_nothing(pieces: list[str]) -> None:
    once = redact.redact_text("".join(pieces), ROWS)
    assert redact.redact_text(once, ROWS) == once


def test_the_rules_that_may_be_switched_off_are_all_but_the_basic_ones() -> None:
    names = {rule.name for rule in rules.RULES}
    basic_ones = {"jwt", "private_key", "aws_key", "aws_secret", "connection_string", "api_key", "bearer_token"}
    assert set(config.OPTIONAL_RULES) == names - basic_ones
    assert {row[0] for row in BASIC} == basic_ones


# --- patterns of the user's own -------------------------------------------------------------------------------------


def compiled(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    out = CliRunner().invoke(main, ["policy", "compile", "--dir", str(folder)])
    return "" if out.exit_code == 0 else out.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[capture.redaction]\ncustom = ["("]\n', "config.toml:2: capture.redaction.custom: the pattern '(' can't be used"),
        ('[capture]\nmode = "full"\n\n[capture.redaction]\nstop = "full"\ncustom = ["a*"]\n', "config.toml:6: capture.redaction.custom: the pattern 'a*' matches the empty text"),
        ('[forensics.redaction]\ncustom = ["(a+)+b"]\n', "config.toml:2: forensics.redaction.custom"),
        ('[capture.redaction]\ncustom = "x"\n', "config.toml:1: capture.redaction"),
        ("[capture.redaction]\ncustom = [1]\n", "config.toml"),
        ('[capture.redaction]\noff = ["jwt"]\n', "config.toml:2: capture.redaction.off: 'jwt' can't be switched off"),
        ('[capture.redaction]\nstop = ["full"]\n', "config.toml:2: capture.redaction.stop"),
        ('[forensics.redaction]\nnothing = "full"\n', "config.toml:2: forensics.redaction.nothing: no such event"),
        ('[forensics]\naudit_trail_enabled = "yes"\n', "config.toml:2: forensics.audit_trail_enabled"),
    ],
)  # fmt: skip
def test_settings_that_cant_be_used_are_named_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in compiled(tmp_path / "gh", text)


def test_they_are_kept_with_the_compiled_policies(tmp_path: Path) -> None:
    from guardhook.policy import compiled as compiled_policies

    folder = tmp_path / "gh"
    both = '[capture.redaction]\ncustom = ["ACME-[0-9]+"]\noff = ["cookie"]\n[forensics.redaction]\ncustom = ["(?i)emp[0-9]{6}", "ACME-[0-9]+"]\nstop = "none"\n'
    assert compiled(folder, both) == ""
    made = compiled_policies.load(explicit(str(folder)))
    rows: tuple[redact.Row, ...] = made.redact  # type: ignore[assignment]
    assert (
        redact.redact_text("ACME-12 and EMP000001 and acme-1", rows)
        == "[REDACTED:custom] and [REDACTED:custom] and acme-1"
    )
    assert redact.redact_text("Set-Cookie: sid=abcdefghijkl; Path=/", rows) == "Set-Cookie: sid=abcdefghijkl; Path=/"
    assert [row[0] for row in rows].count("custom") == 2
    assert made.config["redaction"] == {"stop": "none"}


def test_what_commands_record_obeys_them_too(tmp_path: Path) -> None:
    folder = tmp_path / "gh"
    assert compiled(folder, '[capture.redaction]\ncustom = ["^ACME-[0-9]+$"]\n') == ""
    folders = explicit(str(folder))
    recorder = TraceRecorder(folders)
    recorder.start_trace("agent", input={"for": "ACME-77"})
    recorder.end_trace(output={})
    with open_store(folders) as store:
        (trace,) = store.iterate()
        assert trace.input == {"for": "[REDACTED:custom]"}


LINES = [
    "x = 1",
    "+-----BEGIN RSA PRIVATE KEY-----",
    "+MIIEabcdefghijklmnop",
    "+qrstuvwxyz0123456789",
    "+-----END RSA PRIVATE KEY-----",
    "y = 2",
]


@pytest.mark.parametrize("shape", ["lines", "numbered"])
def test_a_key_whose_lines_are_parted_over_a_list(shape: str) -> None:
    """Editors' answers have files and hunks as lists of lines; only the first line looks like a key."""
    given: object = LINES if shape == "lines" else [{"number": n, "text": line} for n, line in enumerate(LINES)]
    clean, pointers = redact.redact({"hunk": given, "after": ["MIIEabcdefghijklmnop"]}, ROWS)
    assert isinstance(clean, dict)
    told = [one if isinstance(one, str) else one["text"] for one in clean["hunk"]]
    assert told[0] == "x = 1" and told[-1] == "y = 2" and clean["after"] == ["MIIEabcdefghijklmnop"]
    assert not any("MIIE" in one or "qrst" in one for one in told) and len(pointers) == 4
    again, more = redact.redact(clean, ROWS)
    assert (again, more) == (clean, [])


def test_a_key_that_never_ends_takes_no_conversation_along() -> None:
    said = ["what is -----BEGIN RSA PRIVATE KEY-----", "It begins a key.\nMore of it: " + "words " * 60, "thanks"]
    clean, _ = redact.redact({"messages": said}, ROWS)
    assert isinstance(clean, dict) and clean["messages"][1:] == said[1:]
    clean, _ = redact.redact(["-----BEGIN RSA PRIVATE KEY-----", *["x" * 100] * 200], ROWS)
    assert isinstance(clean, list) and clean[-1] == "x" * 100 and clean[80] == "[REDACTED:private_key]"


@pytest.mark.parametrize(
    "before",
    [
        "postgres://u:p@h/d",
        "machine x login bob password hunter1",
        "https://u:p@h",
        "Cookie: a=0123456789",
        "export A_TOKEN=abcdef",
    ],
)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_lines_in_json_within_a_text_are_lines(before: str, depth: int) -> None:
    """An escaped line feed ends a value, and the letter in it is no part of the next word."""
    text = f"{before}\nmysql -u root -phunter2 db\nnpm_{'aB3d' * 9}"
    for _ in range(depth):
        text = json.dumps({"command": text, "lines": text.split("\n")}, separators=(",", ":"))
    clean = redact.redact_text(text, ROWS)
    assert "hunter2" not in clean and "aB3d" not in clean and "mysql -u root -p[REDACTED:argument] db" in clean
