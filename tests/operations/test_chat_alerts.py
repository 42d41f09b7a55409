"""Alerts in the formats of chats: shape, escapes, limits, and who gets which alert."""

import json
import re
from email import message_from_bytes
from email.policy import SMTP
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.webhooks import (
    CHAT_FORMATS,
    PAUSED_RETRY,
    Attempt,
    address_of,
    failed,
    parse_alert_receiver,
    parse_alert_receivers,
    post_url,
    receivers_for,
)
from mailcheck.operations.domains.watches.chat_alerts import (
    ChatAlert,
    read_alert,
    write_chat_alert,
)
from mailcheck.operations.domains.watches.send_alerts import MailHead, write_alert_mail
from tests.engines.deliveries import NOON, webhook
from tests.operations.test_operations_send_alerts import alert
from tests.table import rows

PAGE = "https://mail.example.com/p/ann/domains"
URLS = {
    "slack": "slack:https://hooks.slack.com/services/T/B/x",
    "teams": "teams:https://a.environment.api.powerplatform.com:443/invoke?api-version=1&sig=x%2Fy",
    "discord": "discord:https://discord.com/api/webhooks/1/x",
    "ntfy": "ntfy:https://ntfy.example.com/base/topic?auth=abc",
}

HOSTILE = (
    "* a.example: <!channel> @everyone *bold* [x](https://evil.example) `_dmarc` & (since now)"
)


def write(form: str, *lines: str, title: str = "a.example: it broke") -> Any:
    """Render an alert."""
    return write_chat_alert(URLS[form], ChatAlert(title, lines, PAGE, is_over=False))


def texts(value: Any) -> str:
    """Return all texts in a JSON value."""
    if isinstance(value, dict):
        return " ".join(map(texts, value.values()))
    return " ".join(map(texts, value)) if isinstance(value, list) else str(value)


@rows(*CHAT_FORMATS)
def test_each_format_has_title_lines_and_page(form: str) -> None:
    """Each format shows the title, each line, and where to go on."""
    found = texts(write(form, "Open problems:", "* a.example: SPF is missing"))
    for part in ("a.example: it broke", "Open problems:", "SPF is missing", PAGE):
        assert part in found


def test_slack_escapes() -> None:
    """No text of a stranger mentions a channel or makes a link in Slack."""
    found = write("slack", HOSTILE)
    assert "&lt;!channel&gt;" in found["blocks"][1]["text"]["text"]
    assert " &amp; " in found["blocks"][1]["text"]["text"]
    assert found["text"] == "a.example: it broke"
    assert write("slack", "x", title="<!here>")["text"] == "&lt;!here&gt;"


def test_discord_escapes() -> None:
    """No text of a stranger mentions a person, or hides a link, in Discord."""
    found = write("discord", HOSTILE)
    assert found["allowed_mentions"] == {"parse": []}
    (embed,) = found["embeds"]
    assert r"\[x\]\(https://evil.example\)" in embed["description"]
    assert embed["description"].startswith("* a.example")


def test_a_card_for_teams() -> None:
    """Workflows accept an attachment with a card of version 1.4, whose text is escaped."""
    found = write("teams", HOSTILE)
    (attachment,) = found["attachments"]
    card = attachment["content"]
    assert (found["type"], card["type"], card["version"]) == ("message", "AdaptiveCard", "1.4")
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert r"\[x\]\(https://evil.example\)" in card["body"][1]["text"]


def test_a_message_for_ntfy() -> None:
    """Ntfy gets JSON at the root of its server, with the topic in it."""
    found = write("ntfy", HOSTILE)
    assert post_url(URLS["ntfy"]) == "https://ntfy.example.com/base/?auth=abc"
    assert (found["topic"], found["message"], found["priority"]) == ("topic", HOSTILE, 4)


