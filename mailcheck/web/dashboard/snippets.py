"""What to paste where, with a new key already in it."""

import json
import shlex
from dataclasses import dataclass

from mailcheck.wire.urls import PublicUrls


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of text to copy; ``name`` tells it apart on a page."""

    name: str
    title: str
    text: str


def write_snippets(urls: PublicUrls, secret: str) -> list[Snippet]:
    """Write what works as it stands for whoever holds the key."""
    return [
        Snippet("curl", "curl", _curl(urls, secret)),
        Snippet("python", "Python", _python(urls, secret)),
        Snippet("javascript", "JavaScript", _javascript(urls, secret)),
        Snippet("claude", "MCP: Claude Code", _claude_code(urls, secret)),
        Snippet("mcp", "MCP: other clients", _mcp_json(urls, secret)),
    ]


def write_first_mail(server: str, recipient: str) -> str:
    """Write a command that sends a mail with a code and a link; ``server`` is host:port."""
    body = r"Subject: Welcome\n\nYour code is 482913: https://example.com/confirm?t=7f3a\n"
    return f"""\
printf '{body}' |
  curl -s --crlf -T - smtp://{server} --mail-from shop@example.com \\
    --mail-rcpt {recipient}
"""


def _curl(urls: PublicUrls, secret: str) -> str:
    return f"""\
KEY={shlex.quote(secret)}; API={shlex.quote(urls.base_url)}

# an address for this test, and the cursor to wait from
ANSWER=$(curl -s -H "X-API-Key: $KEY" "$API/inbox/address?tag=signup"); echo "$ANSWER"
CURSOR=$(echo "$ANSWER" | sed 's/.*"cursor":"//; s/".*//')

# the first mail to it, with its code and link, as soon as it is there
curl -s -H "X-API-Key: $KEY" "$API/inbox/wait?tag=signup&after=$CURSOR&timeout=60"
"""


def _python(urls: PublicUrls, secret: str) -> str:
    return f"""\
# curl -sO {urls.public_url}/clients/mailcheck_client.py
from mailcheck_client import Mailcheck

mailcheck = Mailcheck({json.dumps(urls.public_url)}, {json.dumps(secret)})
address = mailcheck.new_address("signup")
print("send the mail to", address.email)
mail = address.wait(timeout=60)
print(mail["subject"], mail["codes"], mail["links"])
"""


def _javascript(urls: PublicUrls, secret: str) -> str:
    return f"""\
// curl -sO {urls.public_url}/clients/mailcheck.mjs
import {{ Mailcheck }} from "./mailcheck.mjs";

const mailcheck = new Mailcheck({{
  url: {json.dumps(urls.public_url)},
  key: {json.dumps(secret)},
}});
const address = await mailcheck.newAddress("signup");
console.log("send the mail to", address.email);
const mail = await address.wait({{ timeout: 60 }});
console.log(mail.subject, mail.codes, mail.links);
"""


def _claude_code(urls: PublicUrls, secret: str) -> str:
    header = shlex.quote(f"Authorization: Bearer {secret}")
    return f"""\
claude mcp add --transport http mailcheck {shlex.quote(urls.mcp_url)} \\
  --header {header}
"""


def _mcp_json(urls: PublicUrls, secret: str) -> str:
    headers = {"Authorization": f"Bearer {secret}"}
    server = {"type": "http", "url": urls.mcp_url, "headers": headers}
    return json.dumps({"mcpServers": {"mailcheck": server}}, indent=2) + "\n"
