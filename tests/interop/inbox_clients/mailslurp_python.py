"""Uses the inbox as tests with MailSlurp's client for Python do. Usage: mailslurp_python.py COUNT.

It prints the same as mailosaur_client.py.
"""

import base64
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import mailslurp_client as slurp

CONFIGURATION = slurp.Configuration(host=f"{os.environ['MAILCHECK_URL']}/mailslurp")
CONFIGURATION.api_key["x-api-key"] = os.environ["MAILCHECK_API_KEY"]
API = slurp.ApiClient(CONFIGURATION)
INBOXES = slurp.InboxControllerApi(API)
EMAILS = slurp.EmailControllerApi(API)
WAITS = slurp.WaitForControllerApi(API)


def sign_up(number: int) -> dict[str, object]:
    """Wait for a mail, use it, and delete it."""
    inbox = INBOXES.create_inbox(name=f"test {number}")
    print(f"{inbox.email_address}\n", end="", flush=True)  # in one piece, since others print too
    began = time.monotonic()
    message = WAITS.wait_for_latest_email(inbox_id=inbox.id, timeout=30_000, unread_only=True)
    waited = time.monotonic() - began
    (file,) = [one for one in EMAILS.get_email_attachments(message.id) if one.name == "a.csv"]
    content = EMAILS.download_attachment_base64(message.id, file.id).base64_file_contents
    match = slurp.MatchOption(field="SUBJECT", should="CONTAIN", value="welcome")
    found = WAITS.wait_for_matching_emails(
        inbox.id, 1, slurp.MatchOptions(matches=[match]), timeout=1_000, unread_only=False
    )
    code = EMAILS.get_email_codes(message.id).code
    link = EMAILS.get_email_links(message.id).links[0]
    pattern = slurp.ContentMatchOptions(pattern=r"code is <b>(\d{6})")
    assert EMAILS.get_email_content_match(message.id, pattern).matches[1] == code
    try:
        INBOXES.send_email_and_confirm(inbox.id, slurp.SendEmailOptions(to=["a@example.com"]))
        refused = ""
    except slurp.ApiException as error:
        refused = error.body
    EMAILS.delete_email(message.id)
    return {
        "waited": waited,
        "code": code,
        "link": link,
        "file": base64.b64decode(content).decode(),
        "found": [one.subject for one in found],
        "refused": refused,
        "left": INBOXES.get_inbox_email_count(inbox.id).total_elements,
    }


count = int(sys.argv[1])
with ThreadPoolExecutor(count) as pool:
    print(json.dumps(list(pool.map(sign_up, range(count)))))
