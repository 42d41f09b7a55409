"""The official conformance runner against a real daemon, with every scenario that applies.

Most scenarios call tools, resources and prompts of the runner's own reference server. The parts of
the protocol that they test are tested in ``tests/web/mcp``.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.mcp_clients.installed import CONFORMANCE, NODE, node_environment, require
from tests.interop.mcp_clients.key_proxy import HOST, key_proxy
from tests.servers.daemon import free_ports, running_daemon

pytestmark = pytest.mark.end_to_end

DEADLINE = 60.0

HANDSHAKE = ("2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
EXTENSION = ("extension",)
"""Scenarios of extensions have no version."""

APPLIES: dict[str, tuple[str, ...]] = {
    "server-initialize": HANDSHAKE,
    "server-session-lifecycle": ("2025-03-26", *HANDSHAKE),
    "ping": HANDSHAKE,
    "tools-list": HANDSHAKE + STATELESS,
    "server-sse-multiple-streams": ("2025-11-25", *STATELESS),
    "dns-rebinding-protection": ("2025-11-25", *STATELESS),
    "server-stateless": STATELESS,
    "caching": STATELESS,
    "http-header-validation": STATELESS,
    "input-required-result-unsupported-methods": STATELESS,
    "tasks-capability-negotiation": EXTENSION,
    "tasks-dispatch-and-envelope": EXTENSION,
    "tasks-request-headers": EXTENSION,
}

_ITS_TOOL = "calls a tool of the runner's reference server"
_NO_RESOURCES = "resources are offered to clients of Apps only; the method is not found"
_NO_PROMPTS = "prompts are not offered; the method is not found"
_ASKS_NOTHING = "this server sends no requests to its client (sampling, elicitation, roots)"
_EXTENSION = "an extension that is not offered"

NOT_TESTABLE: dict[str, str] = {
    # Checks of scenarios above that need the reference server.
    "sep-2575-server-rejects-undeclared-capability": _ITS_TOOL,
    "sep-2575-missing-capability-http-400": _ITS_TOOL,
    "sep-2575-http-server-no-independent-requests-on-stream": _ITS_TOOL,
    "sep-2575-server-no-log-without-loglevel": _ITS_TOOL,
    "sep-2549-prompts-list-caching-hints": _NO_PROMPTS,
    "sep-2549-resources-list-caching-hints": _NO_RESOURCES,
    "sep-2549-resources-templates-list-caching-hints": _NO_RESOURCES,
    **dict.fromkeys(
        (
            "sep-2663-server-rejects-undeclared-client",
            "tasks-per-request-meta-opt-in",
            "tasks-server-directed-creation-no-hint",
            "sep-2663-legacy-task-param-ignored",
            "tasks-immediate-result-shortcut",
            "tasks-result-type-complete-on-non-task-responses",
            "sep-2663-durable-create-strong-consistency",
            "tasks-headers-tolerate-mcp-method-on-tools-call",
            "sep-2663-routing-headers-accepted-on-tasks-get",
            "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
        ),
        _ITS_TOOL,
    ),
}

DOES_NOT_APPLY: dict[str, str] = {
    # Regular expression over names, and the reason.
    "tools-call-.*": _ITS_TOOL,
    "json-schema-2020-12": _ITS_TOOL,
    "resources-.*|sep-2164-resource-not-found": _NO_RESOURCES,
    "prompts-.*": _NO_PROMPTS,
    "completion-complete": "completions are not offered; the method is not found",
    "logging-set-level": "no log messages are sent, so there is no level to set",
    "elicitation-.*": _ASKS_NOTHING,
    "input-required-result-(?!unsupported-methods).*": _ASKS_NOTHING,
    "server-sse-polling": "a stream ends within 55 s and is not resumed: a wait goes on by cursor",
    "http-custom-header-server-validation": "no argument of a tool is repeated in a header",
    "sep-2640-.*": _EXTENSION,
    "tasks-(?:lifecycle|wire-fields|request-state-removal|required-task-error)": _ITS_TOOL,
    "tasks-mrtr-.*": "tasks of this server ask nothing",
    "tasks-status-notifications": "not sent: clients poll",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon behind a proxy that adds the key, which the runner cannot send."""
    require(NODE, CONFORMANCE)
    (port,) = free_ports(1)
    public_url = f"http://{HOST}:{port}"
    folder = tmp_path_factory.mktemp("conformance")
    with (
        running_daemon(folder, web_public_url=public_url) as daemon,
        key_proxy(port, daemon.http_port, daemon.key),
    ):
        yield f"{public_url}/mcp"


def run_conformance(*arguments: str) -> str:
    """Run the runner, and return its output."""
    done = subprocess.run(
        [str(CONFORMANCE), *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=node_environment(),
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("scenario", "version"),
    [(scenario, version) for scenario, versions in APPLIES.items() for version in versions],
)
def test_a_scenario_is_passed(url: str, tmp_path: Path, scenario: str, version: str) -> None:
    """Every check of the scenario passes, without warnings."""
    printed = run_conformance(
        *("server", "--url", url, "--scenario", scenario),
        *("--output-dir", str(tmp_path)),
        *(() if version in EXTENSION else ("--spec-version", version)),
    )
    (results,) = tmp_path.glob("*/checks.json")
    checks: list[dict[str, Any]] = json.loads(results.read_text())
    assert [check for check in checks if check["status"] == "SUCCESS"], printed
    failed = {
        check["id"]: check.get("errorMessage")
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    }
    assert set(failed) <= set(NOT_TESTABLE), failed


def test_every_scenario_was_thought_of() -> None:
    """Each scenario of a new runner is either run here or listed with a reason."""
    require(NODE, CONFORMANCE)
    listed = re.findall(r"^  - (\S+)", run_conformance("list", "--server"), re.MULTILINE)
    assert len(listed) > 50
    forgotten = [
        name
        for name in listed
        if name not in APPLIES
        and not any(re.fullmatch(pattern, name) for pattern in DOES_NOT_APPLY)
    ]
    assert forgotten == []
