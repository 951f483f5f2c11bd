"""Registration in Codex: which file, which shape, trust through the client's own server, and the way back."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from install_rig import Person, put, tree

from guardhook.harness import codex, codex_trust, record
from guardhook.harness.errors import HarnessError
from guardhook.harness.machine import Machine
from guardhook.harness.model import Ran

D = "codex"
CONFIG = b'# mine\nmodel = "gpt-5"  # good\n\n[features]\nfoo = true\n'
HOOKS = b'\n[[hooks.PreToolUse]]\nmatcher = "Bash"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "true"\n'

# A stand-in for `codex app-server` that keeps trust in config.toml as the client does, appended at the end.
SERVER = r"""#!{python}
import hashlib, json, os, re, sys, tomllib
home = os.environ["CODEX_HOME"]
log = open(os.path.join(home, "..", "server.log"), "a")
mode = {mode!r}
if sys.argv[1:] == ["--version"]:
    print("codex-cli 0.171.0"); sys.exit()
assert sys.argv[1:] == ["app-server"] and os.listdir(os.getcwd()) == []
config = os.path.join(home, "config.toml")
def snake(name): return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
def load(path):
    try: text = open(path).read()
    except OSError: return {{}}
    return json.loads(text) if path.endswith(".json") else tomllib.loads(text)
def hooks():
    state = load(config).get("hooks", {{}}).get("state", {{}})
    out = []
    for path in (os.path.join(home, "hooks.json"), config):
        for event, groups in load(path).get("hooks", {{}}).items():
            if event == "state": continue
            for g, group in enumerate(groups):
                for h, hook in enumerate(group["hooks"]):
                    key = f"{{path}}:{{snake(event)}}:{{g}}:{{h}}"
                    digest = "sha256:" + hashlib.sha256(repr((event, hook)).encode()).hexdigest()
                    held = state.get(key, {{}}).get("trusted_hash")
                    status = "untrusted" if held is None else "trusted" if held == digest else "modified"
                    out.append(dict(key=key, eventName=event[0].lower() + event[1:], command=hook["command"], sourcePath=path,
                                    currentHash=digest, trustStatus=status, enabled=mode != "disabled", isManaged=False))
    return out[:-1] if mode == "blind" else out
for line in sys.stdin:
    message = json.loads(line)
    print(message.get("method"), file=log, flush=True)
    if mode == "hangs": continue
    if mode == "dies": sys.exit(3)
    if "id" not in message: continue
    print("not json", flush=True)
    print(json.dumps({{"method": "configWarning", "params": {{}}}}), flush=True)
    result = {{}}
    if message["method"] == "hooks/list":
        result = {{"data": [{{"cwd": message["params"]["cwds"][0], "hooks": hooks()}}]}}
    if message["method"] == "config/batchWrite":
        if mode == "refuses":
            print(json.dumps({{"id": message["id"], "error": {{"message": "read-only"}}}}), flush=True); continue
        (edit,) = message["params"]["edits"]
        assert edit["keyPath"] == "hooks.state" and edit["mergeStrategy"] == "upsert"
        with open(config, "a") as file:
            for key, value in edit["value"].items():
                if mode != "forgets":
                    file.write(f"\n[hooks.state.{{json.dumps(key)}}]\ntrusted_hash = {{json.dumps(value['trusted_hash'])}}\n")
    print(json.dumps({{"id": message["id"], "result": result}}), flush=True)
