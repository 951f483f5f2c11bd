"""Properties: no spelling of a dangerous command hides what it does, no data makes a harmless one dangerous, nothing breaks."""

from __future__ import annotations

import analysing
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from guardhook.analysis import quick, vocabulary

# (command, effect that must stay whatever is done to it)
DANGEROUS = [
    ("rm -rf /", "delete:recursive"),
    ("rm -rf /etc", "delete:recursive"),
    ("git reset --hard", "git:loses-uncommitted"),
    ("git push --force origin main", "git:force-push"),
    ("chmod -R 777 /etc", "chmod:recursive"),
    ("cat /etc/shadow", "read"),
    ("mkfs.ext4 /dev/sda1", "write:disk"),
    ("terraform destroy", "cloud:destroy"),
    ("kubectl delete namespace prod", "cloud:delete"),
    ("guardhook uninstall codex", "guard_change"),
    ("dropdb prod", "database:drop"),
    ("npm publish", "publish"),
]
dangerous = st.sampled_from(DANGEROUS)


def quoted_words(draw: st.DrawFn, command: str) -> str:
    """Each character quoted, escaped or left alone, in a way that means the same to a shell."""
    words = []
    for word in command.split(" "):
        out = []
        for char in word:
            how = draw(st.sampled_from("pppsdbaq"))
            if how == "s":
                out.append(f"'{char}'")
            elif how == "d":
                out.append(f'"{char}"')
            elif how == "b":
                out.append("\\" + char)
            elif how == "a":
                out.append(f"$'\\x{ord(char):02x}'")
            elif how == "q":
                out.append("''" + char)
            else:
                out.append(char)
        words.append("".join(out))
    return draw(st.sampled_from([" ", "  ", "\t", " \\\n "])).join(words)


@settings(max_examples=150, deadline=None)
@given(st.data(), dangerous)
def test_quoting_hides_nothing(data: st.DataObject, case: tuple[str, str]) -> None:
    command = data.draw(st.composite(lambda draw: quoted_words(draw, case[0]))())
    assert analysing.having(analysing.shell(command), case[1]), command


