"""`guardhook policy new`: a file that works as it is, and never replaces one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands_rig import environment, plain


@pytest.fixture
def env(scratch_home: Path, tmp_path: Path) -> dict[str, str]:
    return environment(scratch_home, GUARDHOOK_DIR=str(tmp_path / "gh"))


def test_the_new_file_passes_its_examples_and_judges(env: dict[str, str]) -> None:
    made = plain(["policy", "new", "my-deploy", "--json"], env)
    assert made.status == 0, made
    path = Path(json.loads(made.stdout)["file"])
    assert path.name == "my-deploy.toml"
    tested = json.loads(plain(["policy", "test", str(path), "--json"], env).stdout)
    assert (tested["ok"], tested["examples"]) == (True, 3)
    assert (tested["confusion"]["require_review"]["require_review"], tested["confusion"]["allow"]["allow"]) == (2, 1)
    explained = json.loads(plain(["explain", "example-deploy --now", "--json"], env).stdout)
    assert explained["verdict"]["policy"] == "my-deploy"
    rows = json.loads(plain(["guard", "list", "--json"], env).stdout)["policies"]
    assert next(r for r in rows if r["name"] == "my-deploy")["layer"] == "user"


def test_nothing_is_ever_overwritten(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "gh" / "policies"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("# mine\n")
    (folder / "link.toml").symlink_to(folder / "nowhere.toml")
    (folder / "other.toml").write_text('[[policy]]\nname = "taken"\naction = "warn"\nmatch = { program = "x" }\n')
    for name in ("mine", "link", "taken"):
        ran = plain(["policy", "new", name, "--json"], env)
        assert ran.status == 2, ran
        assert json.loads(ran.stdout)["ok"] is False
    assert (folder / "mine.toml").read_text() == "# mine\n"
    assert not (folder / "nowhere.toml").exists()
    assert not (folder / "taken.toml").exists()


@pytest.mark.parametrize("name", ["", "../x", "A", "a b", "a/b", ".hidden", "x" * 65, "é", "-x"])
def test_names_that_are_no_names(env: dict[str, str], tmp_path: Path, name: str) -> None:
    assert plain(["policy", "new", "--", name], env).status == 2
    assert not list(tmp_path.rglob("*.toml"))
