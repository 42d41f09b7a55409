# mypy: ignore-errors
"""An agent that creates an address and waits for one mail to it, with the Python SDK 2.x."""

import asyncio
import json
import sys

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

url, key, mode = sys.argv[1:]


async def main():
    """Connect with the key."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=70) as http:
        transport = streamable_http_client(url, http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            address = (await client.call_tool("new_address", {})).structured_content
            print(json.dumps(address), flush=True)
            wanted = {"tag": address["tag"], "after": address["cursor"]}
            arrived = await client.call_tool("wait_for_message", wanted)
            print(json.dumps(arrived.structured_content["message"]), flush=True)


asyncio.run(main())
