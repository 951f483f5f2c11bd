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
    """Finds the gate's modules in the one object that holds them all."""

    def __init__(self) -> None:
        from guardhook_hot import MODULES

        self.modules = MODULES

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name not in self.modules:
            return None
        from _frozen_importlib import ModuleSpec

        spec = ModuleSpec(name, self, is_package=self.modules[name][0])
        if spec.submodule_search_locations is not None:  # what is not the gate's is PyInstaller's to find
            spec.submodule_search_locations.append(f"{sys._MEIPASS}/{name.replace('.', '/')}")  # type: ignore[attr-defined]
        return spec

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: object) -> None:
        import marshal

        exec(marshal.loads(self.modules[module.__name__][1]), module.__dict__)  # type: ignore[attr-defined]


def run() -> None:
    """Prepares what the command at hand needs, and hands over."""
    sys.meta_path.append(Extensions)
    if sys.argv[1:2] == ["hook"]:
        import gc

        gc.disable()  # a process of some milliseconds leaves no garbage worth looking for
        sys.meta_path.insert(0, Gate())
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
