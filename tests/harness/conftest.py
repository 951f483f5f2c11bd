"""Fixtures for tests with real clients: which rows there are, a home per row, and what to say when a client can't be had.

GUARDHOOK_NEWEST=1 adds a row per client with its newest version; failures there are shown as xfailed and never fail the run.
GUARDHOOK_REQUIRE_CLIENTS=1 makes a client that can't be installed a failure instead of a skip.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from realclients.driver import Home, Hook
from realclients.install import Pin, Unavailable, rows
from realclients.product import Product, find_product
from realclients.table import fresh_home

ROWS = rows(newest=os.environ.get("GUARDHOOK_NEWEST") == "1")
REQUIRED = os.environ.get("GUARDHOOK_REQUIRE_CLIENTS") == "1"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "dialects(*names): only the rows of versions.toml with these dialects")


def pytest_report_header() -> str:
    product = find_product()
    return f"real clients: {', '.join(ROWS)}; guardhook as {product.form}: {' '.join(product.argv)}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`row` takes the rows of versions.toml; `@pytest.mark.dialects("codex", …)` narrows them."""
    if "row" not in metafunc.fixturenames:
        return
    wanted = [name for mark in metafunc.definition.iter_markers("dialects") for name in mark.args]
    params = []
    for name, pin in ROWS.items():
        if not wanted or pin.dialect in wanted:
            marks = [] if pin.blocking else [pytest.mark.xfail(strict=False, reason="newest version, not measured")]
            params.append(pytest.param(pin, id=name, marks=marks))
    metafunc.parametrize("row", params)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.harness)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Pin, str], Home]:
    """Homes by row and purpose, made once per test process. Skips where the client can't be had."""
    made: dict[tuple[str, str], Home] = {}

    def get(pin: Pin, purpose: str) -> Home:
        key = (pin.row, purpose)
        if key not in made:
            try:
                made[key] = fresh_home(tmp_path_factory.mktemp(f"{pin.row.replace('@', '-')}-{purpose}"), pin)
            except Unavailable as error:
                if REQUIRED:
                    pytest.fail(f"GUARDHOOK_REQUIRE_CLIENTS is set, and {pin.row} can't be had: {error}")
                pytest.skip(f"REAL CLIENT NOT TESTED: {pin.row}: {error}")
        return made[key]

    return get


@pytest.fixture
def plain(row: Pin, homes: Callable[[Pin, str], Home]) -> Home:
    """The client with no hooks at all."""
    home = homes(row, "plain")
    home.driver.register(home, [])
    return home


@pytest.fixture
def stand_in(row: Pin, homes: Callable[[Pin, str], Home]) -> Callable[[str], Home]:
    """The client with a small sh program as its gate hook, in place of the product."""
    home = homes(row, "standin")

    def register(script: str) -> Home:
        program = home.base / "programs" / "stand-in"
        program.unlink(missing_ok=True)
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        home.driver.register(home, [Hook([str(program)])])
        return home

    return register


@pytest.fixture(scope="session")
def product() -> Product:
    """guardhook itself: the built executable where there is one, else the source."""
    return find_product()


@pytest.fixture
def guarded(row: Pin, homes: Callable[[Pin, str], Home], product: Product) -> Home:
    """The client with guardhook installed in it, as `guardhook install` does it, and the test's own policies."""
    home = homes(row, "guarded")
    product.ensure_installed(home)
    return home


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if "REAL CLIENT NOT TESTED" in text:
            reason = text[text.index("REAL CLIENT NOT TESTED") :]
            skipped[reason] = skipped.get(reason, 0) + 1
    if skipped:
        terminalreporter.section("real clients that were NOT tested", yellow=True, bold=True)
        for reason, count in sorted(skipped.items()):
            terminalreporter.line(f"{reason} ({count} tests)")
