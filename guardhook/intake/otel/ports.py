"""Sockets to listen on, and who has the port when it is taken."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket

_LISTENING = "0A"
_BACKLOG = 512


class CannotBind(Exception):
    """A socket that can't be had. hint says what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def resolve(host: str) -> tuple[str, bool]:
    """The address to bind to, and whether it is on loopback. Raises CannotBind."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else "it is no host name"
        raise CannotBind(f"--host {host!r} can't be resolved: {told}", "use an address such as 127.0.0.1") from None
    addresses = [str(row[4][0]) for row in found]
    local = [ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses]
    return addresses[0], all(local)


def listen(address: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises CannotBind."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise cannot(error, address, port) from None
    return listener


def cannot(error: OSError, address: str, port: int) -> CannotBind:
    """The reason why a port can't be had, with the process that has it where the system tells."""
    where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    if error.errno == errno.EADDRINUSE:
        return CannotBind(f"{where} is in use{_by(port)}", "stop that program, or choose another port")
    if error.errno == errno.EACCES:
        return CannotBind(f"{where}: not allowed", "ports below 1024 are for the administrator; choose another one")
    return CannotBind(f"{where}: {error.strerror or error}", "choose another address or port")


def _by(port: int) -> str:
    found = holder(port)
    return "" if found is None else f" by process {found[0]} ({found[1]})"


def holder(port: int) -> tuple[int, str] | None:
    """Process id and command of whoever listens on a port of this machine; None where the system does not tell (Linux tells of one's own processes)."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port)}
    if not inodes:
        return None
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and _has(name, inodes):
                return int(name), _command(name)
    return None


def _listening(port: int) -> set[str]:
    wanted = f"{port:04X}"
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError, IndexError), open(table, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                words = line.split()
                if words[1].rpartition(":")[2] == wanted and words[3] == _LISTENING:
                    found.add(words[9])
    return found


def _has(process: str, inodes: set[str]) -> bool:
    folder = f"/proc/{process}/fd"
    with contextlib.suppress(OSError):
        for fd in os.listdir(folder):
            with contextlib.suppress(OSError):
                if os.readlink(f"{folder}/{fd}") in inodes:
                    return True
    return False


def _command(process: str) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
        words = file.read(4096).split(b"\0")
        text = " ".join(word.decode("utf-8", "replace") for word in words if word)
        if text:
            return text if len(text) <= 80 else text[:79] + "…"
    return "unknown"
