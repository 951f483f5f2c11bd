"""The report's file: complete, bounded, and without a way for recorded words to become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from report_rig import HOSTILE, hooked, recorded, rows, run

from guardhook.commands import main
from guardhook.views.report import data, page


class Tags(HTMLParser):
    """All elements with their attributes, and the text outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, words: str) -> None:
        if not self._script:
            self.words.append(words)


def made(base: Path, tmp_path: Path, *words: str) -> str:
    out = tmp_path / "r.html"
    result = run(*words, "--dir", str(base), "-o", str(out), "--force")
    assert result.exit_code == 0, result.output
    return out.read_text(encoding="utf-8")


def test_recorded_words_stay_words(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    hooked(base)
    recorded(base, "a", 4)
    listed = json.loads(run_list(base))
    for trace in listed:
        text = made(base, tmp_path, trace)
        tags = Tags(text)
        assert [name for name, _ in tags.elements].count("script") == 2
        assert not [
            name for name, _ in tags.elements if name in ("img", "iframe", "object", "link", "base", "form", "svg")
        ]
        assert not [
            key for _, attributes in tags.elements for key in attributes if key.startswith("on") or key == "style"
        ]
        assert all(str(a.get("href", "#")).startswith("#") for _, a in tags.elements)
        assert "http://" not in text and "https://" not in text
        shown = "".join(tags.words)
        assert "window.pwned=1" in shown  # it is there to be read
        for char in "\x1b\u202e\u2028":
            assert char not in shown
        assert "<!--" not in text.replace("<!doctype", "")


def test_nothing_in_the_page_controls_a_terminal_that_it_is_printed_on(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    text = made(base, tmp_path, recorded(base, "a", 2, text="x\x85\x9b31m\x7f<b>\x1b[31m\u2028é"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]", text)
    assert "\\u0085\\u009b31m\\u007f\\u003cb>" in text and "é" in text  # told all the same


def run_list(base: Path) -> str:
    from click.testing import CliRunner

    from guardhook.commands import main

    result = CliRunner().invoke(main, ["list", "--dir", str(base), "--json"])
    return json.dumps([item["id"] for item in json.loads(result.output)["items"]])


def test_only_this_style_and_script_may_run(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    text = made(base, tmp_path, recorded(base, "a", 1))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none';") and "unsafe" not in policy[1]
    for kind, content in (
        ("style", re.search(r"<style>(.*?)</style>", text, re.S)),
        ("script", re.search(r"<script>(.*?)</script>", text, re.S)),
    ):
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]


def test_every_step_is_in_the_data_with_its_values(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    (found,) = rows(made(base, tmp_path, recorded(base, "a", 5)))
    assert [row[1] for row in found] == [1, 2, 3, 4, 5]
    assert found[1][3] == f"Bash {HOSTILE}" and json.loads(str(found[1][9])) == {"command": f"echo 2 {HOSTILE}"}
    assert found[2][4] == "error" and found[2][11] == f"failed {HOSTILE}"


def test_objections_are_told_before_the_timeline_and_lead_to_the_call(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    hooked(base)
    (name,) = json.loads(run_list(base))
    text = made(base, tmp_path, name)
    tags = Tags(text)
    links = [a for n, a in tags.elements if n == "a"]
    (found,) = rows(text)
    blocked = [row[1] for row in found if row[4] == "blocked"]
    assert [int(str(a["data-step"])) for a in links] == blocked and len(blocked) == 1
    words = "".join(tags.words)
    assert words.index("deletes") < words.index("Timeline")
    assert "You asked" in words and "Anything wrong" in words and "[harness]" in words
    assert "rm -rf /" in words
    assert [row[2] for row in found if row[0] == "e"] == ["user_prompt"]


def test_two_traces_and_their_differences(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    recorded(base, "a", 3)
    recorded(base, "b", 4, text="plain")
    text = made(base, tmp_path, "a", "b")
    assert [len(found) for found in rows(text)] == [3, 4]
    words = "".join(Tags(text).words)
    assert "only in B" in words and "They part at step" in words
    assert "identical" in "".join(Tags(made(base, tmp_path, "b", "b")).words)


def test_a_window_says_that_it_is_one(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    recorded(base, "a", 9, text="x")
    text = made(base, tmp_path, "a", "--from-step", "3", "--to-step", "5")
    assert [row[1] for row in rows(text)[0] if row[0] == "s"] == [3, 4, 5]
    assert "from 3 to step 5, of 9" in text


def test_more_steps_than_a_page_holds_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "gh"
    recorded(base, "a", 9, text="x")
    monkeypatch.setattr(data, "STEPS_MOST", 4)
    text = made(base, tmp_path, "a")
    assert len(rows(text)[0]) == 4 and "to step 4, of 9" in text


def test_long_values_are_cut_to_the_budget_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "gh"
    recorded(base, "a", 20, text="x", output='<"é\u2028' * 5_000)
    monkeypatch.setattr(data, "BUDGET_BYTES", 100_000)
    monkeypatch.setattr(page.data, "ceiling", lambda measures: data_ceiling(measures, 100_000))
    text = made(base, tmp_path, "a")
    block = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert block is not None and len(block[1].encode()) < 130_000
    assert all(row[14][1] > 20_000 for row in rows(text)[0])  # type: ignore[index, operator]
    assert "are cut" in text


data_ceiling = data.ceiling


@given(st.lists(st.lists(st.integers(1, 10_000), max_size=30), min_size=1, max_size=2), st.integers(10_000, 200_000))
def test_the_ceiling_keeps_all_values_in_the_budget(sizes: list[list[int]], budget: int) -> None:
    from array import array

    measures = [data.Measure(array("Q", one), {}, 0, [], 0, None) for one in sizes]
    most = data.ceiling(measures, budget)
    flat = [size for one in sizes for size in one]
    assert sum(min(size, most) for size in flat) <= budget
    if most < max(flat, default=0):  # no more could be given to everybody
        assert sum(min(size, most + 1) for size in flat) > budget


@given(st.text(max_size=300), st.integers(200, 400))
def test_cutting_measures_what_the_file_will_hold(text: str, most: int) -> None:
    kept, length = data.cut(text, most)
    assert text.startswith(kept)
    assert data.size(kept) <= most or kept == text[:1]
    assert (length is None) == (kept == text)


def test_a_file_that_is_there_is_kept_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "gh"
    recorded(base, "../../a b", 1, text="x")
    monkeypatch.chdir(tmp_path)
    result = run("../../a b", "--dir", str(base))
    assert result.exit_code == 0
    assert [p.name for p in tmp_path.glob("*.html")] == ["guardhook-.._.._a_b.html"]
    path = tmp_path / "guardhook-.._.._a_b.html"
    assert os.stat(path).st_mode & 0o777 == 0o600
    path.write_text("mine")
    result = run("../../a b", "--dir", str(base), "--json")
    assert result.exit_code == 2 and json.loads(result.output)["ok"] is False and path.read_text() == "mine"
    assert run("../../a b", "--dir", str(base), "--force", "--json").exit_code == 0
    assert path.read_text().startswith("<!doctype html>")


def test_wrong_use_is_told(tmp_path: Path) -> None:
    base = tmp_path / "gh"
    recorded(base, "a", 1, text="x")
    assert run("nope", "--dir", str(base)).exit_code == 1
    assert run("a", "--dir", str(base), "--from-step", "3", "--to-step", "2").exit_code == 2
    result = run("a", "--dir", str(base), "-o", str(tmp_path / "no" / "r.html"))
    assert result.exit_code == 1 and "can't be written" in result.output
    assert run("a", "--dir", str(base), "-o", "-").output.startswith("<!doctype html>")


def test_an_account_that_is_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked(tmp_path)
    monkeypatch.setattr("guardhook.commands.report.ACCOUNT_STEPS", 0)
    name = json.loads(CliRunner().invoke(main, ["list", "--json", "--dir", str(tmp_path)]).stdout)["items"][0]["id"]
    page = run(name, "--dir", str(tmp_path), "-o", "-").stdout
    assert "Account of the last answer" in page and "Left out: the trace has more than 0 steps." in page
