"""Uses the inbox as tests with Mailosaur's client for Python do. Usage: mailosaur_client.py COUNT.

Each test prints its address, and waits for the mail that the caller sends there. In the end the
results are printed as JSON.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from mailosaur import MailosaurClient
from mailosaur.models import MailosaurException, MessageForwardOptions, SearchCriteria

CLIENT = MailosaurClient(
    os.environ["MAILCHECK_API_KEY"], f"{os.environ['MAILCHECK_URL']}/mailosaur/"
)


def sign_up(number: int) -> dict[str, object]:
    """Wait for a mail, use it, and delete it."""
    server = f"pyth{number:04}"
    address = CLIENT.servers.generate_email_address(server)
    print(f"{address}\n", end="", flush=True)  # in one piece, since others print too
    criteria = SearchCriteria()
    criteria.sent_to, criteria.subject = address, "Welcome"
    began = time.monotonic()
    message = CLIENT.messages.get(server, criteria, timeout=30_000)
    waited = time.monotonic() - began
    (file,) = [one for one in message.attachments if one.file_name == "a.csv"]
    content = b"".join(CLIENT.files.get_attachment(file.id)).decode()
    criteria = SearchCriteria()
    criteria.body = "code is 482913"
    found = CLIENT.messages.search(server, criteria)
    try:
        CLIENT.messages.forward(message.id, MessageForwardOptions("a@example.com", "x"))
        refused = ""
    except MailosaurException as error:
        refused = error.message
    CLIENT.messages.delete(message.id)
    return {
        "waited": waited,
        "code": message.html.codes[0].value,
        "link": message.html.links[0].href,
        "file": content,
        "found": [one.subject for one in found.items],
        "refused": refused,
        "left": len(CLIENT.messages.list(server).items),
    }


count = int(sys.argv[1])
with ThreadPoolExecutor(count) as pool:
    print(json.dumps(list(pool.map(sign_up, range(count)))))
