"""A program asks the person for a scope that it did not get before (MCP, "Step-Up")."""

import re

from mailcheck.core.rights import make_rights
from tests.table import rows
from tests.web.mcp.agent import HANDSHAKE, STATELESS, Agent, failure_of
from tests.web.oauth.conftest import ann as ann
from tests.web.oauth.conftest import house as house
from tests.web.oauth.conftest import program as program
from tests.web.oauth.program import ISSUER, Program, returned


def parameters_of(challenge: str) -> dict[str, str]:
    """Return the parameters of a challenge."""
    assert challenge.startswith("Bearer ")
    return dict(re.findall(r'(\w+)="([^"\\]*)"', challenge))


def tokens_for(program: Program, allowed: str, **changes: str) -> str:
    """Let the person allow only some scopes, and return the access token."""
    program.ask(**changes)
    code = returned(program.submit(scope=allowed))["code"]
    token: str = program.exchange(code).json["access_token"]
    return token


@rows(HANDSHAKE, STATELESS)
def test_a_missing_scope_is_named(program: Program, version: str) -> None:
    """A tool beyond the grant is answered with 403 and what to ask the person for."""
    agent = Agent(program.house, tokens_for(program, "inbox:read"), version)
    refused = agent.call("check_mx", {"domain": "example.com"})
    assert refused.status == 403
    assert "the scope domains, which was not granted" in refused.error["message"]
    told = parameters_of(refused.headers["www-authenticate"])
    assert told["error"] == "insufficient_scope"
    assert told["resource_metadata"] == f"{ISSUER}/.well-known/oauth-protected-resource/mcp"
    assert "check_mx needs the scope domains" in told["error_description"]


def test_the_challenge_keeps_what_was_granted(program: Program) -> None:
    """The named scopes are those of the grant and of the tool, and no others."""
    agent = Agent(program.house, tokens_for(program, "inbox:read watches"))
    refused = agent.call("check_mx", {"domain": "example.com"})
    told = parameters_of(refused.headers["www-authenticate"])
    assert told["scope"] == "inbox:read domains watches"


def test_the_person_allows_more(program: Program) -> None:
    """A program that asks for the named scopes gets a token for the tool, and for the others."""
    agent = Agent(program.house, tokens_for(program, "inbox:read"))
    refused = agent.call("delete_message", {"id": "x"})
    wanted = parameters_of(refused.headers["www-authenticate"])["scope"]
    more = Agent(program.house, tokens_for(program, wanted, scope=wanted))
    assert "no such message" in failure_of(more.call("delete_message", {"id": "x"}))
    assert more.call("new_address", {}).result["isError"] is False


def test_the_model_is_told_about_a_limited_key(program: Program) -> None:
    """A program with an API key cannot ask a person, so the model reads what is missing."""
    house = program.house
    key = house.issue_key(house.account, rights=make_rights(["inbox:read"]))
    refused = Agent(house, key).call("check_mx", {"domain": "example.com"})
    assert "does not have the scope domains" in failure_of(refused)
    assert "www-authenticate" not in refused.headers


def test_a_challenge_is_one_header(program: Program) -> None:
    """Arguments and the name of the tool are not repeated in the challenge."""
    agent = Agent(program.house, tokens_for(program, "inbox:read"))
    refused = agent.call("check_mx", {"domain": 'evil.example", scope="all'})
    assert refused.status == 403
    assert "evil" not in refused.headers["www-authenticate"]
