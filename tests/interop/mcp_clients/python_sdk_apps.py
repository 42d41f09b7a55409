# mypy: ignore-errors
"""What a host of Apps gets through the official Python SDK 2.x; runs in a separate environment.

The first argument is the URL of the endpoint, or a command with MCP on its input and output.
"""

import asyncio
import json
import sys

import httpx2
import mcp
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

server, key, mode = sys.argv[1:]
APP_TYPE = "text/html;profile=mcp-app"
UI = advertise("io.modelcontextprotocol/ui", {"mimeTypes": [APP_TYPE]})


async def look(extensions):
    """Return what the server offers to a client with these extensions."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=70) as http:
        if server.startswith("http"):
            transport = streamable_http_client(server, http_client=http)
        else:
            command, *args = server.split()
            env = {"MAILCHECK_API_KEY": key}
            transport = stdio_client(StdioServerParameters(command=command, args=args, env=env))
        async with mcp.Client(transport, mode=mode, extensions=extensions) as client:
            tools = (await client.list_tools()).tools
            meta = {tool.name: tool.meta for tool in tools if tool.meta}
            if not meta:
                return {"meta": meta}
            read = await client.read_resource(meta["get_message"]["ui"]["resourceUri"])
            (content,) = read.contents
            found = {"type": content.mime_type, "meta": content.meta, "text": content.text[:15]}
            return {"meta": meta, "card": found}


async def main():
    """Look with and without the extension."""
    for name, extensions in {"without": [], "with": [UI]}.items():
        print(json.dumps({"step": name, **await look(extensions)}), flush=True)


asyncio.run(main())
