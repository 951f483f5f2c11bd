"""init: what it makes, and that nothing is written over."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from guardhook.commands import main
from guardhook.commands.init import template
from guardhook.policy.settings import KEYS


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["init", *words], env={"GUARDHOOK_DIR": "/nowhere"})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "proj"
    (found / ".git").mkdir(parents=True)
    (found / "src").mkdir()
    monkeypatch.chdir(found / "src")
    return found


def tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def test_the_current_project_gets_policies_and_config_and_nothing_else(project: Path) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert tree(project / ".guardhook") == {"policies", "config.toml"}
    assert stat.S_IMODE((project / ".guardhook").stat().st_mode) == 0o700
    assert stat.S_IMODE((project / ".guardhook/config.toml").stat().st_mode) == 0o600
    assert tomllib.loads((project / ".guardhook/config.toml").read_text()) == {}
    assert "guardhook install" in result.stdout and str(project / ".guardhook") in result.stdout
    assert not (project / "src/.guardhook").exists()


@pytest.mark.parametrize("words", [["--project"], ["--project", ".."], ["--project", "."]])
def test_projects_by_name(project: Path, words: list[str]) -> None:
    assert run(*words).exit_code == 0
    assert (project / ".guardhook/policies").is_dir()


def test_a_folder_for_dir(project: Path, tmp_path: Path) -> None:
    found = json.loads(run("--dir", str(tmp_path / "a" / "gh"), "--json").stdout)
    assert found["ok"] and found["kept"] == [] and found["folder"] == str(tmp_path / "a" / "gh")
    assert tree(tmp_path / "a" / "gh") == {"policies", "config.toml"} and not (project / ".guardhook").exists()
    listed = CliRunner().invoke(main, ["config", "list", "--json", "--dir", found["folder"]])
    assert json.loads(listed.stdout)["problems"] == []


def test_what_is_there_stays(project: Path) -> None:
    folder = project / ".guardhook"
    folder.mkdir(mode=0o755)
    (folder / "config.toml").write_text("# mine\n")
    folder.chmod(0o755)
    found = json.loads(run("--json").stdout)
    assert found["created"] == [str(folder / "policies")] and set(found["kept"]) == {str(folder), str(folder / "config.toml")}  # fmt: skip
    again = run()
    assert again.exit_code == 0 and "there already" in again.stdout
    assert (folder / "config.toml").read_text() == "# mine\n" and stat.S_IMODE(folder.stat().st_mode) == 0o755
    (folder / "policies/mine.toml").write_text("x")
    assert run("--force").exit_code == 0
    assert "# mine" not in (folder / "config.toml").read_text() and (folder / "policies/mine.toml").read_text() == "x"


@pytest.mark.parametrize("name", ["", "policies", "config.toml"])
def test_links_are_not_followed(project: Path, tmp_path: Path, name: str) -> None:
    away = tmp_path / "away"
    if name == "config.toml":
        away.write_text("precious")
    else:
        away.mkdir()
    link = project / ".guardhook" / name if name else project / ".guardhook"
    link.parent.mkdir(exist_ok=True)
    os.symlink(away, link)
    result = run("--force")
    assert result.exit_code == 1 and str(link) in result.stderr
    assert (away.read_text() == "precious") if name == "config.toml" else not any(away.iterdir())


@pytest.mark.parametrize(
    "words", [["--project", "", "--json"], ["--dir", " "], ["--project", ".", "--dir", "x"], ["--nope"], ["x"]]
)
def test_mistakes(project: Path, words: list[str]) -> None:
    assert run(*words).exit_code == 2 and not (project / ".guardhook").exists()


def test_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("--dir", str(tmp_path / "file" / "gh"), "--json")
    assert result.exit_code == 1 and not json.loads(result.stdout)["ok"]
    assert run("--project", str(tmp_path / "missing")).exit_code == 2


def test_the_template_names_every_setting_and_is_toml_when_its_lines_are_taken_up() -> None:
    text = template(in_project=True)
    assert all(key.name.rpartition(".")[2].replace("*", "KEY") in text for key in KEYS)
    lines = [line[2:] for line in text.splitlines() if line.startswith("# ") and (" = " in line or line[2] == "[") and "…" not in line]  # fmt: skip
    found = tomllib.loads("\n".join(lines))
    assert found["gate"]["preset"] == "balanced" and found["capture"]["idle_minutes"] == 30.0