@rows(*product(CHAT_FORMATS, ["* " + "é" * 148, "* " + "_&" * 74, "x" * 50_000]))
def test_long_alerts_are_cut(form: str, line: str) -> None:
    """A hundred lines fit into the limits of each service. The last one says what is missing."""
    found = write(form, *[line] * 100, title="t" * 500)
    assert re.search(r"\.\.\. and \d+ more lines", texts(found))
    size = len(json.dumps(found, ensure_ascii=False).encode())
    if form == "slack":
        assert len(found["blocks"][0]["text"]["text"]) <= 150
        assert len(found["blocks"][1]["text"]["text"]) <= 3_000
    elif form == "teams":
        assert size <= 20_000
    elif form == "discord":
        (embed,) = found["embeds"]
        assert len(embed["title"]) <= 256
        assert len(embed["description"]) <= 4_096
        assert len(embed["title"]) + len(embed["description"]) <= 6_000
    else:
        assert len(found["message"].encode()) <= 4_096


def test_a_mail_becomes_an_alert() -> None:
    """The title is the subject of the mail. An alert about ends only is good news."""
    problem = alert("a.example", "SPF is missing.")
    over = replace(problem, ended_at=NOON, ending="Resolved: SPF is fine.")
    head = MailHead("alerts@example.com", "ann@example.com", "token", NOON)
    for alerts, is_over in (([problem], False), ([over], True), ([problem, over], False)):
        mail = message_from_bytes(write_alert_mail(alerts, head), policy=SMTP)
        found = read_alert("subject", mail.get_content(), PAGE)
        assert (found.title, found.is_over) == ("subject", is_over)
        assert len(found.lines) == 2 * len(alerts)
    assert write_chat_alert(URLS["discord"], found)["embeds"][0]["url"] == PAGE


@rows(
    (URLS["slack"].removeprefix("slack:"), URLS["slack"]),
    (URLS["discord"].removeprefix("discord:"), URLS["discord"]),
    ("https://ntfy.sh/topic", "ntfy:https://ntfy.sh/topic"),
    (URLS["teams"], URLS["teams"]),
    ("error=" + URLS["ntfy"], "error=" + URLS["ntfy"]),
    ("warning=Ops@Example.com", "warning=mailto:Ops@example.com"),
    ("https://ops.example.com/?error=x", "https://ops.example.com/?error=x"),
)
def test_receivers(text: str, expected: str) -> None:
    """A receiver has a kind and a format, which need not be named for well-known hosts."""
    assert parse_alert_receiver(text) == expected
    assert parse_alert_receiver(address_of(expected)) == expected


@rows(
    ("slack:hooks.slack.com", "the URL after slack: must be an http or https address"),
    ("ntfy:https://ntfy.sh/", "the URL after ntfy: must end with the topic"),
    ("slack:mailto:a@b.example", "the URL after slack: must be an http or https address"),
    ("error=example.com", "must be an http or https address"),
    ("irc:https://irc.example.com/x", "must be an http or https address"),
)
def test_wrong_receivers(text: str, problem: str) -> None:
    """A receiver of another form is rejected."""
    with pytest.raises(InvalidParameter, match=problem):
        parse_alert_receiver(text)


def test_kinds_of_alerts() -> None:
    """A receiver with a kind gets only these alerts, and each receiver gets an alert once."""
    named = parse_alert_receivers(
        ["error=a@x.example", "warning=b@x.example", "c@x.example", "error=c@x.example"]
    )
    assert receivers_for(named, "error") == ("mailto:a@x.example", "mailto:c@x.example")
    assert receivers_for(named, "warning") == ("mailto:b@x.example", "mailto:c@x.example")
    assert receivers_for(named, "note") == ("mailto:c@x.example",)


def test_a_receiver_that_asks_to_wait() -> None:
    """The next attempt is not before the time that the receiver has named, within limits."""
    one = webhook("ci")
    for asked, expected in ((60_000, 60_000), (2 * PAUSED_RETRY, PAUSED_RETRY), (0, 5_000)):
        after = failed(one, Attempt(429, "slow down", retry_after=asked), NOON, 0.0)
        assert after.retry_at == NOON + expected
