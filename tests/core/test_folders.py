"""Where things live, and that the environment has no say for the hook."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardhook.core import folders


def test_baked_file_round_trip() -> None:
    given = folders.Folders("/c d/é", "/data", "/etc/guardhook")
    read = folders.parse_baked(folders.render_baked(given))
    assert (read.config, read.data, read.system) == ("/c d/é", "/data", "/etc/guardhook")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "config=/a\n",
        "config=/a\ndata=b\nsystem=/c\n",
        "config=/a\ndata=/b\nsystem=/c\nconfig=/d\n",
        "x=/a\n",
        "config\n",
    ],
)
def test_damaged_baked_file_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="guardhook install"):
        folders.parse_baked(text)


@pytest.mark.parametrize("path", ["relative", "/a\nb"])
def test_unusable_paths_are_not_baked(path: str) -> None:
    with pytest.raises(ValueError, match="absolute"):
        folders.render_baked(folders.Folders(path, "/d", "/s"))


def test_platform_folders() -> None:
    linux = folders.unbaked("/home/u", "linux")
    assert (linux.config, linux.data) == ("/home/u/.config/guardhook", "/home/u/.local/share/guardhook")
    mac = folders.unbaked("/Users/u", "darwin")
    assert mac.config == mac.data == "/Users/u/Library/Application Support/guardhook"
    assert mac.system == "/Library/Application Support/guardhook"


def test_the_hook_ignores_home_and_its_own_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "GUARDHOOK_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "planted"))
    found = folders.for_hook(None, str(tmp_path))
    assert "planted" not in found.config + found.data + found.system


def test_baked_file_wins_over_the_user_database(tmp_path: Path) -> None:
    (tmp_path / "folders").write_text("config=/c\ndata=/d\nsystem=/s\n")
    assert folders.for_hook(None, str(tmp_path)).data == "/d"


def test_a_linked_baked_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("config=/c\ndata=/d\nsystem=/s\n")
    (tmp_path / "folders").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        folders.for_hook(None, str(tmp_path))


def test_one_folder_for_everything_but_the_system(tmp_path: Path) -> None:
    one = folders.explicit(str(tmp_path))
    assert one.config == one.data == str(tmp_path)
    assert one.system == "/etc/guardhook"
