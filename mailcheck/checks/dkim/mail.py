"""DKIM results of one received mail, with explanations and advice."""

from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.evaluate import DkimKey, describe_key
from mailcheck.checks.dkim.key_record import KeyRecord, read_key_records
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dns_answers import Answers, look_up, txt_values
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.findings_table import make_finding
from mailcheck.core.domains.domain_names import is_within
from mailcheck.core.instants import describe_duration


class KeyState(Enum):
    """The result of the lookup of a signature's key."""

    FOUND = "found"
    ABSENT = "absent"
    OTHER = "other"
    """There are TXT records, but none is a DKIM key."""
    SEVERAL = "several"
    UNDETERMINED = "undetermined"
    NOT_ASKED = "not asked"
    """The signature is malformed, so the location of its key is unknown."""


class SignatureKey(Struct, frozen=True):
    """The key of one signature; ``record`` is set if the state is ``FOUND``.

    ``record_name`` is the name of the record, or the target of a CNAME there.
    """

    state: KeyState
    record: KeyRecord | None = None
    record_name: str = ""


def evaluate_keys(headers: Iterable[SignatureHeader], answers: Answers) -> tuple[SignatureKey, ...]:
    """Return the key of each signature, in order; all names are queried at once."""
    return tuple(
        SignatureKey(KeyState.NOT_ASKED)
        if header.problem
        else look_up_key(header.key_name, answers)
        for header in headers
    )


def look_up_key(name: str, answers: Answers) -> SignatureKey:
    """Return the key at a name."""
    answer = look_up(answers, name, "TXT")
    place = answer.canonical_name or name
    if not answer.status.is_determined:
        return SignatureKey(KeyState.UNDETERMINED, record_name=place)
    texts = txt_values(answer)
    keys = read_key_records(texts)
    if len(keys) == 1:
        return SignatureKey(KeyState.FOUND, keys[0], place)
    if keys:
        return SignatureKey(KeyState.SEVERAL, record_name=place)
    return SignatureKey(KeyState.OTHER if texts else KeyState.ABSENT, record_name=place)


class SignatureFault(Enum):
    """Why a signature does not pass. The values are the ids of the findings."""

    MALFORMED = "dkim.malformed"
    KEY_UNDETERMINED = "dkim.key-undetermined"
    NO_KEY = "dkim.no-key"
    NO_KEY_RECORD = "dkim.no-key-record"
    SEVERAL_KEYS = "dkim.several-keys"
    KEY_REVOKED = "dkim.key-revoked"
    KEY_BROKEN = "dkim.key-broken"
    KEY_TOO_SHORT = "dkim.key-too-short"
    KEY_OF_OTHER_TYPE = "dkim.key-of-other-type"
    OTHER_IDENTITY = "dkim.other-identity"
    """The key has ``t=s``, which forbids an ``i=`` below ``d=``."""
    SHA1 = "dkim.sha1"
    EXPIRED = "dkim.expired"
    FROM_THE_FUTURE = "dkim.from-the-future"
    BODY_CUT = "dkim.body-cut"
    BODY_CHANGED = "dkim.body-changed"
    HEADER_CHANGED = "dkim.header-changed"


class SignatureOfMail(Struct, frozen=True):
    """One signature with its result.

    ``explanation`` is one sentence with the reason for the result. ``key`` is `None` if no key
    was found or it could not be looked up. ``fault`` is `None` if the signature passes.
    ``unsigned_octets`` is the number of octets at the end of the body that ``l=`` leaves
    unsigned. ``seconds_ahead`` is the time by which a passing signature is dated after the
    arrival of the mail. ``key_record_name`` is the name of the key record, or the target of a
    CNAME there.
    """

    header: SignatureHeader
    result: AuthResult
    key: KeyRecord | None
    explanation: str
    fault: SignatureFault | None = None
    unsigned_octets: int = 0
    seconds_ahead: int = 0
    key_record_name: str = ""

    @property
    def is_weak(self) -> bool:
        """Whether it passes with an RSA key that is too short to be advised (RFC 8301 3.2)."""
        return self.result is AuthResult.PASS and self.key is not None and not self.key.is_strong


class DkimOfMail(Struct, frozen=True):
    """All signatures of one mail, topmost first.

    ``unchecked`` is the number of signatures beyond the maximum that is verified.
    """

    signatures: tuple[SignatureOfMail, ...]
    unchecked: int = 0

    @property
    def passing(self) -> tuple[SignatureOfMail, ...]:
        """The signatures that verify."""
        return tuple(
            signature for signature in self.signatures if signature.result is AuthResult.PASS
        )

    @property
    def is_determined(self) -> bool:
        """Whether every signature is determined, or one passes anyway."""
        return bool(self.passing) or all(
            signature.result.is_determined for signature in self.signatures
        )