"""


def with_client(person: Person, mode: str = "good") -> Person:
    path = put(person.base / "clients/codex", SERVER.format(python=sys.executable, mode=mode))
    path.chmod(0o755)
    return Person(person.base, env={"PATH": str(path.parent), "CODEX_HOME": str(person.home / ".codex")})


def config(person: Person) -> Path:
    return person.home / ".codex/config.toml"


def listing(person: Person) -> Path:
    return person.home / ".codex/hooks.json"


def commands(hooks: dict[str, Any]) -> dict[str, list[str]]:
    return {
        event: [h["command"] for g in groups for h in g["hooks"]] for event, groups in hooks.items() if event != "state"
    }


def test_shape_and_events(person: Person) -> None:
    person.install(D)
    value = json.loads(listing(person).read_text())
    assert set(value) == {"hooks"} and set(value["hooks"]) == set(codex.EVENTS)
    enforce, observe = person.launcher(D), person.launcher(D, "observe")
    for event, groups in value["hooks"].items():
        ((group,),) = (groups,)
        (handler,) = group["hooks"]
        judged = event in ("PreToolUse", "PermissionRequest")
        assert set(group) == {"hooks"} and set(handler) == {"type", "command", "timeout"}
        assert handler["command"] == f"{enforce if judged else observe} {event}"
        assert type(handler["timeout"]) is int and handler["timeout"] == (10 if judged else handler["timeout"])
    for event in ("Stop", "SessionEnd", "Interrupt", "SubagentStop"):
        assert value["hooks"][event][0]["hooks"][0]["timeout"] <= 3


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "hooks.json"),
        ({"config.toml": CONFIG}, "hooks.json"),
        ({"config.toml": CONFIG + HOOKS}, "config.toml"),
        ({"hooks.json": b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'}, "hooks.json"),
        ({"config.toml": CONFIG + HOOKS, "hooks.json": b'{"hooks": {}}'}, "config.toml"),
        ({"config.toml": b'hooks.Stop = [{hooks = [{type = "command", command = "x"}]}]\n'}, "hooks.json"),
    ],
)
def test_the_file_that_has_hooks_already_is_chosen(person: Person, files: dict[str, bytes], expected: str) -> None:
    for name, data in files.items():
        put(person.home / ".codex" / name, data)
    person.install(D)
    assert {Path(r.file).name for r in person.registrations(D)} == {expected}
    person.uninstall(D)
    assert {p.name: p.read_bytes() for p in (person.home / ".codex").glob("*")} == files


@pytest.mark.parametrize(
    "data",
    [CONFIG + HOOKS, (CONFIG + HOOKS).replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + CONFIG + HOOKS, CONFIG + HOOKS[:-1]],
)
def test_toml_is_appended_to_and_comes_back_byte_for_byte(person: Person, data: bytes) -> None:
    put(config(person), data)
    person.install(D)
    assert config(person).read_bytes().startswith(data)
    hooks = tomllib.loads(config(person).read_text("utf-8-sig"))["hooks"]
    assert commands(hooks)["PreToolUse"] == ["true", f"{person.launcher(D)} PreToolUse"]
    once = tree(person.base)
    assert set(person.install(D).files.values()) == {"unchanged"}
    assert tree(person.base) == once
    person.install(D, capture=True)
    person.uninstall(D)
    assert config(person).read_bytes() == data


def test_a_mode_switch_keeps_positions(person: Person) -> None:
    """Codex trusts by position: a hook of others behind ours must stay where it is."""
    put(config(person), CONFIG + HOOKS)
    person.install(D)
    with config(person).open("ab") as file:
        file.write(HOOKS.replace(b'"true"', b'"later"'))
    person.install(D, capture=True)
    hooks = tomllib.loads(config(person).read_text())["hooks"]
    assert commands(hooks)["PreToolUse"] == ["true", f"{person.launcher(D, 'observe')} PreToolUse", "later"]
    assert hooks["PreToolUse"][1]["hooks"][0]["timeout"] == 5


def test_toml_edited_by_others_loses_only_our_entries(person: Person) -> None:
    person = with_client(person)
    put(config(person), CONFIG + HOOKS)
    person.install(D)
    with config(person).open("ab") as file:
        file.write(b"# a late comment\n[late]\nx = 1\n")
    out = person.uninstall(D)
    assert config(person).read_bytes() == CONFIG + HOOKS + b"# a late comment\n[late]\nx = 1\n"
    assert any("edited by others" in note for note in out.notes)


def test_toml_without_record_or_marker_is_cleaned_too(person: Person) -> None:
    put(config(person), CONFIG + HOOKS)
    person.install(D)
    record.forget(person.folders, str(config(person)))
    text = config(person).read_bytes()
    marker = next(line for line in text.splitlines() if b"written by" in line)
    put(config(person), text.replace(marker + b"\n", b""))
    person.uninstall(D)
    value = tomllib.loads(config(person).read_text())
    assert value == tomllib.loads((CONFIG + HOOKS).decode())
    assert b"# mine" in config(person).read_bytes() and b"# good" in config(person).read_bytes()


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "toml": ("config.toml", b"a = 1\nb = = 2\n", "config.toml:2:5"),
    "toml encoding": ("config.toml", b"a = 1\nb = '\xff'\n", "config.toml:2"),
    "json": ("hooks.json", b'{"hooks": }', "hooks.json:1:11"),
    "json comment": ("hooks.json", b"// x\n{}", "hooks.json:1:1"),
    "json trailing comma": ("hooks.json", b'{"hooks": {},}', "hooks.json:1:13"),
    "json byte-order mark": ("hooks.json", b'\xef\xbb\xbf{"hooks": {}}', "hooks.json:1:1"),
    "json strange key": ("hooks.json", b'{"hooks": {}, "PreToolUse": []}', "hooks.json:1:15"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_codex_would_not_read_are_never_written(person: Person, name: str) -> None:
    file, data, place = BROKEN[name]
    put(person.home / ".codex" / file, data)
    before = tree(person.base)
    with pytest.raises(HarnessError) as caught:
        person.install(D)
    assert place in caught.value.message
    assert tree(person.base) == before


def test_the_client_trusts_our_hooks_and_only_ours(person: Person) -> None:
    person = with_client(person)
    put(listing(person), {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "theirs"}]}]}})
    put(config(person), CONFIG)
    out = person.install(D)
    assert [(f.check, f.ok) for f in out.findings] == [("trusted", True)]
    state = tomllib.loads(config(person).read_text())["hooks"]["state"]
    assert set(state) == {
        codex_trust.key(str(listing(person)), e, 1 if e == "PreToolUse" else 0, 0) for e in codex.EVENTS
    }
    log = (person.home / "server.log").read_text().split()
    assert log == ["initialize", "initialized", "hooks/list", "config/batchWrite", "hooks/list"]
    person.install(D)
    assert (person.home / "server.log").read_text().split()[len(log) :] == ["initialize", "initialized", "hooks/list"]
    person.uninstall(D)
    assert config(person).read_bytes() == CONFIG


@pytest.mark.parametrize(
    ("mode", "words"), [("forgets", "untrusted"), ("disabled", "disabled"), ("blind", "lists 10 of our 11")]
)
def test_trust_that_did_not_come_about_is_a_failure(person: Person, mode: str, words: str) -> None:
    person = with_client(person, mode)
    (finding,) = person.install(D).findings
    assert finding.ok is False and words in finding.detail


@pytest.mark.parametrize("mode", ["dies", "hangs", "refuses", "missing"])
def test_without_the_client_trust_is_computed_and_called_so(
    person: Person, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex_trust, "SECONDS", 1.0)
    person = with_client(person, mode) if mode != "missing" else person
    put(config(person), CONFIG)
    (finding,) = person.install(D).findings
    assert finding.ok is None and "computed, not confirmed" in finding.detail
    state = tomllib.loads(config(person).read_text())["hooks"]["state"]
    assert len(state) == len(codex.EVENTS)
    assert config(person).read_bytes().startswith(CONFIG)
    assert person.findings(D)["trusted"][0].ok is None
    once = config(person).read_bytes()
    person.install(D)
    assert config(person).read_bytes() == once
    person.install(D, capture=True)
    changed = tomllib.loads(config(person).read_text())["hooks"]["state"]
    assert changed.keys() == state.keys() and changed != state
    person.uninstall(D)
    assert config(person).read_bytes() == CONFIG


def test_the_computed_hash_is_the_one_that_the_client_gave() -> None:
    """Captured from 0.171.0: hooks/list of a plain handler with the default time limit."""
    command = "/usr/bin/python3 /opt/lab/tee_hook.py /home/dev/cap PreToolUse -- 'cat >/dev/null; exit 1'"
    handler = {
        "type": "command",
        "command": "/tmp/ghi-home/.local/share/guardhook/bin/codex.enforce PreToolUse",
        "timeout": 10,
    }
    assert codex_trust.computed_hash("PreToolUse", handler) == (
        "sha256:e3141993fe4e8824d24c23898b72ed763569b999c487bfba47e0c7bfd21a1f70"
    )
    ended = {
        "type": "command",
        "command": "/tmp/ghi-home/.local/share/guardhook/bin/codex.observe SessionEnd",
        "timeout": 2,
    }
    assert codex_trust.computed_hash("SessionEnd", ended) == (
        "sha256:3d3ab40c6d371fa1c13be30cbee2fba9b143b451d64a1be1344e45b4db545ef5"
    )
    assert codex_trust.computed_hash("PreToolUse", {"command": command}) != codex_trust.computed_hash(
        "Stop", {"command": command}
    )


def test_trust_of_hooks_behind_ours_moves_with_them(person: Person) -> None:
    person = with_client(person)
    person.install(D)
    value = json.loads(listing(person).read_text())
    value["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "later"}]})
    put(listing(person), value)
    mine = codex_trust.key(str(listing(person)), "PreToolUse", 1, 0)
    with config(person).open("a") as file:
        file.write(f'\n[hooks.state."{mine}"]\ntrusted_hash = "sha256:theirs"\nenabled = true\n')
    person.uninstall(D)
    moved = codex_trust.key(str(listing(person)), "PreToolUse", 0, 0)
    assert tomllib.loads(config(person).read_text())["hooks"]["state"] == {
        moved: {"trusted_hash": "sha256:theirs", "enabled": True}
    }


def test_project_and_user_scope_do_not_take_each_other_s_trust(person: Person) -> None:
    person = with_client(person)
    put(config(person), CONFIG)
    person.install(D)
    with_user = config(person).read_bytes()
    person.install(D, "project")  # the stand-in lists no project hooks: trust can't come about
    person.uninstall(D, "project")
    assert not (person.project / ".codex").exists()
    assert config(person).read_bytes() == with_user
    person.uninstall(D)
    assert tomllib.loads(config(person).read_text()) == tomllib.loads(CONFIG.decode())


def system(person: Person) -> Path:
    return person.root / "etc/codex/requirements.toml"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX paths")
@pytest.mark.parametrize("data", [None, b"", b"[features]\nother = 1 # c\n", b"allow_managed_hooks_only = true\n"])
def test_the_requirements_file_pins_hooks_on(person: Person, data: bytes | None) -> None:
    import os

    if os.geteuid() != 0:
        pytest.skip("only root can write system places")
    if data is not None:
        put(system(person), data)
    person.install(D, "system")
    value = tomllib.loads(system(person).read_text())
    assert value["features"]["hooks"] is True
    assert set(commands(value["hooks"])) == set(codex.EVENTS)
    once = system(person).read_bytes()
    person.install(D, "system")
    assert system(person).read_bytes() == once
    assert "off switch" not in person.findings(D)
    person.uninstall(D, "system")
    assert (system(person).read_bytes() if system(person).exists() else None) == data


def test_a_requirements_file_that_forbids_hooks_is_not_overruled(person: Person) -> None:
    put(system(person), b"[features]\nhooks = false\n")
    with pytest.raises(HarnessError, match="switches hooks off"):
        person.install(D, "system")


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("user", "[features]\nhooks = false\n"),
        ("project", "[features]\ncodex_hooks = false\n"),
        ("system", "allow_managed_hooks_only = true\n"),
    ],
)
def test_switches_are_found(person: Person, where: str, text: str) -> None:
    person.install(D)
    assert "off switch" not in person.findings(D)
    path = {"user": config(person), "project": person.project / ".codex/config.toml", "system": system(person)}[where]
    put(path, (path.read_text() if path.exists() else "") + text)
    assert [f.ok for f in person.findings(D)["off switch"]] == [False]


def test_paths_are_quoted_for_the_shell_and_read_back(tmp_path: Path) -> None:
    person = Person(tmp_path / "with space; and $dollar")
    person.install(D)
    found = person.registrations(D)
    assert all(r.exact for r in found) and {r.launcher for r in found} == {
        person.launcher(D),
        person.launcher(D, "observe"),
    }


@pytest.mark.parametrize("name", ["it's", "back\\slash", "new\nline"])
def test_paths_that_no_shell_quoting_covers_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HarnessError, match="quoted"):
        Person(tmp_path / name).install(D)


@pytest.mark.parametrize(
    "tail",
    [
        "; true",
        " || true",
        " PreToolUse; true",
        "\ntrue",
        " PreToolUse extra",
        " $(id)",
        " PreToolUse >/dev/null",
        " &",
    ],
)
def test_a_command_that_does_more_than_start_us_is_not_exact(person: Person, tail: str) -> None:
    person.install(D)
    value = json.loads(listing(person).read_text())
    value["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = person.launcher(D) + tail
    put(listing(person), value)
    assert [r.exact for r in person.registrations(D) if r.event == "PreToolUse"] == [False]


@pytest.mark.parametrize("extra", [{"async": True}, {"type": "prompt"}])
def test_a_handler_that_can_not_stop_anything_is_not_exact(person: Person, extra: dict[str, Any]) -> None:
    person.install(D)
    value = json.loads(listing(person).read_text())
    value["hooks"]["PreToolUse"][0]["hooks"][0].update(extra)
    value["hooks"]["PermissionRequest"][0]["matcher"] = "Bash"
    put(listing(person), value)
    assert {r.event for r in person.registrations(D) if not r.exact} == {"PreToolUse", "PermissionRequest"}


def test_windows_has_user_scope_only() -> None:
    machine = Machine("win32", r"C:\Users\p", r"D:\w", r"D:\w")
    assert codex.places(machine, "user")[0] == r"C:\Users\p\.codex\hooks.json"
    with pytest.raises(HarnessError):
        codex.places(machine, "system")


DENY = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}


@pytest.mark.parametrize(
    ("event", "ran", "expected"),
    [
        ("PreToolUse", Ran(2, b"", b"no\n"), True),
        ("PreToolUse", Ran(2, b"{}", b" \n"), False),
        ("PreToolUse", Ran(1, json.dumps({"hookSpecificOutput": DENY}).encode(), b""), False),
        ("PreToolUse", Ran(0, json.dumps({"hookSpecificOutput": DENY}).encode(), b""), True),
        ("PreToolUse", Ran(0, json.dumps({"hookSpecificOutput": DENY, "decision": "deny"}).encode(), b""), False),
        (
            "PreToolUse",
            Ran(0, json.dumps({"hookSpecificOutput": {**DENY, "permissionDecisionReason": " "}}).encode(), b""),
            False,
        ),
        ("PreToolUse", Ran(0, b'{"decision":"block","reason":"no"}', b""), True),
        ("PreToolUse", Ran(0, b"", b""), False),
        ("PreToolUse", Ran(None, b"", b"no"), False),
        ("PreToolUse", Ran(-9, b"", b"no"), False),
        ("PermissionRequest", Ran(0, b'{"hookSpecificOutput":{"decision":{"behavior":"deny"}}}', b""), True),
    ],
)
def test_what_the_client_takes_as_a_block(event: str, ran: Ran, expected: bool) -> None:
    assert codex.blocked(event, ran) is expected
