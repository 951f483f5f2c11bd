"""`guardhook guard`: judge a step from a script, list the policies, edit the user's own."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

import click

from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.core.verdict import RANK

if TYPE_CHECKING:
    from guardhook.policy.model import Pattern

# Subcommands that live in modules of their own, imported only when called: name -> (module, one line of help).
_ELSEWHERE = {
    "check": ("guard_check", "Judge one step from a script."),
    "exception": ("guard_exception", "List, add and remove exceptions from policies."),
    "list": ("guard_list", "List all policies."),
    "test": ("guard_test", "Try the policies on a step, payload, command or recorded trace."),
}

_dir = click.option("--dir", "directory", metavar="DIR", help="One folder for configuration, policies and journal.")
_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        here = [n for n, (m, _) in _ELSEWHERE.items() if importlib.util.find_spec(f"guardhook.commands.{m}")]
        return sorted([*super().list_commands(ctx), *here])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = _ELSEWHERE.get(cmd_name)
        if row is None:
            return super().get_command(ctx, cmd_name)
        if importlib.util.find_spec(f"guardhook.commands.{row[0]}") is None:
            return None
        found: click.Command = importlib.import_module(f"guardhook.commands.{row[0]}").command
        return found


@click.group(name="guard", cls=_Group)
def command() -> None:
    """Judge a step from a script; list, test and edit policies."""


@command.command()
@click.option("--name", required=True, help="Name of the new policy, unique among yours.")
@click.option("--pattern", required=True, metavar="JSON", help="What it matches: a JSON object of match keys.")
@click.option("--unless", metavar="JSON", help="Where it stays out: a JSON object of match keys.")
@click.option("--action", required=True, help="allow, warn, require_review or deny.")
@click.option("--description", default="", help="What the policy is for.")
@click.option("--priority", default="", help="An integer; decides which of two equally strict matches is cited.")
@click.option("--reason", default="", help="What is told to the person and the agent.")
@click.option("--suggest", default="", help="What to do instead.")
@_dir
@_json
def add(
    name: str,
    pattern: str,
    unless: str | None,
    action: str,
    description: str,
    priority: str,
    reason: str,
    suggest: str,
    directory: str | None,
    as_json: bool,
) -> None:
    """Add a policy to your own layer."""
    from guardhook.policy import check, edit
    from guardhook.policy.model import Policy

    match = pattern_of(pattern, "--pattern", as_json)
    if action not in RANK:
        fail(f"--action {action!r}: use one of {', '.join(RANK)}", as_json=as_json)
    found = usable(match, "--pattern", as_json)
    exits = None if unless is None else usable(pattern_of(unless, "--unless", as_json), "--unless", as_json)
    try:
        rank = int(priority) if priority.strip() else 0
    except ValueError:
        fail(f"--priority {priority!r}: an integer is needed", as_json=as_json)
    policy = Policy(
        name=name,
        action=action,  # type: ignore[arg-type]
        match=found,
        unless=exits,
        description=description,
        priority=rank,
        reason=reason,
        suggest=suggest,
    )
    folders = resolve(directory)
    try:
        ident = edit.add(folders, policy)
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    warnings = check.warnings(policy)
    recompile(directory, warnings)
    if as_json:
        emit({"ok": True, "id": ident, "name": name, "warnings": warnings})
        return
    for line in warnings:
        say(f"warning: {line}")
    click.echo(ident)


def pattern_of(text: str, option: str, as_json: bool) -> dict[str, object]:
    """The JSON object that an option holds."""
    from guardhook.core.jsontext import PayloadError, loads_text

    try:
        value = loads_text(text)
    except PayloadError as error:
        said = str(error).removeprefix("the payload is ")
        fail(f"{option}: {said}", hints=['for example {"input_contains": "rm -rf"}'], as_json=as_json)
    if not isinstance(value, dict):
        fail(f"{option}: a JSON object is needed", hints=['for example {"input_contains": "rm -rf"}'], as_json=as_json)
    return value


def usable(value: dict[str, object], option: str, as_json: bool) -> Pattern:
    """The pattern as a model, refused where it is empty, misspelt or can never match."""
    import msgspec

    from guardhook.policy import check
    from guardhook.policy.model import Pattern

    known = Pattern.__struct_fields__
    for key, given in value.items():
        if key not in known:
            fail(f"{option}: unknown key {key!r}; the keys are {', '.join(known)}", as_json=as_json)
        texts = given if isinstance(given, list) else [given]
        if not all(isinstance(text, str) for text in texts):
            fail(f"{option}: {key}: text is needed", as_json=as_json)
    if not value:
        fail(f"{option}: an empty pattern matches nothing; name at least one of {', '.join(known)}", as_json=as_json)
    try:
        pattern = msgspec.convert(value, Pattern)
        check.pattern(pattern, "match")
    except msgspec.ValidationError as error:
        fail(f"{option}: {error}", as_json=as_json)
    except check.Problem as problem:
        fail(f"{option}: {problem.field.partition('.')[2] or problem.field}: {problem}", as_json=as_json)
    return pattern


@command.command()
@click.argument("policy")
@_dir
@_json
def remove(policy: str, directory: str | None, as_json: bool) -> None:
    """Remove one of your own policies, by id or name."""
    from guardhook.policy import edit

    try:
        name = edit.remove(resolve(directory), policy)
    except edit.EditError as error:
        fail(str(error), code=error.code, as_json=as_json)
    _done(directory, name, "removed", as_json)


@command.command()
@click.argument("policy")
@_dir
@_json
def enable(policy: str, directory: str | None, as_json: bool) -> None:
    """Switch a policy on.

    POLICY is its id or name, or the name of a whole shipped pack (cloud, databases, …).
    """
    _switch(policy, True, directory, as_json)


@command.command()
@click.argument("policy")
@_dir
@_json
def disable(policy: str, directory: str | None, as_json: bool) -> None:
    """Switch a policy off.

    POLICY is its id or name, or the name of a whole shipped pack (cloud, databases, …). Shipped policies are switched off for
    you alone.
    """
    _switch(policy, False, directory, as_json)


def _switch(policy: str, enabled: bool, directory: str | None, as_json: bool) -> None:
    from guardhook.policy import edit

    folders = resolve(directory)
    try:
        name = edit.switch(folders, policy, enabled)
    except edit.EditError as error:
        if error.code != 1:
            fail(str(error), code=error.code, as_json=as_json)
        try:
            name = ", ".join(edit.switch_pack(folders, policy, enabled))
        except edit.EditError:
            fail(str(error), code=error.code, as_json=as_json)
    _done(directory, name, "enabled" if enabled else "disabled", as_json)


def _done(directory: str | None, name: str, what: str, as_json: bool) -> None:
    warnings: list[str] = []
    recompile(directory, warnings)
    if as_json:
        emit({"ok": True, "name": name, "state": what, "warnings": warnings})
        return
    for line in warnings:
        say(f"warning: {line}")
    say(f"{what}: {name}")


def recompile(directory: str | None, warnings: list[str]) -> None:
    """Compiles what hooks read after a change, which spares the next one the work; warnings gets what is to be said of it.

    What goes wrong here, the hook finds out for itself.
    """
    from guardhook.journal.rules import freeze_rules
    from guardhook.policy import compile as compiler

    try:
        result = compiler.compile_main(resolve(directory), redact=freeze_rules)
        compiler.write(result)
    except (compiler.CompileError, OSError) as error:
        warnings.append(f"the policies could not be compiled yet: {error}")
        return
    if result.error is not None:
        warnings.append(f"every call is blocked until this is mended: {result.error}")
    elif not any(found.on for found in result.loaded.policies):
        warnings.append("no policy is enabled now, so an enforcing hook blocks every call")
