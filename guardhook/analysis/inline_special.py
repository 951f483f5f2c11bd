"""Ways of scripting languages to run programs and to bring files along that are no plain call of a known function."""

from __future__ import annotations

from guardhook.analysis.tokens import ID, OP, STR
from guardhook.analysis.values import Val

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guardhook.analysis.inline import Scanner
    from guardhook.analysis.inline_values import Folder


def named(scanner: Scanner, chain: str, args: list[tuple[int, int]]) -> None:
    """Libraries whose functions are programs: `shelljs.rm('-rf', …)`, `sh.rm(…)`; and classes that take one: `Deno.Command`."""
    words: list[Val] = []
    for argument in args:
        value = scanner.value(*argument)
        words.extend(value if isinstance(value, list) else [value])
    if chain.startswith("Deno."):
        begin = args[0][0] if args else 0
        words = words[:1] if chain == "Deno.Command" else []
        for k in range(begin, args[-1][1] if args else 0):
            if (
                scanner.toks[k][1] in ("args", "cmd")
                and scanner.toks[k + 1][1] == ":"
                and scanner.toks[k + 2][1] == "["
            ):
                value = scanner.value(k + 2, scanner.close(k + 2) + 1)
                words.extend(value if isinstance(value, list) else [value])
        scanner.argv(words, chain)
        return
    scanner.argv([Val(chain.rpartition(".")[2]), *words], chain)


def module_table(scanner: Scanner, j: int) -> int:
    """`sys.modules['os'].system(…)`: the place of its bracket, with the call performed; j when it is something else."""
    toks = scanner.toks
    end = scanner.close(j) if j < len(toks) and toks[j][1] == "[" else j
    if end == j or toks[j + 1][0] != STR:
        return j
    target, k = toks[j + 1][1], end + 1
    while k + 1 < len(toks) and toks[k][1] == "." and toks[k + 1][0] == ID:
        target += "." + toks[k + 1][1]
        k += 2
    if k < len(toks) and toks[k][1] == "(" and toks[k][0] == OP:
        action = scanner.action(target)
        if action:
            scanner.perform(action, target, scanner.split(k + 1, scanner.close(k)), j)
        return k + 1
    return j


_SQL = ("drop", "truncate", "delete", "update", "alter", "grant", "create", "copy")


def service(scanner: Folder, method: str, args: list[tuple[int, int]]) -> None:
    """`cursor.execute('DROP …')`, `client.delete_bucket(…)` of a cloud provider's library."""
    if method.startswith(("delete_", "terminate_")):
        if {"boto3", "botocore", "google", "azure"} & {a.partition(".")[0] for a in scanner.aliases.values()}:
            scanner.call.emit("cloud", ("delete", "inline"), detail=method)
        return
    text = scanner.text(scanner.value(*args[0])).text if args else ""
    if text.split(None, 1)[:1] and text.split(None, 1)[0].lower() in _SQL:
        from guardhook.analysis.programs.databases import statements

        statements(scanner.call.walker, text, scanner.call.name, None)
