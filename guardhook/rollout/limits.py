"""Every bound of rollout files. The writer keeps to them, so that whatever is written can be loaded again. Sizes are bytes."""

from __future__ import annotations

LINE_BYTES = 16 << 20  # without the line feed, before anything is trimmed
EVENTS = 100_000
FILE_BYTES = 256 << 20  # line feeds included
DEPTH = 100  # brackets, the line's own and data's included
ELEMENTS = 100_000  # per line: commas outside of strings, and one
FILE_ELEMENTS = 10_000_000
STEP = 1_000_000
CALL_ID = 256
LEAF = 1 << 20  # a longer string of a payload is cut when a rollout is written

TEXT = 64 << 10  # texts handed on by simulate and fork
MESSAGE = 1 << 10  # strings quoted in a finding
FINDINGS = 1_000
TRACKED = 10_000  # call ids that are followed
TURN_CALLS = 100