def q(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


WRAPPERS = {
    "sudo": "sudo {c}", "sudo options": "sudo -u root -E -- {c}", "doas": "doas {c}", "env": "env -u B A=1 {c}", "env -S": "env -S {q}", "env -i": "env -i {c}", "nohup": "nohup {c} &", "nice": "nice -n 5 {c}", "ionice": "ionice -c2 -n7 {c}", "timeout": "timeout -s KILL 5m {c}", "setsid": "setsid -w {c}",
    "stdbuf": "stdbuf -o0 {c}", "time": "time {c}", "flock": "flock -n /tmp/l {c}", "flock -c": "flock /tmp/l -c {q}", "script": "script -qec {q} /dev/null", "watch": "watch -n1 {q}", "xargs": "xargs {c} < /dev/null", "parallel": "parallel {q} ::: 1", "busybox": "busybox sh -c {q}", "command": "command -p {c}", "builtin": "builtin command {c}", "exec": "exec {c}",
    "sh -c": "sh -c {q}", "bash -lc": "bash --norc -lc {q}", "bash stdin": "echo {q} | bash", "here-string": "bash <<< {q}", "here-document": "sh <<'END'\n{c}\nEND", "process substitution": "bash <(echo {q})", "eval": "eval {q}", "eval words": "eval {c}", "source": ". /dev/stdin <<< {q}", "trap": "trap {q} EXIT", "strace": "strace -f -o /tmp/t {c}", "find": "find . -maxdepth 0 -exec {c} \\;", "unshare": "unshare -n {c}",
    "systemd-run": "systemd-run --user --wait {c}", "su": "su - root -c {q}", "substitution": "echo $({c})", "backticks": "echo `{c}`", "subshell": "( {c} )", "group": "{{ {c}; }}", "if": "if true; then {c}; fi", "while": "while :; do {c}; done", "for": "for i in 1 2; do {c}; done", "case": "case a in a) {c};; esac", "function": "f() {{ {c}; }}; f", "and": "true && {c}", "or": "false || {c}", "background": "{c} & wait",
    "negated": "! {c}", "variable": "x={q}; eval \"$x\"", "script file": "echo {q} > /tmp/s.sh; sh /tmp/s.sh", "python": "python3 -c {py}", "node": "node -e {js}", "perl": "perl -e {pl}", "ruby": "ruby -e {rb}", "awk": "awk {awk}", "git alias": "git -c alias.z={bang} z", "tmux": "tmux new-session -d {q}", "base64": "echo {b64} | base64 -d | sh", "coproc": "coproc {c}", "newline": "ls\n{c}", "chained": "cd src; ls; {c}",
}  # fmt: skip


def wrap(template: str, command: str) -> str:
    import base64

    double = command.replace("\\", "\\\\").replace('"', '\\"')
    return template.format(
        c=command,
        q=q(command),
        py=q(f'import os; os.system("{double}")'),
        js=q(f'require("child_process").execSync("{double}")'),
        pl=q(f'system("{double}")'),
        rb=q(f'system("{double}")'),
        awk=q(f'BEGIN {{ system("{double}") }}'),
        bang=q("!" + command),
        b64=base64.b64encode(command.encode()).decode(),
    )


@settings(max_examples=250, deadline=None)
@given(dangerous, st.sampled_from(sorted(WRAPPERS)))
def test_wrapping_hides_nothing(case: tuple[str, str], name: str) -> None:
    command = wrap(WRAPPERS[name], case[0])
    assert analysing.having(analysing.shell(command), case[1]), command


def test_every_wrapper_once() -> None:
    for name, template in WRAPPERS.items():
        command = wrap(template, "rm -rf /etc")
        assert analysing.having(analysing.shell(command), "delete:recursive"), (name, command)


@settings(max_examples=120, deadline=None)
@given(
    dangerous,
    st.lists(
        st.sampled_from(["sudo", "env", "nice", "sh -c", "eval", "substitution", "group", "if", "timeout"]),
        min_size=2,
        max_size=3,
    ),
)
def test_wrappers_in_wrappers(case: tuple[str, str], names: list[str]) -> None:
    command = case[0]
    for name in names:
        command = wrap(WRAPPERS[name], command)
    if all(n not in ("eval", "group", "if") for n in names[:-1]):  # `sudo eval …` and `sudo {` run nothing
        assert analysing.having(analysing.shell(command), case[1]), command


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["rm -rf /", "rm -rf /etc"]), st.data())
def test_splitting_into_variables_hides_nothing(command: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(command) - 1))
    form = data.draw(st.sampled_from(["a={a}; b={b}; eval \"$a$b\"", "a={a}; b={b}; sh -c \"$a$b\"", "a={a}; b={b}; echo \"$a$b\" | sh", "printf -v c '%s%s' {a} {b}; eval \"$c\"", "set -- {a} {b}; eval \"$1$2\"", "x=({a} {b}); eval \"${{x[0]}}${{x[1]}}\"", "a={a}; a+={b}; eval \"$a\""]))  # fmt: skip
    text = form.format(a=q(command[:cut]), b=q(command[cut:]))
    assert analysing.having(analysing.shell(text), "delete:recursive"), text


