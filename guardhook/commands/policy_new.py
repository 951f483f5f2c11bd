"""`guardhook policy new`: a commented policy file of the user layer to start from, which passes its own examples.

JSON: `{"ok": true, "name": str, "file": path, "examples": int}`.
"""

from __future__ import annotations

import contextlib
import os
import re
import time

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)

TEMPLATE = """\
# A policy of your own. It is on as soon as this file is saved; `guardhook policy test {path}` runs its examples,
# `guardhook explain 'COMMAND'` shows what a command would do, in the words that policies use.

[[policy]]
name = "{name}"
description = "Deployments are started by people."
# allow, warn, require_review (a person is asked, or the call is denied where nobody can be) or deny. The strictest match wins.
action = "require_review"
# Told to the person and to the agent: why, in plain words, and what to do instead.
reason = "A deployment reaches production."
suggest = "Show the command and let the user run it."

# Every key must hold, and all keys about an effect must hold on the same one. Lists mean any of.
#   program, argument, path, path_class, host, git, effect    what the call would do, however it is spelt
#   tool, harness, agent, event                               who asks, with which tool
#   input_contains, input_regex, name_contains, name_regex    the text of the call
[policy.match]
effect = "run"
program = "example-deploy"

# Where the policy stays out. Remove the table if there is no such case.
[policy.unless]
argument = "--dry-run"

# What it must match …
[[policy.example]]
command = "example-deploy --to production"
expect = "require_review"

[[policy.example]]
command = "cd app && sudo example-deploy"
expect = "require_review"

# … and what comes close and must pass.
[[policy.example]]
command = "example-deploy --dry-run --to production"
expect = "allow"
"""


@click.command("new")
@click.argument("name")
@click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(name: str, directory: str | None, as_json: bool) -> None:
    """Write a policy file to start from into your own layer."""
    from guardhook.policy import examples, layers, load

    if not _NAME.fullmatch(name):
        fail(f"{name!r}: a name is made of lower-case letters, digits, - and _, at most 64 of them", as_json=as_json)
    folders = resolve(directory)
    loaded = load.load(folders, time.time())
    taken = next((f for f in loaded.policies if f.layer == "user" and f.policy.name == name), None)
    if taken is not None:
        fail(f"you have a policy {name!r} already: {taken.path}:{taken.line}", as_json=as_json)
    path = f"{folders.user_policies}/{name}.toml"
    text = TEMPLATE.format(name=name, path=_quoted(path)).encode("utf-8", "surrogateescape")
    _write(path, text, as_json)
    fresh = layers.Loaded()
    load.read_file(fresh, path, "user", fresh.errors.append)
    outcomes = [examples.run(found, example) for found in fresh.policies for example in found.policy.example]
    failed = [o for o in outcomes if not o.passed]
    if fresh.errors or failed or not outcomes:
        problem = str(fresh.errors[0]) if fresh.errors else f"its examples fail ({len(failed)} of {len(outcomes)})"
        fail(f"{path} was written, but {problem}", code=1, as_json=as_json)
    if as_json:
        emit({"ok": True, "name": name, "file": path, "examples": len(outcomes)})
        return
    say(f"written: edit it, then run `guardhook policy test {path}`")
    click.echo(path)


def _quoted(path: str) -> str:
    """The path for a comment: on one line, whatever it holds."""
    from guardhook.core.jsontext import printable

    return printable(path, 500)


def _write(path: str, text: bytes, as_json: bool) -> None:
    """Makes the file; one that is there already stays as it is."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        fail(f"{path} exists already and stays as it is; choose another name", as_json=as_json)
    except OSError as error:
        fail(f"{error.filename or path}: can't be written: {error.strerror}", code=1, as_json=as_json)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(text)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        fail(f"{path}: can't be written: {error.strerror}", code=1, as_json=as_json)
