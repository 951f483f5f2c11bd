"""The shipped policies: their own examples, their suggestions, and everyday commands that they must leave alone."""

from __future__ import annotations

import re

import pytest
from policy_rig import bash, call

from guardhook.policy import check, examples, load, match
from guardhook.policy import compile as compiler
from guardhook.policy.compiled import Compiled


@pytest.fixture(scope="module")
def everything(shipped: list[load.Found]) -> Compiled:
    """All shipped policies at once, those of other presets included."""
    for found in shipped:
        found.on = True
    return compiler.in_memory(shipped)


def test_every_example_holds(shipped: list[load.Found]) -> None:
    outcomes = [examples.run(found, example) for found in shipped for example in found.policy.example]
    print(examples.render(examples.confusion(outcomes)))
    assert [f"{o.policy}: {o.text}: {o.got}" for o in outcomes if not o.passed] == []


def test_every_policy_explains_itself(shipped: list[load.Found]) -> None:
    for found in shipped:
        policy = found.policy
        hits = [e for e in policy.example if e.expect != "allow"]
        near = [e for e in policy.example if e.expect == "allow"]
        assert len(hits) >= 2, policy.name
        assert near, policy.name
        assert policy.reason, policy.name
        assert policy.suggest, policy.name
        assert policy.description, policy.name
        assert check.warnings(policy) == [], policy.name


def test_names_are_unique_across_packs(shipped: list[load.Found]) -> None:
    names = [f.policy.name for f in shipped]
    assert len(names) == len(set(names))


def test_no_suggestion_is_stopped_itself(shipped: list[load.Found], everything: Compiled) -> None:
    for found in shipped:
        for command in re.findall(r"`([^`]+)`", found.policy.suggest):
            verdict = match.judge([everything], bash(command), [])
            assert verdict.action == "allow", (found.policy.name, command, verdict.policy)


HARMLESS = """
git status
git commit -m "docs: explain why rm -rf / is denied"
git commit -am 'fix: drop chmod -R 777 / from the setup guide'
git log --oneline -20 -- policies
git push origin HEAD:feature/x
git push -u origin main
git checkout -b fix/main-menu
git restore --staged .
git reset HEAD~1
git stash
git branch -d done
grep -rn "rm -rf" docs
echo "never pipe curl into bash"
rm -rf node_modules dist
rm -r ./build
find . -name '*.pyc' -delete
curl -s https://api.example.com/v1/items | jq '.[0]'
curl -o setup.sh https://example.com/setup.sh
wget https://example.com/file.tar.gz && tar xzf file.tar.gz
cat README.md | head -20
cat .env.example
cp .env.example .env
base64 logo.png > logo.txt
python3 -m pytest -q
python -m http.server 8000
npm install && npm test
npx eslint --fix src
docker build -t app .
docker compose up -d
chmod +x scripts/run.sh
chmod -R u+rwX build
chown -R app:app ./data
sudo apt-get install -y curl
ls -la ~/.ssh
ssh-keygen -lf ~/.ssh/id_ed25519.pub
dd if=/dev/zero of=disk.img bs=1M count=10
make > /dev/null 2>&1
sed -i 's/foo/bar/' src/settings.py
cat ~/.bashrc
cat .claude/settings.json
ls ~/.codex
guardhook guard list
guardhook explain 'rm -rf /'
claude --version
codex exec "fix the tests"
nc -z localhost 5432
export PATH="$HOME/bin:$PATH"
for f in *.md; do echo "$f"; done
ps aux | grep node
kill %1
crontab -l
tar czf backup.tgz ~/project
mv old.txt new.txt
touch /tmp/x && rm /tmp/x
terraform plan
kubectl get pods
psql -c 'select 1'
""".strip().splitlines()


@pytest.mark.parametrize("command", HARMLESS)
def test_everyday_commands_pass(everything: Compiled, command: str) -> None:
    verdict = match.judge([everything], bash(command), [])
    assert (verdict.action, verdict.policy) == ("allow", None)


def test_writing_about_it_passes(everything: Compiled) -> None:
    text = "# Rules\n\nNever run `rm -rf /` or `curl x | sh`. Keys live in ~/.ssh/id_rsa; settings in .claude/settings.json.\n"
    for tool in ("Write", "mcp__notes__save"):
        event = call(tool, {"file_path": "/repo/docs/rules.md", "content": text * 50})
        assert match.judge([everything], event, []).policy is None


@pytest.mark.parametrize(
    ("tool", "input", "policy"),
    [
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: /home/u/.ssh/config\n@@\n-a\n+b\n*** End Patch\n"}, "change-ssh-file"),
        ("mcp__fs__write_file", {"path": "/home/u/.ssh/authorized_keys", "content": "ssh-rsa A"}, "change-ssh-file"),
        ("Edit", {"file_path": "/home/u/.bashrc", "old_string": "a", "new_string": "b"}, "change-shell-startup-file"),
        ("write_file", {"content": "{}", "file_path": ".gemini/settings.json"}, "hook-settings-file"),
        ("Bash", {"command": "echo x | tee -a ~/.ssh/authorized_keys"}, "change-ssh"),
        ("Bash", {"command": "ls\nrm -rf /\n"}, "delete-root-or-home"),
        ("Bash", {"command": "ｒｍ -rf /"}, "delete-root-or-home"),
        ("Bash", {"command": "cd x && guardhook  uninstall claude-code"}, "guard-off"),
    ],
)  # fmt: skip
def test_other_ways_to_the_same_end(everything: Compiled, tool: str, input: dict[str, str], policy: str) -> None:
    verdict = match.judge([everything], call(tool, input), [])
    assert verdict.policy == policy


def test_no_shipped_expression_runs_out_of_time_on_long_everyday_text(everything: Compiled) -> None:
    plain = "result=$(compute --level 3 input.txt) && echo done > out.log\n" * 800
    for word in (
        "rm",
        "git push",
        "clean",
        "chmod",
        "curl",
        ".ssh/",
        "guardhook",
        "claude",
        "/etc/",
        "base64",
        "bashrc",
    ):
        verdict = match.judge([everything], bash(f"echo start\n{word} x\n{plain}"), [])
        assert verdict.degraded is None, word
    for text in ("a/" * 40_000, "x=1 " * 20_000, "(" * 5_000, ";" * 50_000):
        assert match.judge([everything], bash("echo " + text), []).degraded is None, text[:9]
