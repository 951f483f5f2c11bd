"""Entry of the single-file executable for all commands but `hook`, which first_entry.py answers.

Unpacking is what costs at every start, so only what a hook needs is unpacked by PyInstaller. The other C extensions and the
policy files stay inside until somebody wants them.
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


class Codec:
    """Runs a codec's module from its code."""

    def __init__(self, code: bytes) -> None:
        self.code = code

    def create_module(self, spec: object) -> None:
        """The usual kind of module."""

    def exec_module(self, module: object) -> None:
        from marshal import loads

        exec(loads(self.code), module.__dict__)


class Packed:
    """Finds the C extensions and codecs that are still inside the executable. Asked last, after every other finder."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        if name.startswith("encodings."):
            from guardhook_cold_codecs import CODECS

            if name not in CODECS:
                return None
            from importlib.util import spec_from_loader

            return spec_from_loader(name, Codec(CODECS[name]))  # type: ignore[arg-type]
        from guardhook_cold import LIBRARIES, NAMES

        if name not in NAMES:
            return None
        from importlib.machinery import ExtensionFileLoader
        from importlib.util import spec_from_file_location

        for library, holder in LIBRARIES.get(name, ()):
            unpack(library, __import__(holder).DATA)  # the bootloader has named this folder to the dynamic linker
        where = unpack(f"{name}.so", __import__(NAMES[name]).DATA)
        return spec_from_file_location(name, where, loader=ExtensionFileLoader(name, where))


def run() -> None:
    """Prepares what the command at hand needs, and hands over."""
    sys.meta_path.append(Packed)
    from guardhook_cold import POLICIES

    for name, data in POLICIES.items():
        unpack(name, data)
    from guardhook.__main__ import main

    main()


run()
