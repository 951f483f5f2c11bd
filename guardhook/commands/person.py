"""Is it a person who asks, at a terminal? For the few commands that an agent must never run: `pause` and `trust`.

Three things are looked at: every ancestor process (name, executable, script, and the environment it was started with), our own
environment, and a phrase that changes each time and has to be typed on the controlling terminal, not on stdin. None of it stops
a process of the same user that takes enough trouble (a pseudo-terminal, a detached process, a cleaned environment): this
resists accident and casual tampering. What does stop an agent is the gate, which denies these commands to it.
"""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from guardhook.core.jsontext import printable

SECONDS = 120.0  # to type the phrase
_DEEPEST = 128

# Programs that are, or start, an agent, by the base name of their executable, first word, process name or script.
HARNESSES = frozenset((
    "claude", "claude-code", "codex", "codex-cli", "gemini", "gemini-cli", "qwen", "qwen-code", "cursor", "cursor-agent", "copilot",
    "copilot-cli", "github-copilot-cli", "cline", "windsurf", "devin", "droid", "factory", "amp", "aider", "goose", "goosed", "crush",
    "opencode", "kilo", "kilocode", "kiro", "kiro-cli", "q", "auggie", "cn", "grok", "vibe", "kimi", "letta", "openhands", "qoder",
    "qodercli", "codebuddy", "antigravity", "hermes", "trae", "warp", "zed", "zed-editor", "code", "code-insiders", "code-server", "codium",
    "vscodium", "roo", "pi",
))  # fmt: skip
# Packages of the same, as they stand in the path of a script that an interpreter runs.
PACKAGES = frozenset((
    "claude-code", "@anthropic-ai", "@openai", "gemini-cli", "qwen-code", "@qwen-code", "cline", "opencode-ai", "@sourcegraph",
    "@charmland", "@github", "copilot", "aider", "openhands", "auggie", "@augmentcode", "kilocode", "@continuedev", "letta-code",
))  # fmt: skip
_INTERPRETERS = (
    "node",
    "bun",
    "deno",
    "python",
    "pypy",
    "ruby",
    "electron",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "uv",
    "uvx",
    "pipx",
    "tsx",
    "java",
)
_SCRIPT_WORDS = 8

# Variables that a harness sets for what it starts: whole names, and beginnings of names.
MARKS = frozenset((
    "CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_ENV_FILE", "AI_AGENT", "CURSOR_AGENT", "OPENCODE", "CLINE_ACTIVE",
    "GEMINI_CLI", "QWEN_CODE", "COPILOT_CLI", "COPILOT_AGENT", "FACTORY_PROJECT_DIR", "AUGMENT_AGENT", "GOOSE_TERMINAL", "AGENT_SESSION_ID",
    "REPLIT_AGENT", "TRAE_AI_SHELL_ID", "VSCODE_AGENT", "KIRO_SESSION_ID", "DEVIN_PROJECT_DIR", "QODER_PROJECT_DIR", "CODEBUDDY_PROJECT_DIR",
))  # fmt: skip
PREFIXES = (
    "CLAUDE_CODE_",
    "GEMINI_",
    "CODEX_",
    "CURSOR_",
    "QWEN_",
    "COPILOT_AGENT_",
    "CLINE_",
    "OPENCODE_",
    "OPENHANDS_",
    "WINDSURF_",
)
# … and names with these beginnings that people keep in their shell's start file, agent or not.
SETTINGS = (
    "_API_KEY", "_API_BASE", "_HOME", "_MODEL", "_BASE_URL", "_CONFIG_DIR", "_TOKEN", "_OAUTH_TOKEN", "_USE_BEDROCK", "_USE_VERTEX",
    "_USE_FOUNDRY", "_OUTPUT_TOKENS", "_SKIP_BEDROCK_AUTH", "_SKIP_VERTEX_AUTH", "_NONESSENTIAL_TRAFFIC", "_ENABLE_TELEMETRY",
    "_DISABLE_TELEMETRY", "_TELEMETRY_ENABLED", "_SETTINGS_PATH", "_FONT", "_SIZE", "_THEME", "_COLOR",
)  # fmt: skip
TERMINALS = {
    "vscode": "the terminal of an editor with agents in it",
    "zed": "the terminal of an editor with agents in it",
}


@dataclass(frozen=True)
class Process:
    """One ancestor, as far as the system tells."""

    pid: int
    name: str = ""
    exe: str = ""
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class NotAPerson(Exception):
    """An agent asks, or nobody can tell. The message says what was seen."""


def ensure(env: Mapping[str, str] | None = None, above: Sequence[Process] | None = None) -> None:
    """Raises NotAPerson when the environment or an ancestor is a known harness, or when the ancestors can't be seen."""
    mark = marked(os.environ if env is None else env)
    if mark:
        raise NotAPerson(f"{mark} is set, as a coding agent does for what it runs")
    for process in ancestors() if above is None else above:
        found = harness(process)
        if found:
            raise NotAPerson(f"this runs below {printable(found, 60)} (process {process.pid})")
        mark = marked(process.env)
        if mark:
            raise NotAPerson(f"process {process.pid}, which this runs below, has {mark} set, as a coding agent does")


def marked(env: Mapping[str, str]) -> str:
    """The name of a variable that only a harness sets; "" when there is none."""
    for name in sorted(env):
        if name in MARKS or (name.startswith(PREFIXES) and not name.endswith(SETTINGS)):
            return printable(name, 80)
    program = env.get("TERM_PROGRAM", "").lower()
    return f"TERM_PROGRAM={program}" if program in TERMINALS else ""


