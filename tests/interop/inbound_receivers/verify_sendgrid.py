"""Verifies a request of SendGrid with its library, and prints the result.

Reads JSON from stdin: the key, the two headers, and the body.
"""

import json
import sys

from sendgrid.helpers.eventwebhook import EventWebhook

given = json.load(sys.stdin)
webhook = EventWebhook(given["key"])
print(webhook.verify_signature(given["body"], given["signature"], given["timestamp"]))
