"""Sample mails: one without any finding, and variants of it."""

HEADER = {
    "From": "News <news@example.com>",
    "To": "reader@example.net",
    "Subject": "What happened in November",
    "Date": "Sat, 21 Nov 2026 10:00:00 +0000",
    "Message-ID": "<1@example.com>",
    "MIME-Version": "1.0",
    "List-Unsubscribe": "<https://example.com/u/1>, <mailto:u@example.com>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    "Content-Type": "multipart/alternative; boundary=b",
}
WORDS = (
    "In November we opened a second office, met more than forty readers at the book fair,"
    " and wrote down what each of them wished for the coming year; here is what we learned."
)
TEXT = f"{WORDS}\r\nUnsubscribe: https://example.com/u/1"
HTML = (
    f"<p>{WORDS}</p><p><a href='https://example.com/u/1'>Unsubscribe</a></p>"
    "<img src='https://example.com/a.png' alt='The book fair' width='600'>"
)


def make_parts(text: str | None = TEXT, html: str | None = HTML) -> str:
    """Return a multipart/alternative body with a text and an HTML part and the boundary ``b``."""
    parts = [("plain", text), ("html", html)]
    written = [
        f"--b\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n{content}\r\n"
        for kind, content in parts
        if content is not None
    ]
    return "".join(written) + "--b--\r\n"


def make_mail(
    *lines: str, body: str | None = None, without: tuple[str, ...] = (), **changed: str
) -> bytes:
    """Return the faultless mail with changed, omitted or added fields.

    :param lines: whole fields to append to the header.
    :param changed: names with ``_`` for ``-``, in any case.
    """
    new = {name.replace("_", "-").lower(): value for name, value in changed.items()}
    left_out = {name.lower() for name in without}
    fields = [
        f"{name}: {new.pop(name.lower(), value)}"
        for name, value in HEADER.items()
        if name.lower() not in left_out
    ]
    fields += [f"{name}: {value}" for name, value in new.items()]
    header = "\r\n".join((*fields, *lines))
    content = make_parts() if body is None else body
    return f"{header}\r\n\r\n{content}".encode("utf-8", "surrogateescape")


def make_html_mail(html: str) -> bytes:
    """Return the faultless mail with additional HTML."""
    return make_mail(body=make_parts(html=HTML + html))
