"""Brings compiled `regex` patterns back from their opcodes without importing the `regex` package.

`import regex` costs two interpreter starts, because its pattern compiler is Python; the matching engine is one C extension
that costs nearly nothing. What `regex.compile` produced is kept as the tuple that the package itself pickles, and handed
to the engine again. Malformed opcodes crash the engine: callers check a digest first (see guardhook.policy.compiled).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` costs more than the whole gate; type checkers know this name
if TYPE_CHECKING:
    from collections.abc import Callable

    class Pattern:
        """For type checkers: what a restored pattern can do."""

        def search(
            self,
            string: str,
            pos: int | None = None,
            endpos: int | None = None,
            flags: int = 0,
            partial: bool = False,
            concurrent: bool | None = None,
            timeout: float | None = None,
        ) -> MatchObject | None:
            raise TypeError

        def match(
            self,
            string: str,
            pos: int | None = None,
            endpos: int | None = None,
            flags: int = 0,
            partial: bool = False,
            concurrent: bool | None = None,
            timeout: float | None = None,
        ) -> MatchObject | None:
            raise TypeError

    class MatchObject:
        """For type checkers: what a match can tell."""

        def span(self, group: int = 0) -> tuple[int, int]:
            raise TypeError


_engine: object = None


def engine() -> object:
    """The C module `regex._regex`, loaded below an empty stand-in for its package when the package isn't there yet."""
    global _engine
    if _engine is None:
        if "regex" in sys.modules:
            from regex import _regex
        else:
            package = type(sys)("regex")
            package.__path__ = [p + "/regex" for p in sys.path if p]
            sys.modules["regex"] = package
            try:
                from regex import _regex
            finally:
                # A later `import regex` in this process must find the real package.
                sys.modules.pop("regex", None)
        _engine = _regex
    return _engine


def engine_identity() -> tuple[int, int, int]:
    """What opcodes depend on: size and time stamp of the engine's file, and the interpreter's version. Loads nothing.

    A frozen program carries its engine along and unpacks it anew, so there the time stamp says nothing and is left out.
    Raises ImportError where there is no engine.
    """
    import posix

    if "regex._regex" in sys.modules:
        places = [str(sys.modules["regex._regex"].__file__)]
    else:
        from _imp import extension_suffixes

        places = [f"{p}/regex/_regex{s}" for p in sys.path if p for s in extension_suffixes()]
    for place in places:
        try:
            info = posix.stat(place)
        except OSError:
            continue
        return (info.st_size, 0 if getattr(sys, "frozen", False) else info.st_mtime_ns, sys.hexversion)
    raise ImportError("the engine for regular expressions is missing; install guardhook again")


def restore(data: tuple[object, ...]) -> Pattern:
    """A pattern object from the tuple that `freeze` gave."""
    compile_: Callable[..., Pattern] = engine().compile  # type: ignore[attr-defined]
    return compile_(*data)


def freeze(pattern: object) -> tuple[object, ...]:
    """The marshallable tuple of a pattern made by `regex.compile`. Raises ValueError for patterns with named lists."""
    import marshal

    data: tuple[object, ...] = pattern._pickled_data  # type: ignore[attr-defined]
    try:
        marshal.dumps(data)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("patterns with named lists can't be kept") from None
    return data
