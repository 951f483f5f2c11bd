"""The hook's command line, parsed by hand: argparse alone costs more than the whole hook."""

from __future__ import annotations


class Options:
    """What the hook was told by its registration."""

    __slots__ = ("allow_empty", "dialect", "directory", "enforce", "event", "no_input", "verdict_fd")

    def __init__(self) -> None:
        self.enforce = False
        self.event: str | None = None
        self.dialect: str | None = None
        self.directory: str | None = None
        self.no_input = False
        self.allow_empty = False
        self.verdict_fd: int | None = None


class OptionError(ValueError):
    """A flag that is not known or lacks its value. options holds what could be understood all the same."""

    def __init__(self, message: str, options: Options) -> None:
        super().__init__(message)
        self.options = options


def enforcing(argv: list[str]) -> bool:
    """Whether a command line asks to enforce, known before anything in it can be wrong.

    No arguments at all enforce: Claude Code before 2.1.139 drops the `args` of a registration.
    """
    return not argv or "--enforce" in argv


def parse(argv: list[str]) -> Options:
    """argv without the program's name; a leading `hook` is skipped. Raises OptionError, after reading all of it."""
    options = Options()
    options.enforce = enforcing(argv)
    wrong = ""
    words = argv[1:] if argv and argv[0] == "hook" else argv
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        found = ""
        if word == "--enforce":
            continue
        if word == "--no-input":
            options.no_input = True
        elif word == "--allow-empty":
            options.allow_empty = True
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            if name not in ("--dialect", "--dir", "--verdict-fd"):
                found = f"unknown option {name}"
            else:
                # A value that was left out must not take the next option with it.
                if not equals and index < len(words) and not words[index].startswith("--"):
                    value = words[index]
                    index += 1
                found = _set(options, name, value)
        elif word.startswith("-"):
            found = f"unknown option {word}"
        elif options.event is None:
            options.event = word
        else:
            found = "only one event can be named"
        wrong = wrong or found
    if wrong:
        raise OptionError(wrong, options)
    return options


def _set(options: Options, name: str, value: str) -> str:
    """Takes the value over; returns what is wrong with it, or nothing."""
    if not value:
        return f"{name} needs a value"
    if name == "--dialect":
        options.dialect = value
    elif name == "--dir":
        options.directory = value
    elif not (value.isascii() and value.isdigit()) or not 3 <= int(value) < 1024:
        return "--verdict-fd is not a file descriptor"
    else:
        options.verdict_fd = int(value)
    return ""
