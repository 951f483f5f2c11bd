"""Which folders an installation of a scope uses: a user's own, or the one place that all users of a machine share."""

from __future__ import annotations

from guardhook.core.folders import Folders
from guardhook.harness.machine import Machine


def shared(machine: Machine) -> Folders:
    """The program of system scope. Only root writes below it; each user's hook records in that user's own folders."""
    system = machine.system("/etc/guardhook", "/Library/Application Support/guardhook", r"C:\ProgramData\guardhook")
    data = machine.system("/opt/guardhook", "/opt/guardhook", r"C:\Program Files\guardhook")
    return Folders(system, data, system)


def of_scope(machine: Machine, scope: str, own: Folders) -> Folders:
    """The folders whose launchers a scope registers."""
    return shared(machine) if scope == "system" else own
