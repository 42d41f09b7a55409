"""Two checkers of SCIM servers, scim-sanity and scim2-tester, against a real daemon."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.daemon import Daemon, running_daemon

pytestmark = [pytest.mark.interop, pytest.mark.end_to_end]

PROGRAMS = Path(__file__).parents[2] / ".venv-scim" / "bin"
DEADLINE = 120.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with an account of the operator."""
    if not (PROGRAMS / "scim-sanity").exists():
        pytest.skip("the checkers of SCIM are missing: make scim-checkers")
    with running_daemon(tmp_path_factory.mktemp("scim")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def key(daemon: Daemon) -> str:
    """A key of the operator with the scope that a directory needs."""
    options = ("--scope", "operator")
    program = Path(sys.executable).with_name("mailcheck")
    command = [str(program), "key", "issue", "developer", *options]
    issued = subprocess.run(
        command, cwd=daemon.folder, env=daemon.environment, capture_output=True, check=False
    )
    assert issued.returncode == 0, issued.stderr
    return issued.stdout.decode().split()[-1]


def test_scim_sanity(daemon: Daemon, key: str) -> None:
    """scim-sanity finds one fault in its strict mode: an unknown member is refused."""
    url = f"http://127.0.0.1:{daemon.http_port}/scim/v2"
    options = ("--token", key, "--i-accept-side-effects", "--json-output")
    command = [str(PROGRAMS / "scim-sanity"), "probe", url, *options]
    ended = subprocess.run(command, capture_output=True, timeout=DEADLINE, check=False)
    found = json.loads(ended.stdout)["results"]
    wrong = {result["name"] for result in found if result["status"] not in ("pass", "skip")}
    # It adds a member that does not exist. A directory must not believe that it was added.
    assert wrong == {"PATCH /Groups/{id} add member"}, ended.stdout.decode()
    assert len([result for result in found if result["status"] == "pass"]) > 25


def test_scim2_tester(daemon: Daemon, key: str) -> None:
    """scim2-tester writes and reads every attribute of the published schemas without an error."""
    url = f"http://127.0.0.1:{daemon.http_port}/scim/v2"
    environment = {**os.environ, "SCIM_CLI_HEADERS": f"Authorization: Bearer {key}"}
    command = [str(PROGRAMS / "scim2"), "-u", url, "test", "-v"]
    ended = subprocess.run(
        command, env=environment, capture_output=True, timeout=DEADLINE, check=False
    )
    output = ended.stdout.decode()
    assert ended.returncode == 0, output
    assert output.count("SUCCESS") > 60
    assert not any(word in output for word in ("ERROR", "CRITICAL", "DEVIATION"))
