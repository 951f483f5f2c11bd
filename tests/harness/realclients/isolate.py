"""Starts a program in a network namespace that has loopback only, and hands the test a listening socket inside it.

Run as a script: `isolate.py CONTROL PORT PROGRAM…`. It leaves the machine's network (as root, else through a user namespace), binds
127.0.0.1:PORT there, sends that socket over the control descriptor to the test process, and becomes the program.
The model server then runs in the test process while the client can reach nothing else.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
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


def main(arguments: list[str]) -> None:
    control, port, program = int(arguments[0]), int(arguments[1]), arguments[2:]
    leave_network()
    with socket.socket(fileno=control) as channel, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        channel.sendmsg(
            [b"ready"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]).tobytes())]
        )
    os.execvp(program[0], program)


def _write(path: str, text: str) -> None:
    with open(path, "w") as handle:
        handle.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
