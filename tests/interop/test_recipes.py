"""The recipes of docs/, run as a user runs them, with the packages for pytest and Playwright.

Each suite has 30 tests in four workers and gets the key that the first start has made, with the
default limits: 60 requests a minute, 1,000 a day.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mailcheck.web.site.client_libraries import CLIENT_LIBRARIES
from scripts.build_npm import build
from tests.browser.watching import CHROMIUM
from tests.docs.blocks import read_blocks
from tests.servers.daemon import Daemon, free_ports, running_daemon

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]
RECIPES = CHECKOUT / "docs" / "recipes"
NODE_MODULES = CHECKOUT / "node_modules"
PLUGIN = "mailcheck.clients.pytest_plugin"

LIMITS = {"limits_requests_per_minute": 60, "limits_requests_per_day": 1_000}
REPEATS = 20

Suite = Callable[[Daemon, Path], str]


def run(folder: Path, environment: Mapping[str, str], *command: str) -> str:
    """Run a program to its end, with the inbox and its mail server in its environment."""
    done = subprocess.run(
        command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_of(daemon: Daemon) -> dict[str, str]:
    """Return the environment variables of the recipes."""
    return {
        **daemon.client_environment,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def copy_recipes(folder: Path) -> Path:
    """Copy the recipes."""
    shutil.copytree(RECIPES, folder)
    return folder


def run_pytest(daemon: Daemon, folder: Path) -> str:
    """Run the suite of pytest with xdist."""
    # Without the plugins of our own tests, which take seconds to load.
    environment = {**environment_of(daemon), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = (
        "pytest",
        "-q",
        "-n",
        "4",
        "-p",
        "xdist.plugin",
        "-p",
        PLUGIN,
        "-p",
        "no:cacheprovider",
    )
    return run(folder, environment, sys.executable, "-m", *command, "--rootdir=.")


def run_playwright(daemon: Daemon, folder: Path) -> str:
    """Run the suite of Playwright's own runner, with a real browser."""
    for needed in (NODE_MODULES / "@playwright" / "test", CHROMIUM):
        if not needed.exists():
            pytest.skip(f"{needed} is not installed: run scripts/install-test-needs as root")
    modules = folder / "node_modules"
    if not modules.exists():
        modules.mkdir()
        for name in ("@playwright", "playwright", "playwright-core"):
            (modules / name).symlink_to(NODE_MODULES / name)
        build(modules / "mailcheck-client", "0.1.0")
    (port,) = free_ports(1)
    environment = {
        **environment_of(daemon),
        "SHOP_PORT": str(port),
        "CHROMIUM": str(CHROMIUM),
        "CI": "1",
    }
    runner = str(modules / "@playwright" / "test" / "cli.js")
    return run(folder, environment, "node", runner, "test", "--reporter=line")


def test_the_test_on_the_page_passes(tmp_path: Path) -> None:
    """The Playwright test of the guide and of "Connect" signs up at the shop."""
    with running_daemon(tmp_path / "daemon", **LIMITS) as daemon:
        folder = copy_recipes(tmp_path / "recipes")
        (pasted,) = (
            block.text
            for block in read_blocks(CHECKOUT / "docs" / "how-to" / "wait-for-mail.md")
            if block.snippet == "playwright"
        )
        pasted = pasted.replace("http://127.0.0.1:5000/", "/")
        (folder / "shop.spec.ts").write_text(pasted)
        (folder / "mailcheck.mjs").write_bytes(CLIENT_LIBRARIES["mailcheck.mjs"].read())
        assert re.search(r"\b1 passed\b", run_playwright(daemon, folder))


SUITES: Mapping[str, Suite] = {"pytest": run_pytest, "playwright": run_playwright}
ALL_PASSED = re.compile(r"\b30 passed\b")


@pytest.mark.long
@pytest.mark.parametrize("name", SUITES)
def test_thirty_tests_side_by_side_pass_on_the_first_key(name: str, tmp_path: Path) -> None:
    """The sample application's 30 tests pass, in four workers, within the limits of the key."""
    with running_daemon(tmp_path / "daemon", **LIMITS) as daemon:
        folder = copy_recipes(tmp_path / "recipes")
        assert ALL_PASSED.search(SUITES[name](daemon, folder))


@pytest.mark.soak
@pytest.mark.parametrize("name", SUITES)
def test_they_pass_however_often_they_are_repeated(name: str, tmp_path: Path) -> None:
    """In 20 runs with one key the clients wait as told when the minute's limit is reached.

    The runs make more than 1,000 requests, so the key has a higher limit per day.
    """
    limits = {**LIMITS, "limits_requests_per_day": 100 * REPEATS}
    with running_daemon(tmp_path / "daemon", **limits) as daemon:
        folder = copy_recipes(tmp_path / "recipes")
        for _ in range(REPEATS):
            assert ALL_PASSED.search(SUITES[name](daemon, folder))