def describe_signatures(dkim: DkimOfMail) -> tuple[Finding, ...]:
    """Return all findings about the signatures of a mail, without duplicates."""
    return tuple(dict.fromkeys(_describe(dkim)))


def describe_signature(signature: SignatureOfMail, *, has_passing: bool) -> Iterator[Finding]:
    """Yield the findings about one signature, which are milder if another one passes."""
    if signature.fault is not None:
        yield _describe_fault(signature, signature.fault, has_passing=has_passing)
        return
    header = signature.header
    if signature.key is not None:
        where = signature.key_record_name
        key = DkimKey(
            selector=header.selector,
            record_name=header.key_name,
            record=signature.key,
            alias_of=where if where != header.key_name else "",
            is_one_of_several=False,
        )
        yield from describe_key(key, has_usable=True)
    if header.body_length is not None:
        rest = signature.unsigned_octets
        unsigned = f"; the last {rest} octets of this mail are not signed" if rest else ""
        yield make_finding(
            "dkim.body-length",
            signing_domain=header.signing_domain,
            body_length=header.body_length,
            unsigned=unsigned,
        )
    if signature.seconds_ahead:
        yield make_finding(
            "dkim.clock-ahead",
            signing_domain=header.signing_domain,
            seconds_ahead=describe_duration(signature.seconds_ahead),
        )


def choose_signature_to_fix(dkim: DkimOfMail, author_domain: str | None) -> SignatureOfMail | None:
    """Return the signature to fix if none is valid: the author's own, or the topmost."""
    author = author_domain or ""
    for signature in dkim.signatures:
        domain = signature.header.signing_domain
        if is_within(domain, author) or is_within(author, domain):
            return signature
    return next(iter(dkim.signatures), None)


def describe_invalid(dkim: DkimOfMail, author_domain: str | None) -> Finding:
    """Return a finding that no signature is valid, with the fix for the most useful one."""
    count = len(dkim.signatures)
    case = "one" if count == 1 else "several"
    telling = choose_signature_to_fix(dkim, author_domain)
    meaning = fix = ""
    if telling is not None and telling.fault is not None:
        cause = _describe_fault(telling, telling.fault, has_passing=False)
        meaning, fix = cause.meaning, cause.fix
    return make_finding("dkim.invalid", case=case, count=count, meaning=meaning, fix=fix)


def describe_unaligned(dkim: DkimOfMail, author_domain: str) -> Finding:
    """Return a finding that the valid signatures are not of the author domain."""
    signers = ", ".join(
        dict.fromkeys(signature.header.signing_domain for signature in dkim.passing)
    )
    return make_finding("dkim.unaligned", signers=signers, author_domain=author_domain)


def describe_undetermined(dkim: DkimOfMail, author_domain: str | None) -> Finding:
    """Return a finding that no signature is known to be valid or to be the author's."""
    if dkim.passing:
        return make_finding("dkim.alignment-undetermined", author_domain=author_domain)
    silent = [signature for signature in dkim.signatures if not signature.result.is_determined]
    explanation = " ".join(dict.fromkeys(signature.explanation for signature in silent))
    return make_finding("dkim.undetermined", case="mail", explanation=explanation)


def _describe(dkim: DkimOfMail) -> Iterator[Finding]:
    if not dkim.signatures:
        yield make_finding("dkim.unsigned")
    has_passing = bool(dkim.passing)
    for signature in dkim.signatures:
        yield from describe_signature(signature, has_passing=has_passing)
    if dkim.unchecked:
        yield make_finding(
            "dkim.many-signatures",
            count=len(dkim.signatures) + dkim.unchecked,
            checked=len(dkim.signatures),
        )


def _describe_fault(
    signature: SignatureOfMail, fault: SignatureFault, *, has_passing: bool
) -> Finding:
    severity = Severity.WARNING if has_passing else Severity.ERROR
    if not signature.result.is_determined:
        severity = Severity.UNDETERMINED
    name = signature.header.key_name
    if signature.key is not None:
        name = signature.key_record_name or name
    case = "explained"
    if fault is SignatureFault.KEY_BROKEN and signature.key is not None:
        if signature.key.needs_new_key:
            case = "explained-new-key"
        elif signature.key.repaired:
            case = "explained-complete"
    return make_finding(
        fault.value, case=case, severity=severity, explanation=signature.explanation, name=name
    )
