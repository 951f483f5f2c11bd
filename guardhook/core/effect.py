"""Effects: what a tool call would do, in terms that policies can ask about. Every tool kind is lowered to these."""

from __future__ import annotations

EFFECTS = frozenset((
    "run", "read", "write", "delete", "chmod", "chown", "move", "connect", "run_fetched", "run_decoded", "run_dynamic",
    "git", "publish", "database", "cloud", "privilege", "persist", "process", "guard_change", "secret_flow",
    "lookalike", "invisible", "unverified",
))  # fmt: skip

PATH_CLASSES = frozenset((
    "root", "system", "home", "home_child", "project", "project_critical", "tmp", "device", "secret", "guard", "outside",
))  # fmt: skip


class Effect:
    """One thing that a call would do.

    kind is one of EFFECTS; flags are qualifiers of the kind (`recursive`, `force`, `append`, `upload`, `loses-commits`
    …) that a policy names as `kind:flag`. path_classes holds every class that the path can reach (a glob may reach
    several). span is the (start, end) character range in the call's text; via lists the wrappers that were peeled off.
    """

    __slots__ = ("argv", "detail", "flags", "git", "host", "kind", "lookalike", "path", "path_classes", "program", "span", "via")  # fmt: skip

    def __init__(
        self,
        kind: str,
        *,
        program: str = "",
        argv: tuple[str, ...] = (),
        path: str = "",
        path_classes: frozenset[str] = frozenset(),
        host: str = "",
        git: str = "",
        flags: frozenset[str] = frozenset(),
        detail: str = "",
        span: tuple[int, int] | None = None,
        via: tuple[str, ...] = (),
        lookalike: bool = False,
    ) -> None:
        self.kind = kind
        self.program = program  # base name of the program, folded
        self.argv = argv  # the words after it, as the program would receive them
        self.path = path  # absolute and normalised where the analyser could resolve it
        self.path_classes = path_classes
        self.host = host
        self.git = git  # git subcommand
        self.flags = flags
        self.detail = detail  # for a person: what is unknown, which source flows to which sink, …
        self.span = span
        self.via = via
        self.lookalike = lookalike  # found only after folding look-alike characters

    def __repr__(self) -> str:
        parts = [self.kind + "".join(":" + f for f in sorted(self.flags))]
        for name in ("program", "path", "host", "git", "detail"):
            value = getattr(self, name)
            if value:
                parts.append(f"{name}={value}")
        return f"<Effect {' '.join(parts)}>"
