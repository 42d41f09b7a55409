"""Alerts in the formats of Slack, Teams, Discord and ntfy.

The text of an alert has words of strangers, such as DNS records. It is escaped, so that it
cannot mention people or hide a link. It is cut to the limits of each service, and says so.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, json

from mailcheck.core.webhooks import format_of, topic_of

SLACK_TITLE, SLACK_TEXT = 150, 2_900
"""Maximum characters of a header block, and of a section (3,000) with room for escapes."""

TEAMS_TEXT, TEAMS_BLOCK = 18_000, 80
"""Maximum bytes of the blocks of text, and of a block besides its text. Teams rejects messages of
28,672 bytes after it has wrapped them, and some from 21,000 bytes."""

DISCORD_TITLE, DISCORD_TEXT = 256, 3_500
"""Maximum characters of the title of an embed, and of its description (4,096) with escapes."""

NTFY_TITLE, NTFY_TEXT = 200, 3_800
"""Maximum characters of the title, and maximum bytes of the message with room for the last line. A
message of more than 4,096 bytes becomes an attachment."""

RED, GREEN = 0xB3261E, 0x1A7F37
"""Colours of embeds for Discord."""

OPEN_PAGE = "Open mailcheck"

Json = Mapping[str, Any]

_SLACK_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_MARKDOWN = re.compile(r"([\\*_~`|>#\[\]()])")


class ChatAlert(Struct, frozen=True):
    """An alert for a chat: a title, lines of text, and the page that it leads to.

    ``is_over``: all problems in it are resolved.
    """

    title: str
    lines: tuple[str, ...]
    page: str
    is_over: bool


def read_alert(subject: str, text: str, page: str) -> ChatAlert:
    """Return the alert that a mail contains (`send_alerts.write_alert_mail`)."""
    lines = tuple(line for line in text.splitlines() if line.strip())
    is_over = lines[:1] == ("Resolved problems:",)
    return ChatAlert(subject, lines, page, is_over)


def write_chat_alert(receiver: str, alert: ChatAlert) -> Json:
    """Render an alert as the JSON that a receiver expects.

    :param receiver: the URL of a receiver, which begins with a format.
    """
    return _WRITERS[format_of(receiver)](alert, receiver)


def _slack(alert: ChatAlert, _: str) -> Json:
    def escape(text: str) -> str:
        return "".join(_SLACK_ENTITIES.get(character, character) for character in text)

    text = escape("\n".join(_cut(alert.lines, lambda line: len(escape(line)), SLACK_TEXT)))
    title = _shorten(alert.title, SLACK_TITLE)
    return {
        "text": escape(title),
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": title}},
            {"type": "section", "text": {"type": "mrkdwn", "text": text or escape(title)}},
            {
                "type": "context",
                "elements": [{"type": "mrkdwn", "text": f"<{alert.page}|{OPEN_PAGE}>"}],
            },
        ],
    }


def _teams(alert: ChatAlert, _: str) -> Json:
    def measure(line: str) -> int:
        return len(json.encode(_markdown(line))) + TEAMS_BLOCK

    lines = _cut(alert.lines, measure, TEAMS_TEXT)
    title = {
        "type": "TextBlock",
        "text": _markdown(_shorten(alert.title, SLACK_TITLE)),
        "wrap": True,
        "weight": "Bolder",
        "size": "Medium",
        "color": "Good" if alert.is_over else "Attention",
    }
    body = [
        {"type": "TextBlock", "text": _markdown(line), "wrap": True, "spacing": "Small"}
        for line in lines
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",  # Workflows refuse 1.5
        "body": [title, *body],
        "actions": [{"type": "Action.OpenUrl", "title": OPEN_PAGE, "url": alert.page}],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(alert: ChatAlert, _: str) -> Json:
    lines = _cut(alert.lines, lambda line: len(_markdown(line)), DISCORD_TEXT)
    return {
        "allowed_mentions": {"parse": []},
        "embeds": [
            {
                "title": _shorten(alert.title, DISCORD_TITLE),
                "description": "\n".join(map(_markdown, lines)),
                "url": alert.page,
                "color": GREEN if alert.is_over else RED,
            }
        ],
    }


def _ntfy(alert: ChatAlert, receiver: str) -> Json:
    lines = _cut(alert.lines, lambda line: len(line.encode()), NTFY_TEXT)
    return {
        "topic": topic_of(receiver),
        "title": _shorten(alert.title, NTFY_TITLE),
        "message": "\n".join(lines) or alert.title,
        "tags": ["white_check_mark" if alert.is_over else "warning"],
        "priority": 3 if alert.is_over else 4,
        "click": alert.page,
        "actions": [{"action": "view", "label": OPEN_PAGE, "url": alert.page}],
    }


_WRITERS: Mapping[str, Callable[[ChatAlert, str], Json]] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "ntfy": _ntfy,
}


def _markdown(text: str) -> str:
    """Escape Markdown. A bullet at the beginning of a line stays."""
    if text.startswith("* "):
        return f"* {_markdown(text[2:])}"
    return _MARKDOWN.sub(r"\\\1", text)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _cut(lines: Sequence[str], measure: Callable[[str], int], most: int) -> list[str]:
    """Return the first lines that fit, and a last line with the number of the others."""
    kept: list[str] = []
    size = 0
    for number, line in enumerate(lines):
        size += measure(line) + 1
        if size > most:
            begun = _fitting(line, measure, most) if not kept else ""
            left = len(lines) - number
            more = f"... and {left} more lines" if left > 1 else "... and 1 more line"
            return [*kept, *([f"{begun}..."] if begun else []), more]
        kept.append(line)
    return kept


def _fitting(line: str, measure: Callable[[str], int], most: int) -> str:
    """Return the beginning of a line that fits by itself."""
    while measure(line) > most:
        line = line[: len(line) * 3 // 4]
    return line
