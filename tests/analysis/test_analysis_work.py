"""What a walk may cost: many of one thing end in `unverified`, and what was found before stays."""

from __future__ import annotations

import contextlib

import pytest
from analysing import having, shell

from guardhook.analysis import powershell
from guardhook.analysis.facts import Facts
from guardhook.analysis.nodes import Unparsable
from guardhook.analysis.values import State
from guardhook.analysis.walk import Walker
from guardhook.core.limits import COMMAND_WORK


@pytest.mark.parametrize(
    "command",
    [
        "rm " + "{a..z}{a..z} " * 15_000,
        "pushd a;" * 4_900,
        "cd a;" * 4_900,
        "cp " + " ".join(f"~/x{i}" for i in range(19_000)) + " /tmp",
        "curl " + " ".join(f"http://h{i}.example/" for i in range(12_000)),
        "timeout 1 " * 9_000 + "ls",
        "ls " + ">a " * 19_000,
        "python3 -c 'a';" * 4_900,
    ],
    ids=["braces", "pushd", "cd", "operands", "hosts", "wrappers", "redirections", "programs"],
)
def test_too_much_work_is_unverified(command: str) -> None:
    assert having(shell(command), "unverified:cap")


@pytest.mark.parametrize(
    "script",
    ["echo " + "> a " * 60_000, '"$(' * 80_000, "a(" * 120_000, "$x.y " * 50_000, '@" ' * 80_000, "(a)" * 80_000],
    ids=["redirections", "strings", "calls", "properties", "here-strings", "groups"],
)
def test_powershell_costs_no_more_than_it_may(script: str) -> None:
    begun = COMMAND_WORK
    walker = Walker(Facts())
    walker.text = script
    with contextlib.suppress(Unparsable):
        powershell.walk(walker, script, State("/home/user/project"))
    assert walker.steps <= 4_001
    assert walker.work >= -begun


def test_brackets_in_brackets_end_a_scan() -> None:
    for code in (
        "(" * 9_000 + "a" + ")" * 9_000,
        "(a+" * 9_000 + "b" + ")" * 9_000,
        "str(" * 9_000 + "os.environ" + ")" * 9_000,
    ):
        assert having(shell(f"python3 -c '{code}'"), "unverified:cap")


def test_what_was_found_before_the_cap_stays() -> None:
    found = shell("rm -rf ~; cp " + " ".join(f"~/x{i}" for i in range(19_000)) + " /tmp")
    assert having(found, "delete:recursive")
    assert having(found, "unverified:cap")


@pytest.mark.parametrize(
    "command",
    [
        "rm -f " + " ".join(f"build/f{i}.o" for i in range(800)),
        "git add " + " ".join(f"src/f{i}.py" for i in range(5_000)),
        "true;" * 4_900,
        "mkdir -p d/{a..z}/{a..z}",
    ],
    ids=["operands", "added", "commands", "braces"],
)
def test_much_work_is_not_too_much(command: str) -> None:
    assert not having(shell(command), "unverified")


def test_a_trap_runs_with_the_values_of_the_end() -> None:
    (gone,) = having(shell("""trap 'rm -rf "$d"' EXIT; d=$(mktemp -d); cp a "$d" """), "delete")
    assert "tmp" in gone.path_classes
    assert having(shell("""trap 'rm -rf "$d"' EXIT; d=/etc"""), "delete:recursive")[0].path == "/etc"


def test_a_copy_of_a_program_is_that_program() -> None:
    for command in ("cp /bin/rm /tmp/x; /tmp/x -rf ~", "ln -s /bin/rm x; ./x -rf ~", "hash -p /bin/rm x; x -rf ~"):
        assert having(shell(command), "delete:recursive"), command
    assert not having(shell("cp /bin/ls /tmp/x; /tmp/x -rf ~"), "delete")


def test_what_only_prints_public_parts_reads_no_secret() -> None:
    for command in ("openssl x509 -in cert.pem -noout -dates", "git grep -n id_rsa", "openssl rsa -in k.pem -pubout"):
        assert not [e for e in shell(command) if "secret" in e.path_classes], command
    for command in ("openssl rsa -in server.key -text", "git grep x -- .env"):
        assert [e for e in shell(command) if "secret" in e.path_classes], command
