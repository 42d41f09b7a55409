"""The files that describe the MCP server: server.json for registries, and a skill for agents."""

import json
import re
from pathlib import Path

from jsonschema import Draft7Validator

import mailcheck.clients
from mailcheck.core.version import installed_version
from tests.house import House
from tests.web.mcp.agent import Agent

SCHEMA = Path(__file__).parents[1] / "spec" / "server.schema.json"
SKILL = Path(mailcheck.clients.__file__).parent / "receive-test-mail" / "SKILL.md"

FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
"""The fields of a skill (agentskills.io, specification)."""


def test_the_description_for_registries_is_valid(house: House) -> None:
    """server.json follows the schema of the MCP registry, and has the version of the daemon."""
    answer = house.open("/clients/server.json").answer()
    assert answer.headers["content-type"] == "application/json"
    described = json.loads(answer.body)
    Draft7Validator(json.loads(SCHEMA.read_text())).validate(described)
    assert described["version"] == installed_version()
    (remote,) = described["remotes"]
    assert set(re.findall(r"\{(\w+)\}", remote["url"])) == set(remote["variables"])


def test_the_skill_is_valid(house: House) -> None:
    """SKILL.md has the fields of the specification, its folder as name, and at most 1,700 bytes."""
    text = house.open("/clients/SKILL.md").answer().body.decode()
    assert text == SKILL.read_text()
    assert len(text.encode()) <= 1_700
    _, head, body = text.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert set(fields) <= FIELDS
    assert fields["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["description"]) <= 1_024
    assert len(fields["compatibility"]) <= 500
    assert body.startswith("\n# ")


def test_the_skill_names_what_exists(house: House) -> None:
    """Each tool, argument and field that the skill names is one of the server."""
    tools = Agent(house).tools()
    known = {*tools, "codes", "bestLink", "subject", "codes[0]", "+", "id"}
    for tool in tools.values():
        known |= {*tool["inputSchema"]["properties"], *tool["outputSchema"]["properties"]}
    for name in re.findall(r"`([^`]+)`", SKILL.read_text()):
        assert name.partition("=")[0] in known, name
