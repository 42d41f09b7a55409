"""Code snippets and commands that users copy, with their API key."""

import json
import shlex

from msgspec import Struct

from mailcheck.api.urls import PublicUrls


class Snippet(Struct, frozen=True):
    """Text to copy. ``name`` is unique on a page."""

    name: str
    title: str
    text: str


KEY_VARIABLE = "MAILCHECK_API_KEY"
"""Environment variable that the clients read the key from, beside ``MAILCHECK_URL``."""

KEY_PLACEHOLDER = "YOUR_API_KEY"
"""Stands for the key where it is not known: a key is shown only once."""


def write_snippets(urls: PublicUrls, secret: str, submission: str) -> list[Snippet]:
    """Return snippets that work without changes for the holder of the key.

    :param secret: the key, or ``""`` if programs read it from the environment, as in docs/.
    :param submission: host:port for submission with a key as the password, or ``""``.
    """
    return [
        Snippet("curl", "curl", _curl(urls, secret)),
        Snippet("python", "Python", _python(urls, secret)),
        Snippet("pytest", "pytest", _pytest(urls, secret)),
        Snippet("javascript", "JavaScript", _javascript(urls, secret)),
        Snippet("playwright", "Playwright's test runner", _playwright(urls, secret)),
        *(write_mailers(submission, secret) if submission else ()),
        Snippet("claude", "MCP: Claude Code", _claude_code(urls, secret)),
        Snippet("mcp", "MCP: other clients", _mcp_json(urls, secret)),
    ]


def write_first_mail(server: str, recipient: str) -> str:
    """Return a command that sends a mail with a code and a link. ``server`` is host:port."""
    body = r"Subject: Welcome\n\nYour code is 482913: https://example.com/confirm?t=7f3a\n"
    return f"""\
printf '{body}' |
  curl -s --crlf -T - smtp://{server} --mail-from shop@example.com \\
    --mail-rcpt {recipient}
"""


def write_mailers(submission: str, secret: str) -> list[Snippet]:
    """Return the mail settings of frameworks. All mail that they send is caught here.

    Without ``secret`` they read the key from ``MAILCHECK_API_KEY``, as the clients do.
    """
    host, _, port = submission.rpartition(":")
    return [
        Snippet("django", "Django: settings.py", _django(host, port, secret)),
        Snippet("rails", "Rails: config/environments/test.rb", _rails(host, port, secret)),
        Snippet("laravel", "Laravel: .env", _laravel(host, port, secret)),
        Snippet("nodemailer", "nodemailer", _nodemailer(host, port, secret)),
    ]


def _django(host: str, port: str, secret: str) -> str:
    password = json.dumps(secret) if secret else f'os.environ["{KEY_VARIABLE}"]'
    settings = f"""\
EMAIL_HOST, EMAIL_PORT = {json.dumps(host)}, {port}
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = "shop", {password}
"""
    return settings if secret else f"import os\n\n{settings}"


def _rails(host: str, port: str, secret: str) -> str:
    password = json.dumps(secret) if secret else f'ENV.fetch("{KEY_VARIABLE}")'
    return f"""\
config.action_mailer.delivery_method = :smtp
config.action_mailer.smtp_settings = {{
  address: {json.dumps(host)}, port: {port},
  user_name: "shop", password: {password}, authentication: :plain
}}
"""


def _laravel(host: str, port: str, secret: str) -> str:
    return f"""\
MAIL_MAILER=smtp
MAIL_HOST={host}
MAIL_PORT={port}
MAIL_USERNAME=shop
MAIL_PASSWORD={secret or f'"${{{KEY_VARIABLE}}}"'}
"""


def _nodemailer(host: str, port: str, secret: str) -> str:
    password = json.dumps(secret) if secret else f"process.env.{KEY_VARIABLE}"
    return f"""\
import nodemailer from "nodemailer";

export const transport = nodemailer.createTransport({{
  host: {json.dumps(host)},
  port: {port},
  auth: {{ user: "shop", pass: {password} }},
}});
"""


