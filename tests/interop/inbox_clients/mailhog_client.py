"""Waits with the client of MailHog for Python, and prints a row for each mail, which it deletes."""

import base64
import json
import quopri
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import mailhog
import requests

url, *recipients = sys.argv[1:]
address = urlsplit(url)
client = mailhog.Mailhog(address.hostname, address.port)


def sign_up(to: str) -> dict[str, object]:
    """Wait for the mail to a recipient, read it, and delete it."""
    began = time.monotonic()
    while not (found := client.search(to, "to")).items:
        time.sleep(0.1)
    waited = time.monotonic() - began
    (message,) = found.items
    assert message.get_recipients() == [to]
    assert message.get_sender() == "shop@example.com"
    assert message.get_subject() == f"Welcome {to}"
    # The client does not read the parts of parts.
    raw = requests.get(f"{url}/api/v1/messages/{message.id}", timeout=60).json()
    bodies, file = raw["MIME"]["Parts"]
    text, html = (quopri.decodestring(one["Body"]).decode() for one in bodies["MIME"]["Parts"])
    client.delete(message)
    return {
        "to": to,
        "waited": waited,
        "code": re.findall(r"\d{6}", text)[0],
        "link": re.findall(r'href="([^"]+)"', html)[0],
        "file": base64.b64decode(file["Body"]).hex(),
        "found": found.count,
        "left": client.search(to, "to").count,
    }


with ThreadPoolExecutor(len(recipients)) as pool:
    rows = pool.map(sign_up, recipients)
    print("waiting", flush=True)
    print(json.dumps(list(rows)))
