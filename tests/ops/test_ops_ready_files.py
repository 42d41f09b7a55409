"""Files that start mailcheck with other tools: docs/ready/, action.yml, checks of docs/ci/."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
import yaml

from mailcheck.config.mailpit import translate_environment
from mailcheck.config.reading import load_config
from mailcheck.core.identifiers import MIN_PRESET_KEY
from tests.cli.command_line import run_work
from tests.ops.test_ops_snippets import image_environment, require_known
from tests.servers.daemon import NOBODY
from tests.table import rows

ROOT = Path(__file__).parents[2]
READY, CI = ROOT / "docs" / "ready", ROOT / "docs" / "ci"
GUIDE = ROOT / "docs" / "how-to" / "use-it-with-other-tools.md"

FILES = [path for path in READY.rglob("*.*") if path.is_file()]

MAIL = (
    "Return-Path: <shop@example.com>\nReceived: from mx.example.com (mx.example.com [192.0.2.25])"
)
MAIL += "\n\tby mail.example.org with ESMTP; Sun, 29 Nov 2026 17:00:00 +0000\n"
MAIL += "From: shop@example.com\nTo: ann@example.com\nSubject: Welcome\n\nYour code is 482913\n"

SETTINGS = {
    "MAILCHECK_DNS_RESOLVERS": json.dumps([NOBODY]),
    "MAILCHECK_SPAMASSASSIN_SPAMD": "off",
}


def service(name: str, of: str = "mailcheck") -> Any:
    """Return a service of a file for containers."""
    return yaml.safe_load((READY / name).read_text("utf-8"))["services"][of]


@rows(*FILES)
def test_the_guide_names_each_file(path: Path) -> None:
    """A reader finds each file on the page, and each one that it names exists."""
    assert f"../ready/{path.relative_to(READY)})" in GUIDE.read_text("utf-8")


def test_compose() -> None:
    """The application has the URL, the key and the port of the daemon that starts beside it."""
    app, daemon = service("compose.yaml", "app"), service("compose.yaml")
    config = require_known(daemon["environment"])
    key = config.accounts.bootstrap_key
    assert len(key) >= MIN_PRESET_KEY
    given = app["environment"]
    assert given["MAILCHECK_API_KEY"] == given["SMTP_PASSWORD"] == key
    assert given["MAILCHECK_URL"] == f"http://mailcheck:{config.web.listen[0].rpartition(':')[2]}"
    port = config.smtp.submission_listen[0].rpartition(":")[2]
    assert (given["SMTP_HOST"], given["SMTP_PORT"]) == ("mailcheck", port)
    assert app["depends_on"] == {"mailcheck": {"condition": "service_healthy"}}
    assert all(port.startswith("127.0.0.1:") for port in daemon["ports"])


def test_devcontainer() -> None:
    """The container of the editor is a service of the file beside it."""
    container = json.loads((READY / "devcontainer" / "devcontainer.json").read_text("utf-8"))
    compose = yaml.safe_load((READY / container["dockerComposeFile"]).read_text("utf-8"))
    app = compose["services"][container["service"]]
    assert app["volumes"] == [f"..:{container['workspaceFolder']}:cached"]
    for forwarded in container["forwardPorts"]:
        name, _, port = forwarded.partition(":")
        published = compose["services"][name]["ports"]
        assert [one.rpartition(":")[2] for one in published] == [port]


@rows(
    ("sail/compose.override.yaml", "mailpit"), ("ddev/docker-compose.mailcheck.yaml", "mailcheck")
)
def test_like_mailpit(name: str, of: str) -> None:
    """The image starts as Mailpit does, with the ports of Mailpit, and its data in a volume."""
    one = service(name, of)
    assert one["command"] == ["serve", "--like", "mailpit"]
    own = {
        name: str(value)
        for name, value in one.get("environment", {}).items()
        if name.startswith(("MAILCHECK_", "MP_"))
    }
    environment = {**image_environment(), **own}
    config = load_config(None, {**environment, **translate_environment(environment).variables})
    assert config.mailpit.listen == ("0.0.0.0:8025",)
    assert config.mailpit.smtp_listen == ("0.0.0.0:1025",)
    assert config.storage.state_directory in [volume.split(":")[1] for volume in one["volumes"]]


def test_ddev() -> None:
    """PHP sends to the service, and the router of DDEV publishes its pages under free ports."""
    daemon = service("ddev/docker-compose.mailcheck.yaml")
    setting = (READY / "ddev" / "mailcheck.ini").read_text("utf-8").splitlines()[-1]
    assert setting.endswith(' -t --smtp-addr mailcheck:1025"')
    assert set(daemon["expose"]) == {"1025", "8025"}
    published = [daemon["environment"][name] for name in ("HTTP_EXPOSE", "HTTPS_EXPOSE")]
    assert {one.partition(":")[2] for one in published} == {"8025"}
    taken_by_ddev = {"80", "443", "8025", "8026"}
    assert taken_by_ddev.isdisjoint(one.partition(":")[0] for one in published)
    assert set(daemon["labels"]) == {"com.ddev.site-name", "com.ddev.approot"}


def test_the_inputs_of_the_action() -> None:
    """The action's values reach its script as variables only, and the example names its inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    _, check = action["runs"]["steps"]
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} == set(check["env"].values())
    assert all("${{" not in step["run"] for step in action["runs"]["steps"])
    workflow = yaml.safe_load((CI / "github-check.yml").read_text("utf-8"))
    used = workflow["jobs"]["mail"]["steps"][1]
    assert used["with"].keys() <= action["inputs"].keys()
    page = GUIDE.read_text("utf-8")
    assert all(f"`{name}`" in page for name in action["inputs"])


