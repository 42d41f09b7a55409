"""The keys that a mail's signatures name (RFC 6376 6.1.2)."""

from collections.abc import Iterable

from mailcheck.checks.dkim.key_record import is_key_record, parse_key_record
from mailcheck.checks.dkim.mail_verdicts import KeyOfSignature, KeyState, SignatureHeader
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dns_records import txt_values
from mailcheck.checks.lookups import look_up


def evaluate_keys(
    headers: Iterable[SignatureHeader], answers: Answers
) -> tuple[KeyOfSignature, ...]:
    """Give the key of each signature, in order; all names are asked for at once."""
    return tuple(
        KeyOfSignature(KeyState.NOT_ASKED) if header.problem else find_key(header.key_name, answers)
        for header in headers
    )


def find_key(name: str, answers: Answers) -> KeyOfSignature:
    """Give the key that stands at a name."""
    answer = look_up(answers, name, "TXT")
    place = answer.canonical_name or name
    if not answer.status.is_determined:
        return KeyOfSignature(KeyState.UNDETERMINED, record_name=place)
    texts = txt_values(answer)
    keys = [text for text in texts if is_key_record(text)]
    if len(keys) == 1:
        return KeyOfSignature(KeyState.FOUND, parse_key_record(keys[0]), place)
    if keys:
        return KeyOfSignature(KeyState.SEVERAL, record_name=place)
    return KeyOfSignature(KeyState.OTHER if texts else KeyState.ABSENT, record_name=place)
