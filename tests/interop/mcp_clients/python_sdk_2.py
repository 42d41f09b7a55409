# mypy: ignore-errors
"""A conversation through the official Python SDK 2.x; runs in a separate environment.

The first argument is the URL of the endpoint, or a command with MCP on its input and output.
"""

import asyncio
import json
import sys

import httpx2
import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

server, key, mode = sys.argv[1:]


def tell(step, **facts):
    """Report a step to the test."""
    print(json.dumps({"step": step, **facts}), flush=True)


async def converse(client):
    """Run an agent's conversation, including its errors."""
    tools = await client.list_tools()
    tell("tools", names=[tool.name for tool in tools.tools])
    address = (await client.call_tool("new_address", {})).structured_content
    tell("address", **address)
    progress = []

    async def note(done, total, message):
        progress.append(done)
        tell("waiting")

    wanted = {"tag": address["tag"], "after": address["cursor"], "timeout": 20}
    arrived = await client.call_tool("wait_for_message", wanted, progress_callback=note)
    message = arrived.structured_content["message"]
    tell("arrived", codes=message["codes"], link=message["bestLink"], progress=progress)
    is_parked = asyncio.Event()

    async def note_parked(*_):
        is_parked.set()

    never = client.call_tool("wait_for_message", {"tag": "never"}, progress_callback=note_parked)
    wait = asyncio.create_task(never)
    await is_parked.wait()
    wait.cancel()
    try:
        await wait
    except asyncio.CancelledError:
        tell("cancelled")
    again = await client.call_tool("wait_for_message", {"tag": "never", "timeout": 1})
    tell("timed out", said=again.structured_content["timedOut"])
    failed = await client.call_tool("get_message", {"id": "nothing"})
    tell("failed", is_error=failed.is_error, text=failed.content[0].text)
    try:
        await client.call_tool("no_such_tool", {})
    except mcp.MCPError as error:
        tell("refused", code=error.error.code)


async def main():
    """Connect with the key."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=70) as http:
        if server.startswith("http"):
            transport = streamable_http_client(server, http_client=http)
        else:
            command, *args = server.split()
            env = {"MAILCHECK_API_KEY": key}
            transport = stdio_client(StdioServerParameters(command=command, args=args, env=env))
        async with mcp.Client(transport, mode=mode) as client:
            await converse(client)


asyncio.run(main())