STAND_IN = r"""#!/bin/sh
printf '%s\n' "$@" > called
echo found
echo told >&2
exit "$STATUS"
"""
"""A program in the place of mailcheck, which notes its words."""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a job, with a program where the first step of the action installs it."""
    programs = tmp_path / "mailcheck" / "bin"
    programs.mkdir(parents=True)
    (programs / "mailcheck").write_text(STAND_IN)
    (programs / "mailcheck").chmod(0o700)
    (tmp_path / "mail.eml").write_text(MAIL)
    monkeypatch.chdir(tmp_path)
    return {
        **os.environ,
        **SETTINGS,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": "summary",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }


def run_script(script: str, environment: Mapping[str, str]) -> int:
    """Run a script as a runner of GitHub does, and return its status."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
    return done.returncode


async def require_passed_on(script: str, environment: Mapping[str, str], status: int) -> str:
    """Check that a command ends with a status, which is that of its script; return its messages."""
    assert run_script(script, {**environment, "STATUS": str(status)}) == status
    done = await run_work(SETTINGS, *Path("called").read_text().splitlines())
    assert done.status == status
    return done.errors


@pytest_twisted.ensureDeferred
async def test_the_action_fails_the_job(runner: dict[str, str]) -> None:
    """The status is that of the command: 1 for a low score, 3 without an answer of DNS."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    inputs, (_, step) = action["inputs"], action["runs"]["steps"]
    runner |= {
        name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]["default"]
        for name, value in step["env"].items()
    }
    script, mail = step["run"], {**runner, "MAIL": "mail.eml"}
    assert run_script(script, {**mail, "IP": "192.0.2.26; exit 0", "STATUS": "2"}) == 2
    assert Path("called").read_text().splitlines()[2:4] == ["--ip", "192.0.2.26; exit 0"]
    await require_passed_on(script, {**mail, "FAIL_UNDER": "0"}, 3)
    assert "192.0.2.25" in await require_passed_on(script, {**mail, "FAIL_UNDER": "10"}, 1)
    assert run_script(script, {**mail, "DOMAIN": "example.com", "STATUS": "0"}) == 0
    assert run_script(script, runner) == 2
    summary = Path("summary").read_text()
    assert [summary.count(word) for word in ("```", "found", "told")] == [10, 5, 5]
    installed = Path("mailcheck", "bin", "mailcheck")
    installed.unlink()
    installed.symlink_to(Path(sys.executable).with_name("mailcheck"))
    assert run_script(script, {**runner, "DOMAIN": "example.com"}) == 3


@pytest_twisted.ensureDeferred
async def test_the_jobs_of_gitlab(runner: dict[str, str]) -> None:
    """Each job runs its command, whose status is that of the job."""
    jobs = yaml.safe_load((CI / "gitlab-check.yml").read_text("utf-8"))
    assert jobs[".mailcheck"]["before_script"] == ["pip install --quiet mailcheck-daemon"]
    for name, given, status in (
        ("mail", {"MAIL": "mail.eml", "FAIL_UNDER": "10"}, 1),
        ("domain", {}, 3),
    ):
        (script,) = jobs[name]["script"]
        await require_passed_on(script, {**runner, **jobs[name]["variables"], **given}, status)
