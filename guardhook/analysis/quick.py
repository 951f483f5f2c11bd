"""The quick pass: plain commands whose words mean nothing to any policy are allowed without parsing."""

from __future__ import annotations

# The characters of plain words. Quotes, expansions, globs, redirections and all that is not ASCII are for the parser.
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=:,@%+- \n;|&")

# Commands of git that only look.
LOOKING = frozenset((
    "status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list", "describe", "shortlog", "cat-file", "name-rev", "for-each-ref", "show-ref",
    "merge-base", "count-objects", "check-ignore", "check-attr", "var", "version", "help", "whatchanged", "range-diff", "cherry", "diff-tree", "diff-index", "diff-files", "show-branch", "fsck", "--version",
))  # fmt: skip
# Names of keys that end in no `.ending`; those that do are triggers.
_KEY_ENDINGS = ("_rsa", "_ed25519", "_ecdsa")


def quick(command: str, triggers: frozenset[str]) -> bool:
    """True when the command provably has no effect that one of the triggers stands for.

    Every word, every piece of a word split on `/ = : @ ,`, every file ending and every leading dot name is looked up,
    lower case. A first word with a path or an assignment in it is never quick: scripts are judged by content.
    """
    if not _SAFE.issuperset(command):
        return False
    lowered = command.lower() if not command.islower() else command
    if "guardhook" in lowered:
        return False
    if ";" in lowered or "|" in lowered or "&" in lowered:
        lowered = _separated(lowered)
        if not lowered:
            return False
    if not triggers.isdisjoint(lowered.split()):
        return False
    for line in lowered.split("\n"):
        first = line.split(None, 2)[:2]
        if first and first[0] == "git" and len(first) > 1 and first[1] not in LOOKING:
            return False  # an alias, most likely
        if first and ("/" in first[0] or "=" in first[0] or "." in first[0] or first[0][0] == "%"):
            return False
    split = lowered.replace("/", " ").replace("=", " ").replace(":", " ").replace("@", " ").replace(",", " ").split()
    if not triggers.isdisjoint(split):
        return False
    for piece in set(split):
        if piece.endswith(_KEY_ENDINGS):
            return False
        if piece[:4] == ".env" and len(piece) > 4:
            return False  # `.env-staging`, `.env_old`
        if "." in piece:
            if piece[0] == "." and "." + piece[1:].partition(".")[0] in triggers:
                return False
            if "." + piece.rpartition(".")[2] in triggers:
                return False
        if piece[0] == "-" and piece[:2] != "--" and len(piece) > 2 and not triggers.isdisjoint(_letters(piece)):
            return False
    return True


def _separated(text: str) -> str:
    """The simple commands, one a line; "" where an operator lacks a command beside it, which the parser must tell."""
    lines = []
    for line in text.split("\n"):
        parts = line.replace("&&", "|").replace("||", "|").replace("&", ";").split(";")
        for number, part in enumerate(parts):
            if "|" in part or len(parts) > 1:
                pieces = part.split("|")
                last = number == len(parts) - 1 and number > 0 and len(pieces) == 1  # `a;` and `a &` may end a line
                if not last and not all(piece.strip() for piece in pieces):
                    return ""
                lines.extend(pieces)
            else:
                lines.append(part)
    return "\n".join(lines)


def _letters(cluster: str) -> list[str]:
    """`-xzf` as `-x -z -f`."""
    return ["-" + c for c in cluster[1:9]]
