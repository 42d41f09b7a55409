# mypy: ignore-errors
"""The same conversation through the official Python SDK 1.x."""

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession, McpError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification

server, key = sys.argv[1:]


def tell(step, **facts):
    """Report a step to the test."""
    print(json.dumps({"step": step, **facts}), flush=True)


async def give_up(session):
    """Cancel a wait; this SDK only forgets a request that has timed out."""
    request_id = session._request_id
    half = timedelta(seconds=0.5)
    try:
        await session.call_tool("wait_for_message", {"tag": "never"}, read_timeout_seconds=half)
    except McpError:
        params = CancelledNotificationParams(requestId=request_id)
        note = CancelledNotification(method="notifications/cancelled", params=params)
        await session.send_notification(ClientNotification(note))
        await asyncio.sleep(0.5)


async def converse(session):
    """Run an agent's conversation, including its errors."""
    tools = await session.list_tools()
    tell("tools", names=[tool.name for tool in tools.tools])
    address = (await session.call_tool("new_address", {})).structuredContent
    tell("address", **address)
    progress = []

    async def note(done, total, message):
        progress.append(done)
        tell("waiting")

    wanted = {"tag": address["tag"], "after": address["cursor"], "timeout": 20}
    arrived = await session.call_tool("wait_for_message", wanted, progress_callback=note)
    message = arrived.structuredContent["message"]
    tell("arrived", codes=message["codes"], link=message["bestLink"], progress=progress)
    await give_up(session)
    tell("cancelled")
    again = await session.call_tool("wait_for_message", {"tag": "never", "timeout": 1})
    tell("timed out", said=again.structuredContent["timedOut"])
    failed = await session.call_tool("get_message", {"id": "nothing"})
    tell("failed", is_error=failed.isError, text=failed.content[0].text)
    try:
        await session.call_tool("no_such_tool", {})
    except McpError as error:
        tell("refused", code=error.error.code)


def connect():
    """Return the transport to the URL or to the command."""
    if server.startswith("http"):
        return streamablehttp_client(server, headers={"Authorization": f"Bearer {key}"})
    command, *args = server.split()
    env = {"MAILCHECK_API_KEY": key}
    return stdio_client(StdioServerParameters(command=command, args=args, env=env))


async def main():
    """Connect with the key."""
    async with connect() as (reading, writing, *_), ClientSession(reading, writing) as session:
        await session.initialize()
        await converse(session)


asyncio.run(main())
