"""How a mail was handed over."""

from collections.abc import Iterator, Sequence

from mailcheck.checks.findings import Area, ChargedFinding
from mailcheck.checks.quality.wording import enumerate_some, note, warning
from mailcheck.core.messages import TlsFacts

OLD_VERSIONS = frozenset(("SSLv2", "SSLv3", "TLSv1", "TLSv1.0", "TLSv1.1"))
"""Versions that nobody is to use any more (RFC 8996)."""

WEAK_CIPHERS = ("NULL", "EXP", "RC4", "DES", "MD5", "ADH", "AECDH")
"""Parts of the names of ciphers that protect nothing (RFC 7525 4.1)."""

_TRANSPORT = Area.TRANSPORT


def judge_transport(
    tls: TlsFacts | None,
    *,
    is_extended: bool,
    transcript: Sequence[str] = (),
    tls_was_offered: bool,
) -> tuple[ChargedFinding, ...]:
    """Judge the SMTP session that brought the mail.

    :param is_extended: the client greeted with EHLO.
    :param transcript: lines ``C: ...`` and ``S: ...``; empty where it was not kept.
    :param tls_was_offered: our server offered STARTTLS to this client.
    """
    return (
        *_judge_tls(tls, is_extended=is_extended, tls_was_offered=tls_was_offered),
        *_judge_conversation(is_extended=is_extended, transcript=transcript),
    )


def is_smtputf8(transcript: Sequence[str]) -> bool:
    """Tell whether the client asked for SMTPUTF8 in its last MAIL command (RFC 6531 3.4)."""
    commands = [line.upper() for line in transcript if line[:13].upper() == "C: MAIL FROM:"]
    return bool(commands) and "SMTPUTF8" in commands[-1].rpartition(">")[2].split()


def _judge_tls(
    tls: TlsFacts | None, *, is_extended: bool, tls_was_offered: bool
) -> Iterator[ChargedFinding]:
    if tls is None and tls_was_offered:
        how = "" if is_extended else ", since it greeted with HELO"
        yield warning(
            _TRANSPORT,
            "transport.no-tls",
            f"The mail came over a connection without encryption{how}; Google asks every sender"
            " for TLS.",
            "Let your mail server use STARTTLS where it is offered (Postfix:"
            " smtp_tls_security_level = may).",
        )
    elif tls is None:
        yield note(
            _TRANSPORT,
            "transport.tls-not-offered",
            "This server offered no encryption to the client, so nothing can be said about it.",
            "Nothing to do; the operator of this server can configure a certificate.",
        )
    elif tls.version in OLD_VERSIONS:
        yield warning(
            _TRANSPORT,
            "transport.old-tls",
            f"The connection was encrypted with {tls.version}, which is no longer safe; receivers"
            " are switching it off.",
            "Let your mail server use TLS 1.2 and 1.3 (a newer OpenSSL may do).",
        )
    if tls is not None and any(name in tls.cipher.upper() for name in WEAK_CIPHERS):
        yield warning(
            _TRANSPORT,
            "transport.weak-cipher",
            f"The connection was encrypted with {enumerate_some((tls.cipher,))}, which protects"
            " little.",
            "Leave the choice of ciphers to a current version of your mail server.",
        )


def _judge_conversation(
    *, is_extended: bool, transcript: Sequence[str]
) -> Iterator[ChargedFinding]:
    if not is_extended:
        yield note(
            _TRANSPORT,
            "transport.helo",
            "The sender greeted with HELO, the form from before 1995, which knows neither"
            " encryption nor sizes.",
            "Use a mail server or library that greets with EHLO.",
        )
    refused = [line[3:] for line in transcript if line[:4] == "S: 5" and line[4:6].isdigit()]
    if refused:
        yield note(
            _TRANSPORT,
            "transport.refused-commands",
            f"Commands of the sender were refused on the way: {enumerate_some(refused)}.",
            "Look at the transcript; a mail server makes no such mistakes, a program of one's own"
            " may.",
        )