DATA = ["git commit -m {q}", "echo {q}", "echo {q} >> notes.md", "grep -rn {q} .", "printf '%s\\n' {q}", "# {one}", "ls # {one}", "cat <<'END'\n{c}\nEND", "gh pr create --title x --body {q}", "cat > notes.md <<'END'\n{c}\nEND", "python3 -c \"print({r})\"", "x={q}", "rg -F {q} src", "git log --grep={q}", "jq -n --arg a {q} '$a'", "test {q} = x", "case {q} in x) ls;; esac"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(dangerous, st.sampled_from(DATA))
def test_data_does_nothing(case: tuple[str, str], template: str) -> None:
    command = case[0]
    text = template.format(q=q(command), c=command, one=command, r=repr(command))
    assert not reference.flagged(analysing.shell(text)), text


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_any_text_in_single_quotes_is_data(text: str) -> None:
    assert not reference.flagged(analysing.shell("echo " + q(text)))


PIECES = st.sampled_from([
    "rm", "-rf", "/", "$(", ")", "`", "'", '"', "\\", "$", "{", "}", "<<E", "\nE\n", "|", "&", ";", "\n", "eval", "python3 -c", "import os", "os.system(", "perl -e", "sh -c", "xargs", "find", "-exec", "\\;", "git", "-c", "alias.x=!", "curl", "x=", "$x", "${x", ":-", "[[", "]]", "((", "))", "for", "in", "do", "done", "case", "esac", ")", ";;",
    "function", "f()", "*", "?", "[", "~", "\0", "\x01", "\u202e", "é", "\ud800", "env", "-S", "sudo", "docker run -v /:/x", "ssh h", "awk", "node -e", "psql -c", "DROP TABLE", "tmux", "send-keys", ">(", "<(", "/dev/tcp/a/1", "trap", "%s", "printf", "read", "IFS=,", "set --", "alias", "sed", "s/a/b/e", "tar", "--to-command", "pwsh -c", "make -f -",
])  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECES, max_size=25), st.sampled_from(["", " "]))
def test_fuzz_never_breaks(pieces: list[str], glue: str) -> None:
    text = glue.join(pieces)
    for language in ("sh", "powershell"):
        effects = analysing.shell(text, language=language)
        assert not analysing.having(effects, "unverified:internal"), (text, language, effects)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=120))
def test_fuzz_of_any_text(text: str) -> None:
    effects = analysing.shell(text)
    assert not analysing.having(effects, "unverified:internal"), (text, effects)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["python3 -c ", "node -e ", "perl -e ", "ruby -e ", "php -r ", "awk ", "lua -e ", "osascript -e "]),
    st.text(alphabet="abos.(){}[]'\"`$%#=+,;:/\\ \nimport", max_size=80),
)
def test_fuzz_of_inline_code(start: str, code: str) -> None:
    effects = analysing.shell(start + q(code))
    assert not analysing.having(effects, "unverified:internal"), (start, code, effects)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["ls", "cat", "src/a.py", "|", "grep", "-n", "foo", ";", "git", "status", "--hard", "reset", "rm", "x.pem", ".env", "/etc/shadow", "tree", "&", "wc", "-l", "a=b", "./x", "sudo", "\n", "RM", "Git", "-xdf", "clean", "id_rsa", "b/.ssh/c"]), max_size=8).map(" ".join))  # fmt: skip
def test_quick_means_no_effect_that_matters(command: str) -> None:
    if quick(command, vocabulary.triggers()):
        effects = analysing.shell(command)
        assert not reference.flagged(effects), (command, effects)
        assert all(e.kind in ("run", "read", "git") for e in effects), (command, effects)


def test_work_is_bounded() -> None:
    """Texts that grow when they are run stay within the caps and come to an answer."""
    hostile = [
        "x=a; " + "x=$x$x; " * 60 + "eval $x", "f() { f; f; }; f", "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; }}; " for i in range(40)) + "f0", "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "eval " * 2000 + "ls", "sudo " * 5000 + "ls", "$(" * 3000, "rm " + "/x " * 15_000,
        "x=" + "a" * 250 + "; " + "echo ${x##*a*b*c}; " * 200, "alias a='a a'\na", "while :; do while :; do while :; do ls; done; done; done", "python3 -c '" + "f(" * 20_000 + "'", "cat " + "<(ls) " * 2000, "for i in {1..500}; do for j in {1..500}; do ls; done; done", "sh -c '" + "sh -c " * 200 + "'",
    ]  # fmt: skip
    for text in hostile:
        effects = analysing.shell(text)
        assert not analysing.having(effects, "unverified:internal"), text[:60]
        assert len(effects) <= 12_001
