"""Entry of the hook program where PyInstaller's bootloader starts it (see embed.py for the usual form)."""

from guardhook.gate.hook import main

main()
