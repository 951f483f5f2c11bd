"""`guardhook serve`: what was recorded, over HTTP, for programs of this machine."""

from __future__ import annotations

import os
import socket

import click

from guardhook.commands import reading, rollout_shared
from guardhook.commands.folders import resolve
from guardhook.commands.output import emit, fail, say
from guardhook.policy import settings

PORT = 7467


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=reading.Number(least=0, most=65535), default=None, metavar="N", help=f"Port; 0 takes a free one.  [default: {PORT}]")  # fmt: skip
@click.option("--token-file", metavar="FILE", help="Bearer tokens that may ask: a line is TOKEN, or TENANT TOKEN.")
@click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN", help="A page that may ask, such as http://localhost:3000. May be given again.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name that the Host header may say.")  # fmt: skip
@click.option("--allow-remote", is_flag=True, help="Let other machines in, with an ADDRESS of this one and a token file.")  # fmt: skip
@reading.as_json
@reading.directory
def command(
    host: str,
    port: int | None,
    token_file: str | None,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    allow_remote: bool,
    as_json: bool,
    directory: str | None,
) -> None:
    """Serve traces, runs, a live stream and rollout replay on the loopback interface, until interrupted. See docs/serve.md."""
    folders = resolve(directory)
    given = rollout_shared.settings(folders, as_json)
    token_file = token_file or _text(given, "serve.token_file", as_json)
    port = port if port is not None else _port(given, as_json)
    from guardhook.views.http import context, server

    local = server.loopback(host)
    if not local and not allow_remote:
        fail(
            f"--host {host}: others could read everything that was recorded", as_json=as_json,
            hints=["leave --host out, or add --allow-remote and --token-file if that is what you want"],
        )  # fmt: skip
    if not local and token_file is None:
        fail(f"--host {host} needs --token-file: without one, whoever reaches the port reads everything", as_json=as_json)  # fmt: skip
    tokens = None
    if token_file is not None:
        try:
            tokens = context.read_tokens(os.path.expanduser(token_file))
        except context.TokenError as error:
            fail(str(error), as_json=as_json)
    wanted = [*origins, *_origins(given, as_json)]
    for origin in wanted:
        if not _is_origin(origin):
            fail(f"--allow-origin {origin!r}: an origin looks like http://localhost:3000, without anything behind", as_json=as_json)  # fmt: skip
    tenant = rollout_shared.tenant(given)
    made = context.Context(
        folders, tokens=tokens, hosts=hosts if local else (*hosts, host), origins=tuple(wanted), tenant=tenant,
        rollout_dir=rollout_shared.rollout_dir(given, as_json), options=rollout_shared.options(given, as_json, tenant=tenant),
        idle_seconds=reading.idle_seconds(folders), close_on="stop" if rollout_shared.turns(given, as_json) else "session_end",
    )  # fmt: skip
    try:
        listener = server.listen(host, port)
    except (OSError, socket.gaierror, UnicodeError) as error:
        fail(f"can't listen on {host} port {port}: {getattr(error, 'strerror', None) or error}", code=1, as_json=as_json)  # fmt: skip
    with listener:
        where = server.url(listener)
        server.run(made, listener, lambda: emit({"url": where}) if as_json else click.echo(f"listening on {where}"))
    say("stopped")


def _text(given: settings.Settings, name: str, as_json: bool) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        fail(f"{name} in config.toml must be a text", as_json=as_json)
    return value if value and value.strip() else None


def _port(given: settings.Settings, as_json: bool) -> int:
    value = given.get("serve.port", PORT)
    if type(value) is not int or not 0 <= value <= 65535:
        fail("serve.port in config.toml must be a whole number between 0 and 65535", as_json=as_json)
    return value


def _origins(given: settings.Settings, as_json: bool) -> list[str]:
    value = given.get("serve.allow_origins", [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        fail("serve.allow_origins in config.toml must be a list of texts", as_json=as_json)
    return value


def _is_origin(text: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        return bool(parts.scheme and parts.hostname) and text == f"{parts.scheme}://{parts.netloc}" and "@" not in text and (parts.port or 1) > 0  # fmt: skip
    except ValueError:
        return False
