"""Files that decide whether and how a harness calls guardhook, and guardhook's own."""

from __future__ import annotations

from guardhook.analysis.glob import matches
from guardhook.analysis.nodes import CLASS, HOLE, QUERY, STAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.facts import Facts

_MARKS = frozenset((HOLE, STAR, QUERY, CLASS))

# folder -> names in it that hold hooks or switches ("" alone: everything below). Project and home folders alike.
_HARNESS = {
    ".claude": ("settings.json", "settings.local.json", "hooks", "managed-settings.json", "plugins"),
    ".codex": ("config.toml", "hooks.json", "requirements.toml", "hooks", "rules"),
    ".gemini": ("settings.json", "extensions", "hooks", ".env", "trustedFolders.json", "policies", "config"),
    ".qwen": ("settings.json", "extensions", "hooks", ".env"),
    ".cursor": ("hooks.json", "hooks", "cli.json", "permissions.json"),
    ".copilot": ("hooks", "config.json", "settings.json"),
    ".windsurf": ("hooks.json", "hooks"),
    ".codeium": ("windsurf/hooks.json", "hooks.json"),
    ".devin": ("hooks.v1.json",),
    ".agents": ("hooks.json", "plugins"),
    ".clinerules": ("hooks",),
    ".cline": ("hooks",),
    ".factory": ("settings.json", "hooks", "hooks.json", "config.json"),
    ".augment": ("settings.json", "hooks"),
    ".kimi": ("config.toml", "settings.json", "hooks"),
    ".openhands": ("hooks.json", "hooks"),
    ".vibe": ("hooks.toml", "config.toml"),
    ".qoder": ("settings.json", "settings.local.json", "hooks"),
    ".codebuddy": ("settings.json", "settings.local.json", "hooks"),
    ".letta": ("settings.json", "settings.local.json", "hooks"),
    ".continue": ("settings.json", "settings.local.json"),
    ".kiro": ("hooks", "agents", "settings"),
    ".amazonq": ("cli-agents", "hooks"),
    ".grok": ("settings.json", "user-settings.json", "hooks", "hooks.json", "config.toml"),
    ".hermes": ("config.yaml", "hooks"),
    ".goose": ("hooks", "plugins", "config.yaml"),
    ".opencode": ("plugin", "plugins", "opencode.json"),
    ".kilo": ("plugin", "plugins"),
    ".guardhook": ("",),
    ".github": ("hooks", "copilot"),
    "Cline": ("Hooks",),
    ".auggie": ("settings.json", "hooks"),
}  # fmt: skip
_FILES = frozenset(("crush.json", ".crush.json", "managed-settings.json", "managed-mcp.json", "opencode.json"))
_SYSTEM = (
    "/etc/claude-code", "/etc/codex", "/etc/gemini-cli", "/etc/cursor", "/etc/github-copilot", "/etc/guardhook", "/etc/windsurf", "/etc/qwen-code",
    "/etc/factory", "/Library/Application Support/ClaudeCode", "/Library/Application Support/GeminiCli", "/Library/Application Support/guardhook",
    "/Library/Application Support/Cursor", "/etc/opt/guardhook",
)  # fmt: skip
_OWN = ("guardhook", "guardhook-hook")


def guard_place(path: str, facts: Facts, hole: str) -> str:
    """`guard-own` for guardhook's files, `guard-hooks` for hook settings of a harness, `guard-folder` for a folder that holds them; else ""."""
    marked = not _MARKS.isdisjoint(path)
    for prefix in facts.guard_paths:
        if path == prefix or path.startswith(prefix + "/"):
            return "guard-own"
        if prefix.startswith(path + "/") and path.count("/") >= 3:
            return "guard-folder"
        if marked and _reaches(path, prefix):
            return "guard-own"
    lowered = path.lower() if not path.islower() else path
    if "guardhook" in lowered:
        own = _own(path)
        if own:
            return own
    for prefix in _SYSTEM:
        if path == prefix or path.startswith(prefix + "/"):
            return "guard-own" if "guardhook" in prefix else "guard-hooks"
    parts = path.split("/")
    last = parts[-1]
    if last in _FILES:
        return "guard-hooks"
    for index, part in enumerate(parts):
        names = _HARNESS.get(part)
        if names is None:
            if (
                part
                and part[0] == "."
                and not _MARKS.isdisjoint(part)
                and index + 1 < len(parts)
                and part.strip("." + STAR)
            ):
                names = next(
                    (
                        _HARNESS[w]
                        for w in (".claude", ".codex", ".gemini", ".cursor", ".guardhook")
                        if matches(part, w)
                    ),
                    None,
                )
            if names is None:
                continue
        found = _below(part, names, "/".join(parts[index + 1 :]))
        if found:
            return found
    return ""


def _reaches(pattern: str, place: str) -> bool:
    """Whether a pattern whose last part says something of the name can be the place: `~/.local/share/guard*`."""
    folder, _, last = pattern.rpartition("/")
    above, _, name = place.rpartition("/")
    return folder == above and len(last.strip(STAR + QUERY + HOLE)) > 2 and HOLE not in last and matches(last, name)


def _below(folder: str, names: tuple[str, ...], rest: str) -> str:
    kind = "guard-own" if folder == ".guardhook" else "guard-hooks"
    if names == ("",):
        return kind
    if not rest:
        return "" if folder == ".github" else "guard-folder"
    for name in names:
        if rest == name or rest.startswith(name + "/"):
            return kind
        if not _MARKS.isdisjoint(rest) and matches(rest, name) and folder != ".github":
            return kind
    return ""


def _own(path: str) -> str:
    """guardhook's folders and programs wherever they lie; a checkout of its source code is none of them."""
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part.lower() not in _OWN:
            if STAR in part and "guardhook" in part.lower():
                return "guard-own"  # a search for everything of that name
            continue
        before = parts[index - 1] if index else ""
        if part.lower() == "guardhook-hook" or before in (
            "share",
            ".config",
            "config",
            "etc",
            "Application Support",
            "bin",
            "opt",
            "lib",
            "libexec",
            "local",
        ):
            return "guard-own"
        if before == "site-packages" or before == "dist-packages":
            return "guard-own"
    return ""


def words() -> set[str]:
    """Pieces of paths of which one stands in every path that guard_place knows (`guardhook` apart)."""
    found = set(_HARNESS) | set(_FILES)
    for prefix in _SYSTEM:
        found.add(prefix.rpartition("/")[2])
    return {w.lower() for w in found}
