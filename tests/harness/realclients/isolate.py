"""Starts a program in a network namespace that has loopback only, and hands the test a listening socket inside it.

Run as a script: `isolate.py CONTROL PORT BINDS PROGRAM…`. It leaves the machine's network (as root, else through a user namespace),
binds 127.0.0.1:PORT there, sends that socket over the control descriptor to the test process, and becomes the program. The model
server then runs in the test process while the client can reach nothing else. CONTROL `-` means that nobody wants a socket. BINDS is a
JSON list of [folder, place]: as root the program sees that folder in that place, and nobody else does.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def leave_network() -> None:
    """Moves this process into a fresh network namespace and switches loopback on. Raises OSError."""
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare: " + os.strerror(ctypes.get_errno()))
    if flags & CLONE_NEWUSER:
        # The same ids inside as outside, so that the client does not take itself for root.
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = bytearray(struct.pack("16sh22x", b"lo", 0))
        fcntl.ioctl(probe, SIOCGIFFLAGS, request)
        name, current = struct.unpack_from("16sh", request)
        fcntl.ioctl(probe, SIOCSIFFLAGS, bytearray(struct.pack("16sh22x", name, current | IFF_UP)))


def bind(pairs: list[list[str]]) -> None:
    """Gives this process its own view of the file system, with each folder in its place. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "unshare: " + os.strerror(ctypes.get_errno()))
    for folder, place in pairs:
        if libc.mount(folder.encode(), place.encode(), None, MS_BIND | MS_REC, None) != 0:
            raise OSError(ctypes.get_errno(), f"bind {folder} to {place}: " + os.strerror(ctypes.get_errno()))


def main(arguments: list[str]) -> None:
    control, port, binds, program = arguments[0], int(arguments[1]), json.loads(arguments[2]), arguments[3:]
    leave_network()
    if binds:
        bind(binds)
    if control != "-":
        hand_over_listener(int(control), port)
    os.execvp(program[0], program)


def hand_over_listener(control: int, port: int) -> None:
    """Listens on a port of this network and sends the socket to the other side of the control socket."""
    with socket.socket(fileno=control) as channel, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        channel.sendmsg(
            [b"ready"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]).tobytes())]
        )


def _write(path: str, text: str) -> None:
    with open(path, "w") as handle:
        handle.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
