"""Changing config.toml and saying what is wrong in it."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardhook.core.folders import Folders, explicit
from guardhook.policy import edit, load, settings, settings_check, settings_edit
from guardhook.policy.settings import FILE, KEYS, Key

COMMENTED = """\
# mine
top = 1   # unknown, and kept

[gate]  # how strict
# three seconds
preset = "strict"  # on purpose

# what is kept
[capture]
mode = "full"

[capture.redaction]
pre_tool = "hashed"
"""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    found = explicit(str(tmp_path / "home"))
    found.system = str(tmp_path / "system")
    for folder in (found.config, found.system):
        Path(folder).mkdir(parents=True)
    return found


def write(folder: str, text: str) -> Path:
    path = Path(folder) / FILE
    path.write_text(text)
    return path


def lines(text: str) -> set[str]:
    return set(text.splitlines())


@pytest.mark.parametrize(
    ("name", "value"),
    [("gate.preset", "balanced"), ("gate.watchdog", 2.5), ("capture.retention", "90d"), ("capture.redaction.stop", "none"), ("gate.oversize", 70_000)],
)  # fmt: skip
def test_a_change_keeps_every_other_line(folders: Folders, name: str, value: object) -> None:
    path = write(folders.config, COMMENTED)
    assert settings_edit.put(folders, name, value) == str(path)
    after = path.read_text()
    assert settings.read(folders).get(name) == value
    lost = lines(COMMENTED) - lines(after)
    assert lost <= {'preset = "strict"  # on purpose'} and (not lost or 'preset = "balanced"  # on purpose' in after)
    assert tomllib.loads(after)["top"] == 1
    # A new line stands in its own table, above the comment of the next one.
    assert after.index("# what is kept") < after.index("[capture]")
    if name.startswith("gate."):
        assert after.index(name.partition(".")[2]) < after.index("# what is kept")


def test_the_first_setting_makes_a_file_for_its_owner_only(folders: Folders) -> None:
    settings_edit.put(folders, "capture.mode", "hashed")
    path = Path(folders.config) / FILE
    assert path.read_text() == '[capture]\nmode = "hashed"\n' and stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    settings_edit.put(folders, "capture.mode", "none")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ['gate.preset = "strict"\n', 'gate = {preset = "strict"}\n', '[gate]\npreset = "strict"'])  # fmt: skip
def test_other_ways_to_write_a_table(folders: Folders, text: str) -> None:
    write(folders.config, text)
    settings_edit.put(folders, "gate.watchdog", 2)
    assert settings.read(folders).section("gate") == {"preset": "strict", "watchdog": 2}


def test_unset_takes_one_line_out(folders: Folders) -> None:
    path = write(folders.config, COMMENTED)
    assert settings_edit.drop(folders, "capture.mode") == str(path)
    assert lines(COMMENTED) - lines(path.read_text()) == {'mode = "full"'}
    assert settings_edit.drop(folders, "capture.mode") is None


@pytest.mark.parametrize("text", ["gate = 3\n", "[gate\n", "\xff"])
def test_what_is_broken_is_never_written_over(folders: Folders, text: str) -> None:
    path = Path(folders.config) / FILE
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(edit.EditError):
        settings_edit.put(folders, "gate.preset", "strict")
    assert path.read_bytes() == text.encode("latin-1")


TABLE = (
    Key("a.text", "text", ""), Key("a.secret", "secret", ""), Key("a.flag", "boolean", ""), Key("a.whole", "integer", "", least=1), Key("a.number", "number", "", most=5),
    Key("a.choice", "choice", "", None, ("one", "two")), Key("a.list", "list", ""), Key("a.tables", "table", ""), Key("a.time", "duration", ""), Key("a.below.*", "text", ""),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("a.text", " x y ", "x y"), ("a.flag", "yes", True), ("a.flag", "FALSE", False), ("a.whole", "12", 12), ("a.number", "2.5", 2.5), ("a.number", "3", 3),
        ("a.choice", "two", "two"), ("a.list", "x, y", ["x", "y"]), ("a.list", '["x,y"]', ["x,y"]), ("a.time", "12h", "12h"), ("a.below.any", "z", "z"),
    ],
)  # fmt: skip
def test_values_are_typed(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object) -> None:
    monkeypatch.setattr(settings_check, "KEYS", TABLE)
    key = settings_check.find(name)
    assert key is not None
    found = settings_edit.convert(key, name, text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.text", ""), ("a.text", "  "), ("a.text", "a\x1bb"), ("a.text", "a\nb"), ("a.flag", "maybe"), ("a.whole", "0"), ("a.whole", "1.5"), ("a.whole", "1_0"), ("a.whole", "x"),
        ("a.number", "6"), ("a.number", "nan"), ("a.number", "inf"), ("a.choice", "three"), ("a.list", "[1]"), ("a.list", "[x"), ("a.tables", "x"), ("a.time", "soon"), ("a.time", "10"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setattr(settings_check, "KEYS", TABLE)
    key = settings_check.find(name)
    assert key is not None
    with pytest.raises(settings_edit.BadValue):
        settings_edit.convert(key, name, text)


@pytest.mark.parametrize(
    ("name", "text"), [("gate.watchdog", "9"), ("gate.oversize", "1"), ("capture.redaction.nothing", "full")]
)
def test_what_the_gate_would_refuse_is_refused_here(name: str, text: str) -> None:
    key = settings_check.find(name)
    assert key is not None
    with pytest.raises(settings_edit.BadValue):
        settings_edit.convert(key, name, text)


@pytest.mark.parametrize(
    ("text", "name", "line", "says"),
    [
        ("[captur]\nmode = 'full'\n", "captur", 1, "`capture`"), ("[gate]\nlocked = true\npresets = 1\n", "gate.presets", 3, "`gate.preset`"), ("x = 1\n", "x", 1, "no such"),
        ("[capture]\nretention = 3\n", "capture.retention", 2, "text"), ("[capture.redaction]\nfoo = 'full'\n", "capture.redaction.foo", 2, "event"), ("capture = 1\n", "capture", 1, "table"),
        ("locked = 'yes'\n", "locked", 1, "true or false"), ("[redaction]\npre_tool = 'full'\n", "redaction", 1, "`capture.redaction`"),
    ],
)  # fmt: skip
def test_what_is_misspelt_is_told_with_its_place(folders: Folders, text: str, name: str, line: int, says: str) -> None:
    path = write(folders.config, text)
    (found,) = settings_check.problems(folders)
    assert (found.path, found.name, found.line) == (str(path), name, line) and says in found.message
    loaded = load.load(folders, 0.0)
    told = [*loaded.problems, *map(str, loaded.errors)]
    assert sum(name in one for one in told) == 1  # once: as an error where the gate can't use it, else as a warning


def test_sound_files_have_no_problems(folders: Folders) -> None:
    write(folders.config, COMMENTED.replace("top = 1   # unknown, and kept\n", ""))
    write(folders.system, "locked = true\n[gate]\nlocked = true\npreset = 'strict'\n")
    assert settings_check.problems(folders) == []
    write(folders.config, "[broken")
    assert settings_check.problems(folders) == []  # told by whoever needs it


def test_locked_settings_are_refused_by_name(folders: Folders) -> None:
    write(folders.system, "[gate]\nlocked = true\npreset = 'strict'\n")
    found = settings.read(folders)
    assert "gate.preset" in (settings_check.refused(found, folders, "gate.preset") or "")
    assert settings_check.refused(found, folders, "gate.watchdog") is None  # the system has none


@given(st.text(max_size=40))
def test_little_of_a_secret_is_shown(secret: str) -> None:
    shown = settings_check.masked(secret)
    assert len(shown) <= 9 and (len(secret) < 16 or len(secret) - (len(shown) - 1) >= 8)
    assert len(secret) >= 16 or shown == "***"


def test_secrets_are_masked_inside_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_check, "KEYS", (Key("ai.keys.*", "secret", ""), Key("ai.model", "text", "")))
    shown = settings_check.shown("ai", {"model": "m", "keys": {"one": "sk-0123456789abcdefgh", "two": 3}})
    assert shown == {"model": "m", "keys": {"one": "sk-0…efgh", "two": "***"}}


@pytest.mark.parametrize("key", KEYS, ids=lambda k: k.name)
def test_the_table_is_sound(key: Key) -> None:
    assert key.kind in ("text", "secret", "boolean", "integer", "number", "choice", "duration", "list", "table")
    assert bool(key.choices) == (key.kind == "choice") and key.help and key.help[0].islower()
    if key.default is not None:
        assert settings_check.wrong(key, key.name, key.default) is None
