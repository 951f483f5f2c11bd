"""What the single-file executable runs before anything else: the gate, if it is a hook call that is to be answered.

This comes before PyInstaller's own start, which sets up its importers and reads the index of some hundred modules that a hook
doesn't need. The gate's modules stand in MODULES, which inside.py puts in front of this text; its C extensions have been
unpacked and lie on sys.path.
"""

import sys

MODULES: dict[str, tuple[bool, bytes]]  # name -> (whether it is a package, marshalled code)


class Gate:
    """`__import__` for the gate's modules, which all lie in one object. The import system takes longer over each than running it does."""

    def __init__(self) -> None:
        import builtins

        self.modules = MODULES  # noqa: F821
        self.usual = builtins.__import__
        builtins.__import__ = self.take  # type: ignore[assignment]

    def take(
        self, name: str, space: object = None, local: object = None, wanted: object = (), level: int = 0
    ) -> object:
        if level == 0 and name in self.modules:
            module = sys.modules.get(name) or self.load(name)
            if wanted:
                for part in wanted:  # type: ignore[attr-defined]
                    whole = f"{name}.{part}"
                    if whole in self.modules and whole not in sys.modules:
                        self.load(whole)
            if wanted or "." not in name:
                return module
        return self.usual(name, space, local, wanted, level)  # type: ignore[arg-type]

    def load(self, name: str) -> object:
        from marshal import loads

        package, code = self.modules[name]
        parent = name.rpartition(".")[0]
        if parent and parent not in sys.modules:
            self.load(parent)
        module = type(sys)(name)
        module.__package__ = name if package else parent
        if package:  # nothing else is found there
            module.__path__ = [f"{sys._MEIPASS}/{name.replace('.', '/')}"]  # type: ignore[attr-defined]
        sys.modules[name] = module
        try:
            exec(loads(code), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
        if parent:
            setattr(sys.modules[parent], name.rpartition(".")[2], module)
        return module


def first() -> None:
    """Ends the process if this is a hook call."""
    if sys.argv[1:2] != ["hook"] or sys.argv[2:] in (["--help"], ["-h"]):
        return
    try:
        import gc

        gc.disable()  # a process of some milliseconds leaves no garbage worth looking for
        sys.frozen = True  # type: ignore[attr-defined]
        Gate()
        from guardhook.gate.hook import main

        main(sys.argv[1:])
    except BaseException as error:
        # Before the gate is loaded nothing else turns a fault into a block.
        import posix

        if "--enforce" in sys.argv:
            text = f"guardhook: blocked: the executable is damaged ({type(error).__name__})\n"
            posix.write(2, text.encode("ascii", "replace"))
        posix._exit(2 if "--enforce" in sys.argv else 0)


first()
