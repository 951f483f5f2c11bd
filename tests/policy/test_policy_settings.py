"""config.toml of the system and the user, as commands read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardhook.core.folders import Folders, explicit
from guardhook.policy import settings


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    found = explicit(str(tmp_path / "home"))
    found.system = str(tmp_path / "system")
    for folder in (found.config, found.system):
        Path(folder).mkdir(parents=True, exist_ok=True)
    return found


def write(folder: str, text: str) -> None:
    (Path(folder) / settings.FILE).write_text(text)


def test_no_files_are_no_settings(folders: Folders) -> None:
    found = settings.read(folders)
    assert found.section("ai") == {} and found.get("ai.model", "x") == "x" and found.origin("ai.model") is None


def test_the_users_value_wins_unless_locked(folders: Folders) -> None:
    write(folders.system, '[ai]\nmodel = "a"\nprovider = "p"\n[ai.keys]\none = 1\n')
    write(folders.config, '[ai]\nmodel = "b"\n[ai.keys]\ntwo = 2\n')
    found = settings.read(folders)
    assert found.section("ai") == {"keys": {"one": 1, "two": 2}, "model": "b", "provider": "p"}
    assert (found.origin("ai.model"), found.origin("ai.provider")) == ("user", "system")
    for lock in ("locked = true\n[ai]\n", "[ai]\nlocked = true\n"):
        write(folders.system, f'{lock}model = "a"\n')
        found = settings.read(folders)
        assert found.get("ai.model") == "a" and found.origin("ai.model") == "system"
        assert "locked" not in found.section("ai") and found.get("ai.keys.two") == 2


@pytest.mark.parametrize(("data", "says"), [(b"[ai\n", "line 1"), (b"\xff", "UTF-8"), (b"a=" + b"[" * 5000, "")])
def test_a_broken_file_is_named(folders: Folders, data: bytes, says: str) -> None:
    (Path(folders.config) / settings.FILE).write_bytes(data)
    with pytest.raises(settings.SettingsError) as error:
        settings.read(folders)
    assert settings.FILE in str(error.value) and says in str(error.value)


def test_a_key_of_endless_parts_is_refused_wherever_toml_is_read() -> None:
    """`tomllib` keeps every prefix of a dotted key: 250 KB of one took all memory."""
    from guardhook.harness import hookstoml
    from guardhook.harness.errors import HarnessError
    from guardhook.policy import tomltext

    bomb = ".".join(["a"] * 100_000) + " = 1\n"
    with pytest.raises(ValueError, match="dotted key"):
        tomltext.loads(bomb)
    with pytest.raises(HarnessError, match="dotted key"):
        hookstoml.parse("x.toml", bomb.encode())


def test_nothing_but_the_bounded_reader_reads_toml() -> None:
    package = Path(settings.__file__).parents[1]
    found = [str(p.relative_to(package)) for p in package.rglob("*.py") if "tomllib.load" in p.read_text()]
    assert found == ["policy/tomltext.py"]
