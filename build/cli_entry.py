"""Entry of the single-file executable.

Unpacking is what costs at every start, so only what a hook needs is unpacked by PyInstaller. The other C extensions and the
policy files stay inside until somebody wants them, and the gate's modules come in one piece (see inside.py).
"""

import sys


def unpack(name: str, data: bytes) -> str:
    """Writes a file into this run's private folder, once, and says where."""
    import os

    path = os.path.join(sys._MEIPASS, name)  # type: ignore[attr-defined]
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with open(fd, "wb") as file:
        file.write(data)
    return path


class Extensions:
    """Finds the C extensions that are still inside the executable. Asked last, after every other finder."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        from guardhook_cold import NAMES

        if name not in NAMES:
            return None
        from importlib.machinery import ExtensionFileLoader
        from importlib.util import spec_from_file_location

        where = unpack(f"{name}.so", __import__(NAMES[name]).DATA)
        return spec_from_file_location(name, where, loader=ExtensionFileLoader(name, where))


class Gate:
    """`__import__` for the gate's modules, which all lie in one object. The import system takes longer over each than running it does."""

    def __init__(self) -> None:
        import builtins

        from guardhook_hot import MODULES

        self.modules: dict[str, tuple[bool, bytes]] = MODULES
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
        if package:  # what is not the gate's is PyInstaller's to find
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


def run() -> None:
    """Prepares what the command at hand needs, and hands over."""
    sys.meta_path.append(Extensions)
    if sys.argv[1:2] == ["hook"]:
        import gc

        gc.disable()  # a process of some milliseconds leaves no garbage worth looking for
        Gate()
    else:
        from guardhook_cold import POLICIES

        for name, data in POLICIES.items():
            unpack(name, data)
    from guardhook.__main__ import main

    main()


try:
    run()
except Exception as error:
    # Before the gate is loaded nothing else turns a fault into a block.
    if sys.argv[1:2] != ["hook"]:
        raise
    import posix

    if "--enforce" in sys.argv:
        text = f"guardhook: blocked: the executable is damaged ({type(error).__name__})\n"
        posix.write(2, text.encode("ascii", "replace"))
    posix._exit(2 if "--enforce" in sys.argv else 0)
