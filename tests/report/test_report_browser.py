"""The report in a real browser, which is Chromium where there is one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_rig import HOSTILE, hooked, recorded, run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: reports were not looked at in a browser"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield found
        found.close()


class Opened:
    """A page with all that it said and asked for."""

    def __init__(self, browser: Any, path: Path, **more: Any) -> None:
        self.page = browser.new_context(**more).new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".row")

    def clean(self, path: Path) -> bool:
        return self.said == [] and self.asked == [path.as_uri()] and self.page.evaluate("window.pwned") is None


def told(page: Any, words: str) -> None:
    """Waits until the count of rows says this."""
    from playwright.sync_api import expect

    expect(page.locator("#found")).to_have_text(words)


def report(tmp_path: Path, *names: str) -> Path:
    out = tmp_path / "r.html"
    result = run(*names, "--dir", str(tmp_path / "gh"), "-o", str(out), "--force")
    assert result.exit_code == 0, result.output
    return out


def test_hostile_words_do_nothing_wherever_one_looks(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "gh", "a", 8)
    path = report(tmp_path, "a")
    opened = Opened(browser, path)
    page = opened.page
    for _ in range(8):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    page.hover(".row")
    shown = page.inner_text("body")
    assert "window.pwned=1" in shown and "\\u202e" in shown
    assert not any(char in shown for char in "\u202e\x1b\u2028")
    assert opened.clean(path)


def test_search_filters_and_keys(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "gh", "a", 30, text="x")
    path = report(tmp_path, "a")
    page = Opened(browser, path).page
    assert page.inner_text("#found") == "30 rows"
    page.keyboard.press("/")
    page.keyboard.type("ECHO 29")
    told(page, "1 of 30 rows")
    page.keyboard.press("Escape")
    page.click("button[data-filter=errors]")
    page.fill("#search", "")
    told(page, "10 of 30 rows")
    page.click("button[data-filter=all]")
    page.focus("#list")
    page.keyboard.press("Home")
    page.keyboard.press("n")
    assert page.inner_text(".detail h3") == "#3 Bash x"
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.inner_text(".detail h3") == "#30 Bash x" and page.url.endswith("#step-30")
    page.keyboard.press("p")
    assert page.inner_text(".detail h3") == "#27 Bash x"
    page.goto(path.as_uri() + "#step-12")
    page.reload()
    page.wait_for_selector(".row[aria-selected=true]")
    assert page.inner_text(".detail h3") == "#12 Bash x"


def test_a_denial_leads_to_its_call(browser: Any, tmp_path: Path) -> None:
    hooked(tmp_path / "gh")
    from test_report import run_list

    path = report(tmp_path, *json.loads(run_list(tmp_path / "gh")))
    opened = Opened(browser, path)
    opened.page.click(".denials a")
    assert "This call was blocked." in opened.page.inner_text(".detail")
    assert "rm -rf /" in opened.page.inner_text(".detail")
    assert opened.clean(path)


def test_two_traces_can_be_switched(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "gh", "a", 3, text="x")
    recorded(tmp_path / "gh", "b", 5, text="y")
    page = Opened(browser, report(tmp_path, "a", "b")).page
    assert page.inner_text("#found") == "3 rows"
    page.click("button[data-trace='1']")
    assert page.inner_text("#found") == "5 rows" and "Bash y" in page.inner_text(".detail h3")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone(browser: Any, tmp_path: Path, scheme: str) -> None:
    recorded(tmp_path / "gh", "a", 5)
    page = Opened(browser, report(tmp_path, "a"), viewport={"width": 360, "height": 700}, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not page.is_visible("#detail")
    page.click(".row >> nth=1")
    assert page.is_visible("#detail") and page.evaluate("document.getElementById('detail').scrollWidth") <= 360
    page.click(".close")
    assert not page.is_visible("#detail")
    text, back = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert abs(luminance(text) - luminance(back)) > 150


def luminance(colour: str) -> float:
    red, green, blue = (int(v) for v in colour[4:-1].split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_without_scripts_the_account_of_the_run_can_be_read(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "gh", "a", 5)
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(report(tmp_path, "a").as_uri())
    shown = page.inner_text("body")
    assert "COMPLETED" in shown and "The timeline needs scripts" in shown and HOSTILE[:20] in shown


def test_on_paper_the_rows_are_written_out(browser: Any, tmp_path: Path) -> None:
    """The list is as high as all its rows: printed as it stands it is hundreds of empty pages."""
    recorded(tmp_path / "gh", "a", 700, text="x")
    opened = Opened(browser, report(tmp_path, "a"))
    pdf = opened.page.pdf(format="A4")
    assert 8 < len(re.findall(rb"/Type\s*/Page\b", pdf)) < 25
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator(".row").count() == 500
    assert opened.page.locator("#unprinted").text_content() == "200 more rows are in the file, and not printed."
    opened.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert opened.page.locator(".row").count() < 100


def test_a_step_that_one_trace_has_is_looked_for_there(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "gh", "a", 2)
    recorded(tmp_path / "gh", "b", 4)
    page = Opened(browser, report(tmp_path, "a", "b")).page
    page.click("table a[data-step='4'] >> nth=0")
    assert page.inner_text(".detail h3").startswith("#4 ")