def harness(process: Process) -> str:
    """The harness that a process is; "" when it is none."""
    names = [process.name, _base(process.exe), _base(process.words[0]) if process.words else ""]
    if process.exe.rpartition("/")[0].endswith("/versions"):
        names.append(process.exe.split("/")[-3])  # …/claude/versions/2.1.332
    for name in names:
        if _plain(name) in HARNESSES:
            return name
    if not any(_plain(name).startswith(_INTERPRETERS) for name in names if name):
        return ""
    for word in process.words[1 : 1 + _SCRIPT_WORDS]:
        parts = word.split("/")
        last = _plain(parts[-1].partition("@")[0] if len(parts) > 1 or not word.startswith("@") else word)
        if last in HARNESSES and not word.startswith("-"):
            return word
        if any(part.lower().partition("@")[0] in PACKAGES or part.lower() in PACKAGES for part in parts):
            return word
    return ""


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(" (deleted)")


def _plain(name: str) -> str:
    name = name.lower().lstrip("-")
    for ending in (".exe", ".js", ".mjs", ".cjs", ".py", ".cmd"):
        name = name.removesuffix(ending)
    return name


def ancestors(proc: str = "/proc", pid: int | None = None) -> list[Process]:
    """The processes above this one (or above pid), nearest first. Raises NotAPerson when the system doesn't tell."""
    if not os.path.exists(f"{proc}/self/stat") and not os.path.exists(f"{proc}/{pid}/stat"):
        return _ancestors_by_ps()
    at = _parent(proc, os.getpid() if pid is None else pid)
    if at is None:
        raise NotAPerson("the processes above this one can't be seen")
    found: list[Process] = []
    while at and len(found) < _DEEPEST:
        found.append(_process(proc, at))
        # Other users' processes may be hidden; what is above those can't be told, and the walk ends.
        at = _parent(proc, at)
    return found


def _parent(proc: str, pid: int) -> int | None:
    text = _slurp(f"{proc}/{pid}/stat")
    fields = text[text.rfind(b")") + 1 :].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None


def _process(proc: str, pid: int) -> Process:
    try:
        exe = os.readlink(f"{proc}/{pid}/exe")
    except OSError:
        exe = ""
    env = {}
    for entry in _texts(_slurp(f"{proc}/{pid}/environ")):
        name, _, env_value = entry.partition("=")
        env[name] = env_value
    name = _slurp(f"{proc}/{pid}/comm").decode("utf-8", "replace").strip()
    return Process(pid, name, exe, tuple(_texts(_slurp(f"{proc}/{pid}/cmdline"))), env)


def _texts(data: bytes) -> list[str]:
    return [part.decode("utf-8", "replace") for part in data.split(b"\0") if part]


def _slurp(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(1 << 20)
    except OSError:
        return b""


def _ancestors_by_ps() -> list[Process]:
    """Where there is no /proc (macOS): names and command lines, without environments."""
    try:
        done = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,command="], capture_output=True, timeout=10, check=True, env={"LC_ALL": "C"}
        )
    except (OSError, subprocess.SubprocessError):
        raise NotAPerson("the processes above this one can't be seen") from None
    table: dict[int, tuple[int, tuple[str, ...]]] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        fields = line.split()
        if len(fields) > 2 and fields[0].isdigit() and fields[1].isdigit():
            table[int(fields[0])] = (int(fields[1]), tuple(fields[2:]))
    found: list[Process] = []
    at = table.get(os.getpid(), (0, ()))[0]
    while at in table and len(found) < _DEEPEST:
        parent, words = table[at]
        found.append(Process(at, "", words[0], words))
        at = parent
    if not found:
        raise NotAPerson("the processes above this one can't be seen")
    return found


# --- the terminal ------------------------------------------------------------------------------------------------


def phrase_for(what: str) -> str:
    """What has to be typed: words that say what is done, and a number that can't be known beforehand."""
    return f"{what} {secrets.randbelow(9000) + 1000}"


def confirm(lines: Iterable[str], phrase: str, seconds: float = SECONDS) -> bool:
    """Shows lines on the controlling terminal and asks for the phrase there. Raises NotAPerson when there is no terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise NotAPerson("there is no terminal to ask on") from None
    import termios  # not on Windows, where there is no /dev/tty either

    try:
        if os.tcgetpgrp(terminal) != os.getpgrp():
            raise NotAPerson("this does not run in the foreground of its terminal")
        for line in lines:
            _write(terminal, line + "\n")
        # Typed ahead is not typed in answer to this.
        termios.tcflush(terminal, termios.TCIFLUSH)
        _write(terminal, f"Type `{phrase}` to go on, anything else to leave everything as it is: ")
        return _line(terminal, time.monotonic() + seconds).strip() == phrase
    except (OSError, termios.error):
        raise NotAPerson("the terminal can't be used") from None
    finally:
        os.close(terminal)


def _write(terminal: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(terminal, data) :]


def _line(terminal: int, deadline: float) -> str:
    typed = b""
    while b"\n" not in typed and len(typed) < 256:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            _write(terminal, "\nNobody answered in time.\n")
            return ""
        chunk = os.read(terminal, 256)
        if not chunk:
            return ""
        typed += chunk
    return typed.decode("utf-8", "replace")
