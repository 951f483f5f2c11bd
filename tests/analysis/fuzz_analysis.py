"""A fuzz target for parser and walker: `python tests/analysis/fuzz_analysis.py [SECONDS] [SEED]`.

Corpus commands are cut, joined, wrapped and repeated. Nothing may be raised, `unverified:internal` may not come up, and no
command may cost more than a fixed time for its length. Ends with status 1 and the commands that did. `test_analysis_fuzz` runs a short round.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import analysing  # noqa: E402

_BITS = ("'", '"', "`", "$(", ")", "(", "{ ", "; }", "\\", "\n", "<<E\n", "\nE\n", "${x:-", "}", "$((", "))", "|", "&&", ";", ">", "<(", "*", "[", "]", "~", "\0", "\u202e", "é", "eval ", "sh -c ", "xargs ", "python3 -c ", "if ", "; fi", "case a in ", "esac", "f() {", "for i in ", "; do ", "; done", "x=", "$x", "=", " ")  # fmt: skip
# Processor seconds that any command may take on a slow machine, and those for each of its characters.
_FIXED, _EACH = 1.5, 60e-6


def mutated(rng: random.Random, commands: list[str]) -> str:
    text = rng.choice(commands)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(text) + 1)
        how = rng.randrange(6)
        if how == 0:
            text = text[:at] + rng.choice(_BITS) + text[at:]
        elif how == 1:
            text = text[:at] + text[at + rng.randrange(1, 6) :]
        elif how == 2:
            other = rng.choice(commands)
            text = text[:at] + other[rng.randrange(len(other) + 1) :]
        elif how == 3:
            text = text[:at] + rng.choice(_BITS) * rng.choice((2, 70, 3000)) + text[at:]
        elif how == 4:
            text = rng.choice(("$({})", "`{}`", "sh -c '{}'", "({})", 'eval "{}"', "<<E\n{}\nE")).replace("{}", text)
        else:
            text = (text + rng.choice((";", " ", "\n", "|"))) * rng.choice((2, 5, 50))
        text = text[:200_000]
    return text


def fuzz(seconds: float, seed: int, rounds: int = 1 << 62) -> list[str]:
    """What went wrong, one line each."""
    rng = random.Random(seed)
    commands = analysing.commands()
    wrong: list[str] = []
    end = time.monotonic() + seconds
    for number in range(rounds):
        if time.monotonic() > end or len(wrong) >= 20:
            break
        text = mutated(rng, commands)
        begun = time.process_time()
        try:
            effects = analysing.shell(text, language="powershell" if number % 16 == 0 else "sh")
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {text[:300]!r}")
            continue
        took = time.process_time() - begun
        if took > _FIXED + _EACH * len(text):
            wrong.append(f"{took:.2f} s for {len(text)} characters: {text[:300]!r}")
        wrong += [f"{e.detail}: {text[:300]!r}" for e in analysing.having(effects, "unverified:internal")]
    return wrong


if __name__ == "__main__":
    found = fuzz(float(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print("\n".join(found) or "nothing found")
    sys.exit(bool(found))
