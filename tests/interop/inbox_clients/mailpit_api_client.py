"""Waits with mailpit-api-client, which can only list, and prints a row for each mail."""

import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
from mailpit.client.api import API

url, *recipients = sys.argv[1:]


def sign_up(to: str) -> dict[str, object]:
    """Wait for the mail to a recipient, read it, and delete it."""
    api = API(url, timeout=60)

    def to_me() -> list[str]:
        listed = api.get_messages(limit=500).messages
        return [one.id for one in listed if to in [each.address for each in one.to]]

    began = time.monotonic()
    while not (found := to_me()):
        time.sleep(0.1)
    waited = time.monotonic() - began
    message = api.get_message(found[0])
    headers = api.get_message_headers(found[0])
    assert headers.message_id[0].strip("<>") == message.message_id
    part = message.attachments[0].part_id
    api.get_message_attachment(found[0], part)
    data = httpx.get(f"{url}/api/v1/message/{found[0]}/part/{part}").content
    api.delete_messages(found)
    return {
        "to": to,
        "waited": waited,
        "code": re.findall(r"\d{6}", message.text)[0],
        "link": re.findall(r'href="([^"]+)"', message.html)[0],
        "file": data.hex(),
        "found": len(found),
        "left": len(to_me()),
    }


with ThreadPoolExecutor(len(recipients)) as pool:
    rows = pool.map(sign_up, recipients)
    print("waiting", flush=True)
    print(json.dumps(list(rows)))
