"""The first hour of five readers, who know README and the page that it names for them.

Each walk runs the commands of its page from top to bottom and presses what the page names, until
the reader has reached the goal. The ports in the commands are replaced by free ones. The walk of
the mail administrator needs a server, and is in ``test_debian_package.py``.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, expect

from tests.browser.conftest import browser, one_browser
from tests.docs.blocks import ROOT, SHELL, Block, list_pages, read_blocks
from tests.interop.like_mailpit import LikeMailpit
from tests.interop.mcp_clients.installed import HOME, require
from tests.servers.company import CLIENT_ID, CLIENT_SECRET, Person, running_company
from tests.servers.daemon import HOST, Daemon
from tests.table import rows

__all__ = ["browser", "one_browser"]

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

README = ROOT / "README.md"
TUTORIALS = ROOT / "docs" / "tutorial"
SUITE, AGENT, TEAM = TUTORIALS / "test-suite.md", TUTORIALS / "agent.md", TUTORIALS / "team.md"
FIRST_MAIL = TUTORIALS / "first-mail.md"
MAILPIT = ROOT / "docs" / "how-to" / "move-from-mailpit.md"
PLUGIN = "mailcheck.clients.pytest_plugin"
WALKS = (SUITE, AGENT, TUTORIALS / "reports.md", TEAM, MAILPIT)

MAX_STEPS = 5
MAX_WORDS = 1_500

OF_A_CHECKOUT = ("Makefile", "setup.cfg", "pyproject.toml", ".venv", "mailcheck", "twisted")
"""What `make run` reads in a checkout."""

INSTALLED = ("--old-file=setup.cfg", "--old-file=pyproject.toml")
"""The environment is that of the tests, which must not be installed again from another folder."""

AGENT_PROGRAM = """
import asyncio, os, smtplib, sys
import httpx2, mcp
from mcp.client.streamable_http import streamable_http_client

url, variable, smtp_port, program_key = sys.argv[1:]

async def main():
    headers = {"Authorization": f"Bearer {os.environ[variable]}"}
    async with httpx2.AsyncClient(headers=headers, timeout=70) as http:
        async with mcp.Client(streamable_http_client(url, http_client=http)) as client:
            inbox = (await client.call_tool("new_address", {})).structured_content
            with smtplib.SMTP("127.0.0.1", int(smtp_port)) as smtp:
                smtp.login("shop", program_key)
                text = "Subject: Welcome\\n\\nYour code is 482913"
                smtp.sendmail("shop@example.com", [inbox["address"]], text)
            wanted = {"tag": inbox["tag"], "after": inbox["cursor"]}
            result = await client.call_tool("wait_for_message", wanted)
            print(inbox["tag"], *result.structured_content["message"]["codes"])

asyncio.run(main())
"""
"""What the agent does: it signs up in an application, and reads the code from the mail."""


class Reader:
    """Somebody in a terminal, who copies the commands of a page in their order."""

    def __init__(self, page: Path, daemon: Daemon, **variables: str) -> None:
        self._daemon = daemon
        self._commands = iter(
            [one.text for one in read_blocks(page) if one.language == "sh" and not _is_left(one)]
        )
        self._state = daemon.folder / "shell-state"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path, **variables}

    def skip(self, part: str) -> None:
        """Pass over the next commands, which must contain a text and are run in another way."""
        assert part in next(self._commands)

    def run(self) -> str:
        """Run the next commands of the page in the same shell, and return what they print."""
        script = self._with_ports(next(self._commands))
        done = subprocess.run(
            ["bash", "-c", f"{self._earlier()}{SHELL}{script}\nexport -p > shell-state"],
            cwd=self._daemon.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{script}{done.stdout}{done.stderr}"
        return done.stdout

    def finish(self) -> None:
        """Require that the page has no more commands."""
        assert not list(self._commands)

    def _earlier(self) -> str:
        return ". ./shell-state\n" if self._state.exists() else ""

    def _with_ports(self, script: str) -> str:
        ports = {8080: self._daemon.http_port, 2587: self._daemon.submission_port}
        if isinstance(self._daemon, LikeMailpit):
            ports = {8025: self._daemon.api_port, 1025: self._daemon.mail_port}
        for usual, port in ports.items():
            script = re.sub(rf'(127\.0\.0\.1(?::|", )){usual}\b', rf"\g<1>{port}", script)
        return script


def _is_left(block: Block) -> bool:
    """Return whether no walk can run a block: the program of the agent's maker."""
    return block.marker.startswith("not run: ")


