"""Programs that write to whole devices, file systems and storage pools."""

from __future__ import annotations

from guardhook.analysis.call import Call, options
from guardhook.analysis.nodes import HOLE
from guardhook.analysis.values import UNKNOWN, Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.programs.index import Handler

# program -> (subcommands or options that lose data; empty: any call with a device), flag
_VERBS: dict[str, tuple[str, ...]] = {
    "diskutil": ("eraseDisk", "eraseVolume", "partitionDisk", "zeroDisk", "secureErase", "reformat", "randomDisk", "deleteContainer", "deleteVolume"),
    "zpool": ("destroy", "labelclear", "remove", "detach", "create"), "zfs": ("destroy", "rollback"), "btrfs": ("delete", "del", "remove"),
    "cryptsetup": ("luksFormat", "erase", "luksErase", "luksKillSlot", "luksRemoveKey", "reencrypt"), "nvme": ("format", "sanitize", "write-zeroes", "delete-ns"),
    "mdadm": ("--zero-superblock", "--stop", "-S", "--remove", "--create", "-C"), "hdparm": ("--security-erase", "--security-erase-enhanced", "--trim-sector-ranges", "--write-sector"),
    "dmsetup": ("remove", "remove_all", "wipe_table"), "rbd": ("rm", "remove", "purge"), "ceph": ("purge", "rm", "delete", "destroy", "zap"), "gluster": ("delete", "remove-brick", "stop"),
    "hdiutil": ("erase", "eraseall"), "parted": ("rm", "mklabel", "mkpart", "mktable", "resizepart"), "sgdisk": ("-Z", "-z", "-o", "-d", "--zap", "--zap-all", "--clear", "--delete"),
    "badblocks": ("-w", "-n"), "asr": ("restore",), "tune2fs": (), "lvreduce": (), "lvremove": (), "vgremove": (), "pvremove": (), "blkdiscard": (), "wipefs": ("-a", "--all", "-o", "--offset", "-af", "-fa"),
}  # fmt: skip
_ALWAYS = frozenset(("mkfs", "mke2fs", "newfs", "newfs_apfs", "mkswap", "blkdiscard", "lvremove", "vgremove", "pvremove", "lvreduce", "fdisk", "sfdisk", "gdisk", "cfdisk", "sg_format", "format"))  # fmt: skip
_READING = frozenset(
    (
        "-l",
        "--list",
        "-d",
        "--dump",
        "--help",
        "-h",
        "-V",
        "--version",
        "--info",
        "-n",
        "--dry-run",
        "-p",
        "--print",
        "print",
        "list",
        "status",
    )
)


def _disk(call: Call) -> Val:
    name = call.name
    texts = call.texts()
    always = name in _ALWAYS or name.startswith(("mkfs.", "newfs_"))
    verbs = _VERBS.get(name, ())
    hit = next((t for t in texts if t in verbs or t.partition("=")[0] in verbs), "")
    if (not hit and not (always and not (set(texts) & _READING))) or not texts:
        return UNKNOWN
    devices = [a for a in call.args if a.text.startswith("/dev/") or HOLE in a.text]
    flags = {"disk", "loses-data", name if len(name) < 16 else "disk"}
    if not devices:
        image = [a for a in options(call.args).rest if a.text.endswith((".img", ".raw", ".qcow2", ".iso"))]
        if always and image:
            for value in image:
                call.change("write", value, ("format",))
            return UNKNOWN
        call.emit("write", flags, path_classes=frozenset(("device",)), path="", detail=f"{name} {hit}".strip())
        return UNKNOWN
    for value in devices:
        place = call.place(value)
        call.emit(
            "write",
            flags | place.flags,
            path=place.path,
            path_classes=place.classes | {"device"},
            detail=f"{name} {hit}".strip(),
        )
    return UNKNOWN


def _umount(call: Call) -> Val:
    if "-a" in call.texts():
        call.emit("process", ("umount-all",), detail="unmounts everything")
    return UNKNOWN


def _mount(call: Call) -> Val:
    texts = call.texts()
    if len([t for t in texts if not t.startswith("-")]) >= 2:
        call.emit("privilege", ("mount",), detail=" ".join(call.argv)[:80])
        operands = options(call.args, short="otTLU", long=("--options", "--types")).rest
        if len(operands) >= 2 and any(name.startswith("guard") for name in call.place(operands[1]).classes):
            call.change("move", operands[1], ("mount",))  # what lay there is out of sight
        if len(operands) >= 2 and (
            "--bind" in texts or "bind" in " ".join(texts) or "--rbind" in texts or "-B" in texts
        ):
            # From here on the target shows the source.
            target = call.place(operands[1])
            call.walker.mounts.append((call.place(operands[0]).text, target.text))
            if target.classes & {"guard", "system", "root", "home"}:
                call.change("write", operands[1], ("mount",))
    return UNKNOWN


def _lvm(call: Call) -> Val:
    """`lvm lvremove …`: the other programs under one name."""
    return call.run(list(call.args), "lvm") if call.args else UNKNOWN


HANDLERS: dict[str, Handler] = {"": _disk, "lvm": _lvm, "umount": _umount, "mount": _mount}
