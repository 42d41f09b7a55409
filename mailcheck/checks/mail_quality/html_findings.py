"""Findings about the HTML of a mail."""

from collections.abc import Iterator

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.mail_quality.facts import HtmlFacts
from mailcheck.checks.mail_quality.wording import count_of, enumerate_some, note, quote, warning

CLIPPED_SIZE = 102 * 1024
"""Octets of HTML that Gmail shows; behind them stands "[Message clipped]"."""

FEW_LETTERS = 100
"""Characters of text below which a mail with pictures is a picture to a filter."""

LETTERS_PER_IMAGE = 50
"""Characters of text that each picture needs beside it."""

HIDDEN_LETTERS = 40
"""Characters of hidden text that are a preheader's rest or a label for screen readers."""

_CONTENT = Area.CONTENT


def judge_html(html: HtmlFacts) -> Iterator[ChargedFinding]:
    """Judge what the HTML is made of."""
    yield from _judge_size(html)
    yield from _judge_images(html)
    yield from _judge_image_sources(html)
    yield from _judge_what_is_removed(html)
    yield from _judge_markup(html)


def _judge_size(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.size > CLIPPED_SIZE:
        yield warning(
            _CONTENT,
            "content.clipped",
            f"The HTML has {html.size // 1024} KiB; Gmail shows the first 102 and cuts off the"
            " rest, with the link to unsubscribe.",
            "Make the HTML smaller: fewer inline styles, no comments, no blanks between tags.",
        )
    if html.is_base64:
        yield note(
            _CONTENT,
            "content.base64-html",
            "The HTML is sent as base64, which makes it a third larger, and which some filters"
            " count against a mail.",
            "Send it as quoted-printable, if your program lets you choose.",
        )


def _judge_images(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.images_without_alt:
        yield note(
            _CONTENT,
            "content.images-without-alt",
            f"Pictures without a text in their place: {html.images_without_alt} of"
            f" {html.image_count}; people who don't load pictures or can't see them miss those.",
            'Give every picture an alt text, and alt="" to those that only decorate.',
        )
    letters_needed = max(FEW_LETTERS, html.image_count * LETTERS_PER_IMAGE)
    if html.image_count and html.visible_length < letters_needed:
        yield warning(
            _CONTENT,
            "content.mostly-images",
            f"The mail has {count_of(html.image_count, 'picture')} and only"
            f" {count_of(html.visible_length, 'character')} of text; spam hides its words in"
            " pictures, so filters mark that.",
            "Say in text what the mail is about, and let pictures go with it.",
        )


def _judge_image_sources(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.insecure_images:
        yield note(
            _CONTENT,
            "content.insecure-images",
            f"The HTML loads {count_of(html.insecure_images, 'picture')} over http; some programs"
            " don't show what does not come over https.",
            "Serve pictures over https.",
        )
    if html.inline_data_images:
        yield note(
            _CONTENT,
            "content.data-images",
            f"The HTML has {count_of(html.inline_data_images, 'picture')} written into it (data:);"
            " Gmail and Outlook don't show those.",
            "Attach pictures with a Content-ID, or serve them over https.",
        )


def _judge_what_is_removed(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.active_elements or html.event_handlers:
        names = html.active_elements or ("on... attributes",)
        yield warning(
            _CONTENT,
            "content.active",
            "The HTML has elements that run programs or load other pages"
            f" ({enumerate_some(names)}); mail programs remove them and filters distrust them.",
            "Leave them out and link to a web page instead.",
        )
    if html.form_count:
        yield warning(
            _CONTENT,
            "content.form",
            "The HTML has a form; most mail programs don't send it, and many warn of it as fraud.",
            "Link to a web page that has the form.",
        )
    if html.external_styles:
        yield note(
            _CONTENT,
            "content.external-styles",
            "The HTML loads a style sheet from elsewhere, which mail programs don't do.",
            "Write the styles into the elements or into a style block.",
        )


def _judge_markup(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.hidden_length > HIDDEN_LETTERS:
        yield warning(
            _CONTENT,
            "content.hidden-text",
            f"{html.hidden_length} characters of text are hidden from people"
            f" (\u201c{quote(html.hidden_sample)}\u201d); spam hides words for filters so.",
            "Leave hidden text out, but for one short preheader at the top.",
        )
    if html.has_unclosed_comment:
        yield warning(
            _CONTENT,
            "content.unclosed-comment",
            "A comment in the HTML is not closed, so what follows it may not be shown.",
            'End the comment with "-->".',
        )
    if html.unclosed:
        yield note(
            _CONTENT,
            "content.unclosed-elements",
            f"Elements are opened and not closed: {enumerate_some(html.unclosed)}; each program"
            " guesses differently where they end.",
            "Write the missing end tags.",
        )
