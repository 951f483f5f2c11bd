"""Registration in Gemini CLI: milliseconds, names, environment, the extension, and the way back."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from install_rig import Person, put, tree

from guardhook.harness import gemini
from guardhook.harness.errors import HarnessError
from guardhook.harness.machine import Machine
from guardhook.harness.model import Ran

D = "gemini"


def settings(person: Person) -> Path:
    return person.home / ".gemini/settings.json"


def extension(person: Person) -> Path:
    return person.home / ".gemini/extensions/guardhook"


def plain(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(re.sub(r"//.*", "", path.read_text()))
    return value


THEIRS = {
    "comments": b'{\n  // mine\n  "theme": "x", /* y */\n  "hooks": {\n    "AfterTool": [ ]\n  }\n}\n',
    "switched off": b'{"hooksConfig": {"enabled": false, "disabled": ["x"]}}\n',
    "other hooks": json.dumps(
        {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "c", "name": "n"}]}]}}, indent="\t"
    ).encode(),
}


@pytest.mark.parametrize("name", [*THEIRS, None])
def test_uninstall_brings_back_every_byte(person: Person, name: str | None) -> None:
    if name:
        put(settings(person), THEIRS[name])
    before = tree(person.base)
    person.install(D)
    once = tree(person.base)
    person.install(D)
    assert tree(person.base) == once
    person.install(D, capture=True)
    person.uninstall(D)
    assert {k: v for k, v in tree(person.base).items() if not k.startswith("home/.local")} == before


def test_shape(person: Person) -> None:
    person.install(D)
    hooks = plain(settings(person))["hooks"]
    assert set(hooks) == set(gemini.EVENTS)
    names = set()
    for event, (group,) in hooks.items():
        (handler,) = group["hooks"]
        names.add(handler["name"])
        judged = event == "BeforeTool"
        assert (group.get("sequential") is True) == judged
        spoken = judged or event == "SessionStart"  # where the person may be told something
        assert handler["command"] == f"{person.launcher(D, 'enforce' if spoken else 'observe')} {event}"
        assert handler["timeout"] == 10000 if judged else 1000 <= handler["timeout"] <= 5000
        assert handler["env"] == {"BASH_ENV": "", "ENV": "", "SHLVL": "1", "LD_PRELOAD": ""}
        assert "matcher" not in group
    assert len(names) == 1 and re.fullmatch(r"guardhook-[0-9a-f]{4}", names.pop())


def test_the_extension_repeats_the_entries_so_that_they_run_once(person: Person) -> None:
    """Untrusted folders run hooks of extensions only; the client runs equal name and command once."""
    person.install(D)
    assert plain(extension(person) / "hooks/hooks.json") == {"hooks": plain(settings(person))["hooks"]}
    assert plain(extension(person) / "gemini-extension.json")["name"] == "guardhook"
    assert {Path(r.file).name for r in person.registrations(D)} == {"settings.json", "hooks.json"}


def test_an_extension_of_others_under_our_name_is_not_removed(person: Person) -> None:
    put(extension(person) / "gemini-extension.json", {"name": "something else"})
    person.uninstall(D)
    assert (extension(person) / "gemini-extension.json").exists()


def test_the_name_is_kept_unless_somebody_disabled_it(person: Person) -> None:
    person.install(D)
    name = plain(settings(person))["hooks"]["BeforeTool"][0]["hooks"][0]["name"]
    person.install(D, capture=True)
    assert plain(settings(person))["hooks"]["BeforeTool"][0]["hooks"][0]["name"] == name
    put(person.project / ".gemini/settings.json", {"hooksConfig": {"disabled": [name]}})
    assert [f.ok for f in person.findings(D)["off switch"]] == [False]
    person.install(D)
    renewed = {h["name"] for groups in plain(settings(person))["hooks"].values() for g in groups for h in g["hooks"]}
    assert len(renewed) == 1 and renewed != {name}
    assert "off switch" not in person.findings(D)


def test_hooks_that_were_switched_off_are_switched_on_and_off_again(person: Person) -> None:
    put(settings(person), THEIRS["switched off"])
    out = person.install(D)
    assert plain(settings(person))["hooksConfig"] == {"enabled": True, "disabled": ["x"]}
    assert any("becomes true" in note for note in out.notes)
    value = plain(settings(person))
    value["late"] = 1
    put(settings(person), value)
    person.uninstall(D)
    assert plain(settings(person)) == {"hooksConfig": {"enabled": False, "disabled": ["x"]}, "late": 1}


def test_a_switch_that_somebody_set_since_is_left_alone(person: Person) -> None:
    put(settings(person), THEIRS["switched off"])
    person.install(D)
    value = plain(settings(person))
    value["hooksConfig"]["enabled"] = "later"
    put(settings(person), value)
    person.uninstall(D)
    assert plain(settings(person))["hooksConfig"]["enabled"] == "later"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can write system places")
def test_system_scope_pins_hooks_on(person: Person) -> None:
    person.install(D, "system")
    path = person.root / "etc/gemini-cli/settings.json"
    assert plain(path)["hooksConfig"] == {"enabled": True}
    assert not extension(person).exists()
    put(person.project / ".gemini/settings.json", {"hooksConfig": {"enabled": False}})
    assert "off switch" not in person.findings(D)
    person.uninstall(D, "system")
    assert list(person.root.rglob("*")) == []


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"a": 1,\n}', ":1:8:"),
        (b"\xef\xbb\xbf{}", ":1:1:"),
        (b'{"hooks": null}', ":1:11:"),
        (b'{"hooksConfig": 1}', ":1:17:"),
    ],
)
def test_files_that_can_not_work_are_never_written(person: Person, data: bytes, place: str) -> None:
    put(settings(person), data)
    before = tree(person.base)
    with pytest.raises(HarnessError) as caught:
        person.install(D, "user") if b"Config" not in data else _pin(person, data)
    assert place in caught.value.message
    assert tree(person.base) == before


def _pin(person: Person, data: bytes) -> None:
    from guardhook.harness import hooksfile

    hooksfile.register("settings.json", data, {}, gemini.ours, {("hooksConfig", "enabled"): True})


def test_a_path_that_the_client_would_expand_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="expands variables"):
        Person(tmp_path / "a$HOME").install(D)


@pytest.mark.parametrize("where", [".env", ".gemini/.env"])
def test_loader_variables_in_a_repository_are_found(person: Person, where: str) -> None:
    person.install(D)
    put(person.project / where, "HARMLESS=1\n")
    assert "environment" not in person.findings(D)
    put(person.project / where, "A=1\nexport BASH_ENV=/x\n LD_PRELOAD = y\n")
    (finding,) = person.findings(D)["environment"]
    assert finding.ok is False and "BASH_ENV, LD_PRELOAD" in finding.detail


def test_a_project_that_shadows_a_system_entry_is_found(person: Person) -> None:
    request = person.request(D, "system")
    groups = {e: [gemini.group(person.machine, request, e, "guardhook-0001")] for e in gemini.EVENTS}
    put(person.root / "etc/gemini-cli/settings.json", {"hooks": groups})
    copy = json.loads(json.dumps(groups))
    put(person.project / ".gemini/settings.json", {"hooks": copy})
    assert "off switch" not in person.findings(D)
    copy["BeforeTool"][0]["hooks"][0]["timeout"] = 1
    put(person.project / ".gemini/settings.json", {"hooks": copy})
    assert [f.ok for f in person.findings(D)["off switch"]] == [False]


def test_entries_with_a_changed_environment_or_matcher_are_not_exact(person: Person) -> None:
    person.install(D)
    value = plain(settings(person))
    value["hooks"]["BeforeTool"][0]["hooks"][0]["env"]["PYTHONPATH"] = "/x"
    value["hooks"]["AfterTool"][0]["matcher"] = "never"
    put(settings(person), value)
    bad = {r.event for r in person.registrations(D) if not r.exact and r.file == str(settings(person))}
    assert bad == {"BeforeTool", "AfterTool"}


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", "/etc/gemini-cli/settings.json"),
        ("darwin", "/Library/Application Support/GeminiCli/settings.json"),
        ("win32", r"C:\ProgramData\gemini-cli\settings.json"),
    ],
)
def test_system_places(platform: str, expected: str) -> None:
    assert gemini.places(Machine(platform, "/h", "/w", "/w"), "system") == [expected]


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        (Ran(0, b'{"decision":"deny","reason":"r"}', b""), True),
        (Ran(2, b'{"decision":"deny"}', b"no"), True),
        (Ran(1, b'{"decision":"block"}', b""), True),
        (Ran(0, b"", b'{"decision":"deny"}'), True),
        (Ran(2, b"", b"no"), True),
        (Ran(101, b"", b"panic"), True),
        (Ran(2, b"", b" "), False),
        (Ran(2, b"{}", b"no"), False),
        (Ran(2, b"", b'{"level":"info"}'), False),
        (Ran(1, b"", b"Traceback"), False),
        (Ran(0, b'{"decision":"Deny"}', b""), False),
        (Ran(0, b"no", b""), False),
        (Ran(-9, b"", b"no"), False),
        (Ran(None, b'{"decision":"deny"}', b""), False),
    ],
)
def test_what_the_client_takes_as_a_block(ran: Ran, expected: bool) -> None:
    assert gemini.blocked("BeforeTool", ran) is expected
