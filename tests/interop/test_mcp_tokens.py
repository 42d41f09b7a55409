"""The sizes of the results for agents, and the skill, by the programs of other people."""

import subprocess
from collections.abc import Mapping

import pytest

from benchmarks.mcp_tokens import TARGETS, Recorder, Sizes, count_tokens, sizes_of
from tests.interop.mcp_clients.installed import HOME, MODULES, NODE, require
from tests.web.test_web_agent_files import SKILL

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def sizes() -> Mapping[str, Sizes]:
    """The sizes of the results of this version."""
    require(NODE, MODULES / "gpt-tokenizer")
    return sizes_of(Recorder().record())


@pytest.mark.parametrize("name", TARGETS)
def test_a_result_is_short(sizes: Mapping[str, Sizes], name: str) -> None:
    """The results and lists of tools keep to their limits of bytes and tokens."""
    found, at_most = TARGETS[name](sizes[name])
    assert found <= at_most


def test_the_skill_is_valid_and_short() -> None:
    """The reference checker accepts the skill, which has fewer than 400 tokens."""
    checker = HOME / "skills-ref" / "bin" / "agentskills"
    require(checker, NODE, MODULES / "gpt-tokenizer")
    done = subprocess.run(
        [checker, "validate", SKILL.parent], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (tokens,) = count_tokens([SKILL.read_text()])
    assert tokens < 400