def _environment(urls: PublicUrls, secret: str) -> str:
    """Return the assignments before a command that tell the clients URL and key, and a blank."""
    if not secret:
        return ""
    return f"MAILCHECK_URL={shlex.quote(urls.public_url)} {KEY_VARIABLE}={shlex.quote(secret)} "


def _pytest(urls: PublicUrls, secret: str) -> str:
    return f"""\
# curl -sO {urls.public_url}/clients/mailcheck_client.py
# {_environment(urls, secret)}pytest -p mailcheck_client
def test_sign_up(mail_address):  # a new address for this test
    sign_up(email=mail_address.email)
    mail = mail_address.wait(timeout=20)
    assert mail.code
"""


def _playwright(urls: PublicUrls, secret: str) -> str:
    return f"""\
// curl -sO {urls.public_url}/clients/mailcheck.mjs
// {_environment(urls, secret)}npx playwright test
import {{ test, expect }} from "@playwright/test";

test("sign up", async ({{ page }}) => {{
  const {{ Mailcheck }} = await import("./mailcheck.mjs");
  const address = await new Mailcheck().newAddress("signup");
  await page.goto("http://127.0.0.1:5000/");
  await page.getByLabel("Email").fill(address.email);
  await page.getByRole("button", {{ name: "Sign up" }}).click();
  const mail = await address.wait({{ timeoutMs: 20_000 }});
  await page.goto(mail.link);
}});
"""


def _curl(urls: PublicUrls, secret: str) -> str:
    key = shlex.quote(secret) if secret else f"${KEY_VARIABLE}"
    return f"""\
KEY={key}; API={shlex.quote(urls.base_url)}

# a new address for this test, and the cursor to wait from
ANSWER=$(curl -s -H "X-API-Key: $KEY" "$API/inbox/address?tag=signup"); echo "$ANSWER"
CURSOR=$(echo "$ANSWER" | sed 's/.*"cursor":"//; s/".*//')

# the first mail to it, with its code and link, as soon as it arrives
curl -s -H "X-API-Key: $KEY" "$API/inbox/wait?tag=signup&after=$CURSOR&timeout=60"
"""


def _python(urls: PublicUrls, secret: str) -> str:
    where = f"{json.dumps(urls.public_url)}, {json.dumps(secret)}" if secret else ""
    return f"""\
# curl -sO {urls.public_url}/clients/mailcheck_client.py
from mailcheck_client import Mailcheck

mailcheck = Mailcheck({where})
address = mailcheck.new_address("signup")
print("send the mail to", address.email)
mail = address.wait(timeout=60)
print(mail["subject"], mail["codes"], mail["links"])
"""


def _javascript(urls: PublicUrls, secret: str) -> str:
    url, key = json.dumps(urls.public_url), json.dumps(secret)
    where = f"{{\n  url: {url},\n  key: {key},\n}}" if secret else ""
    return f"""\
// curl -sO {urls.public_url}/clients/mailcheck.mjs
import {{ Mailcheck }} from "./mailcheck.mjs";

const mailcheck = new Mailcheck({where});
const address = await mailcheck.newAddress("signup");
console.log("send the mail to", address.email);
const mail = await address.wait({{ timeout: 60 }});
console.log(mail.subject, mail.codes, mail.links);
"""


def _claude_code(urls: PublicUrls, secret: str) -> str:
    bearer = "Authorization: Bearer"
    header = shlex.quote(f"{bearer} {secret}") if secret else f'"{bearer} ${KEY_VARIABLE}"'
    return f"""\
claude mcp add --transport http mailcheck {shlex.quote(urls.mcp_url)} \\
  --header {header}
"""


def _mcp_json(urls: PublicUrls, secret: str) -> str:
    headers = {"Authorization": f"Bearer {secret or f'${{{KEY_VARIABLE}}}'}"}
    server = {"type": "http", "url": urls.mcp_url, "headers": headers}
    return json.dumps({"mcpServers": {"mailcheck": server}}, indent=2) + "\n"
