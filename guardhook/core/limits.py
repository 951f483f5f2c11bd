"""Every cap and deadline in one place. Sizes are bytes, times are seconds, unless the name says otherwise.

Verdicts depend on work (sizes, depths, counts), never on the clock, so that a slow machine does not change an
answer. The times only see to it that a block is out before the harness gives up on us.
"""

# What is accepted on stdin.
PAYLOAD_ENFORCING = 8 * 1024 * 1024
PAYLOAD_OBSERVING = 32 * 1024 * 1024
JSON_DEPTH = 64
JSON_ELEMENTS = 100_000

# The time ladder. Each step must be shorter than the next one: stdin < watchdog < launcher < registered timeout.
STDIN_ENFORCING = 2.0
WATCHDOG_ENFORCING = 3.0
LAUNCHER_ENFORCING = 4.0
REGISTERED_ENFORCING = 10.0
STDIN_OBSERVING = 0.3
TOTAL_OBSERVING = 0.7

JOURNAL_LOCK_ENFORCING = 0.150
JOURNAL_LOCK_OBSERVING = 0.050

# One journal line. Longer strings of a payload are cut and the cut is recorded.
RECORD_BYTES = 1024 * 1024
# A redacted key block that never ends swallows at most this much.
REDACT_OPEN_BLOCK = 8 * 1024

# Regular expressions: processor time for one event, and the windows that a long text is searched in.
REGEX_SECONDS = 0.040
REGEX_SECONDS_PROJECT = 0.010
REGEX_WINDOW = 64 * 1024
REGEX_WINDOW_OVERLAP = 4 * 1024

# Policies that a repository brings along.
PROJECT_FILES = 64
PROJECT_FILE_BYTES = 64 * 1024

# A stale compiled policy file is rebuilt by the full program within this time, else the hook blocks.
RECOMPILE_SECONDS = 1.5
# Processor time that the policies of a project may take to compile; beyond it they are ignored until they change.
COMPILE_SECONDS_PROJECT = 1.0

# Shell analysis (see guardhook.analysis).
COMMAND_BYTES = 256 * 1024
COMMAND_WORDS = 20_000
COMMAND_NESTING = 64
COMMAND_SIMPLE = 5_000
# What walking a command may cost, in units of about 5 microseconds: places that are looked at, effects, expansions.
COMMAND_WORK = 8_000
SCRIPT_BYTES = 256 * 1024

# What is told to a person or an agent: one short line.
REASON_CHARS = 600
SPAN_CHARS = 120
