"""What the documents say is there, is there; and what is there is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from guardhook.commands import TABLE

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def test_every_command_is_told_of() -> None:
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert not [name for name in TABLE if not re.search(rf"(`|guardhook ){re.escape(name)}\b", told)]


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [page.name for page in PAGES if page.name != "README.md" and f"docs/{page.name}" not in readme]
