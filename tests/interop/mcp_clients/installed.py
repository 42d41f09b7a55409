"""The paths of the clients that ``scripts/install-mcp-clients`` installs."""

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
HOME = CHECKOUT / ".venv-mcp"
NODE = HOME / "bin" / "node"
MODULES = HOME / "javascript" / "node_modules"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"
MCP_REMOTE = MODULES / ".bin" / "mcp-remote"
CONFORMANCE = MODULES / ".bin" / "conformance"
DRIVERS = Path(__file__).parent


def require(*paths: Path) -> None:
    """Skip a test whose client is not installed; with CI set this is a failure."""
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path.name} is not installed: bash scripts/install-mcp-clients")


def node_environment() -> dict[str, str]:
    """Return the environment in which JavaScript finds its Node and its modules."""
    return {
        **os.environ,
        "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "NODE_PATH": str(MODULES),
    }
