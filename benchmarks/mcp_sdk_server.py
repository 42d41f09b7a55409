# mypy: ignore-errors
"""The peer of `mcp_throughput`: the HTTP server of the official Python SDK with the same tools.

    python-sdk-2/bin/python mcp_sdk_server.py PORT TOOLS.json

It has its fastest settings: no sessions, plain JSON, no key.
"""

import json
import sys
from pathlib import Path

import uvicorn
from mcp.server import Server
from mcp_types import ListToolsResult, Tool


def main() -> None:
    """Serve until the process is killed."""
    port, tools = int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    listed = ListToolsResult(
        tools=[Tool.model_validate(tool) for tool in tools], ttl_ms=300_000, cache_scope="public"
    )

    async def list_tools(context: object, params: object) -> ListToolsResult:
        return listed

    server = Server("peer", version="1", on_list_tools=list_tools)
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


if __name__ == "__main__":
    main()