@pytest.fixture
def after_make_run(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that `make run` has started in a checkout."""
    for name in OF_A_CHECKOUT:
        (tmp_path / name).symlink_to(ROOT / name)
    daemon = Daemon(tmp_path, command=["make", "--no-print-directory", *INSTALLED, "run"])
    try:
        daemon.start()
        yield daemon
        assert "Traceback" not in daemon.output()
    finally:
        daemon.kill()


@rows(*WALKS)
def test_a_path_is_short(page: Path) -> None:
    """README names the page; it has at most five steps, and both at most 1,500 words."""
    readme, text = README.read_text("utf-8"), page.read_text("utf-8")
    assert f"]({page.relative_to(ROOT)})" in readme
    steps = re.findall(r"^## (\d)\. ", text, re.M)
    assert steps == [str(number + 1) for number in range(len(steps))]
    assert 2 < len(steps) <= MAX_STEPS
    assert len(readme.split()) + len(text.split()) <= MAX_WORDS


def test_every_guide_is_two_clicks_away() -> None:
    """README leads to each guide by at most one page between."""
    near = linked_pages(README)
    reached = near.union(*map(linked_pages, near))
    guides = {page for page in list_pages() if page.parent.name in ("how-to", "tutorial")}
    assert guides - reached == set()


def linked_pages(page: Path) -> set[Path]:
    """Return the pages to which a page links."""
    links = re.findall(r"\]\((?!https?:)([^)#\s]+\.md)", page.read_text("utf-8"))
    return {(page.parent / link).resolve() for link in links}


def test_a_first_mail(after_make_run: Daemon) -> None:
    """After two commands, the reader has the code of a mail."""
    reader = Reader(FIRST_MAIL, after_make_run)
    reader.skip("make run")
    assert re.fullmatch(r"\d{6}", reader.run().splitlines()[-1])
    reader.finish()


def test_a_test_suite(after_make_run: Daemon) -> None:
    """The test of the page takes the code from the mail of the page's shop, with either daemon."""
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": PLUGIN}
    reader = Reader(SUITE, after_make_run, **ours)
    reader.skip("pip install mailcheck-daemon")
    printed = [reader.run() for _ in range(5)]
    assert all("2 passed" in one for one in printed[-2:])
    reader.finish()


def test_a_person_with_an_agent(after_make_run: Daemon) -> None:
    """The agent gets the code of a sign-up with the key and the configuration of the page."""
    reader = Reader(AGENT, after_make_run)
    reader.skip("make run")
    reader.run()
    reader.finish()
    key = (after_make_run.folder / "agent-key").read_text().strip()
    (configuration,) = [one.text for one in read_blocks(AGENT) if one.language == "toml"]
    server = tomllib.loads(configuration)["mcp_servers"]["mailcheck"]
    python = HOME / "python-sdk-2" / "bin" / "python"
    require(python)
    url = server["url"].replace("127.0.0.1:8080", f"{HOST}:{after_make_run.http_port}")
    variable = server["bearer_token_env_var"]
    port, program_key = str(after_make_run.submission_port), after_make_run.key
    done = subprocess.run(
        [str(python), "-c", AGENT_PROGRAM, url, variable, port, program_key],
        env={**os.environ, variable: key},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    tag, code = done.stdout.split()
    assert (tag.startswith("agent-"), code) == (True, "482913")


def test_a_reader_who_compares(tmp_path: Path, browser: Browser) -> None:
    """A mail to the port of Mailpit is found by the search of Mailpit, and is in the dashboard."""
    daemon = LikeMailpit(tmp_path)
    try:
        daemon.start()
        reader = Reader(MAILPIT, daemon)
        reader.skip("serve --like mailpit")
        found = json.loads(reader.run())
        reader.finish()
        assert [one["Subject"] for one in found["messages"]] == ["Welcome"]
        page = browser.new_page()
        page.goto(f"{daemon.url}/")
        page.get_by_label("Name", exact=True).fill("developer")
        password = (daemon.folder / "var" / "dashboard-password").read_text().strip()
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("Welcome")
    finally:
        daemon.kill()


def test_a_team(tmp_path: Path, browser: Browser) -> None:
    """Somebody of the company signs in, sees the project, and an owner sees the key and the log.

    The commands run without a container: ``docker compose`` starts the daemon with the variables
    of the page, and ``exec`` runs a command in its folder.
    """
    (override,) = [one.text for one in read_blocks(TEAM) if one.language == "yaml"]
    variables = yaml.safe_load(override)["services"]["mailcheck"]["environment"]
    daemon = Daemon(tmp_path)
    public = f"http://{HOST}:{daemon.http_port}"
    callback, after = re.findall(r"`https://mail\.example\.com(/\S+)`", TEAM.read_text("utf-8"))[:2]
    with running_company(public + callback, public + after) as company:
        assert variables["MAILCHECK_OIDC_CLIENT_ID"] == CLIENT_ID
        variables["MAILCHECK_OIDC_CLIENT_SECRET"] = CLIENT_SECRET
        variables["MAILCHECK_OIDC_ISSUER"] = company.issuer
        variables["MAILCHECK_WEB_PUBLIC_URL"] = public
        daemon.options = {
            name.removeprefix("MAILCHECK_").lower(): value for name, value in variables.items()
        }
        docker = tmp_path / "docker"
        docker.write_text('#!/bin/sh\ntest "$2" = up && exit\nshift 3\nexec "$@"\n')
        docker.chmod(0o755)
        path = os.pathsep.join(
            map(str, (tmp_path, Path(sys.executable).parent, os.environ["PATH"]))
        )
        company.people["ann"] = Person("248289761001", "ann", ["developers"])
        try:
            daemon.start()
            reader = Reader(TEAM, daemon, **{**daemon.environment, "PATH": path})
            reader.run()
            page = browser.new_page()
            page.goto(f"{public}/sign-in")
            page.get_by_role(
                "link", name=f"Sign in with {variables['MAILCHECK_OIDC_TITLE']}"
            ).click()
            page.get_by_label("User").fill("ann")
            page.get_by_role("button", name="Continue").click()
            page.locator("summary", has_text="Project: ").click()
            page.get_by_role("link", name="webshop", exact=True).click()
            expect(page.locator("summary", has_text="webshop")).to_be_visible()
            key = reader.run()
            assert key.startswith("mck_")
            log = reader.run()
            assert "signed in  by ann" in log
            assert "webshop  key issued" in log
            reader.finish()
        finally:
            daemon.kill()
