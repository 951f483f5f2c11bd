"""Who may talk to the receiver: programs of this machine, and no web page.

A page that a browser shows can send requests to 127.0.0.1, either openly (then it sends an Origin) or under a name of its own that it lets point there
(then the Host header gives it away).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

_LOCAL = ("localhost", "ip6-localhost", "host.docker.internal")


class Hosts:
    """names: further host names under which the receiver may be addressed. remote: it listens beyond loopback, and any address may be used for it."""

    def __init__(self, names: Sequence[str] = (), *, remote: bool = False) -> None:
        self._names = {*_LOCAL, *(name.lower().rstrip(".") for name in names)}
        self._remote = remote

    def refused(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Why a request with these headers is not taken; None when it is."""
        if origins:
            return "requests of web pages are not taken"
        if len(hosts) != 1:
            return "exactly one Host header is needed"
        name = _name(hosts[0])
        if name is None or not self._known(name):
            return "the Host header does not name this machine"
        return None

    def _known(self, name: str) -> bool:
        if name in self._names or name.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._remote or address.is_loopback


def _name(host: str) -> str | None:
    """The name or address in a Host header, in lower case; None when it is none."""
    host = host.strip().lower()
    if host.startswith("["):
        inner, close, port = host[1:].partition("]")
        return inner if close and (not port or _port(port)) else None
    name, colon, port = host.partition(":")
    return name.rstrip(".") if name and (not colon or _port(":" + port)) else None


def _port(text: str) -> bool:
    return text[:1] == ":" and text[1:].isascii() and (text[1:].isdigit() or text == ":")
