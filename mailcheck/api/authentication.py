"""SPF, DKIM and DMARC results of a mail as JSON (RFC 8601 2.7)."""

from typing import Annotated, Any

from mailcheck.api.shapes import Count, Shape, Texts, doc
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability import authentication
from mailcheck.checks.dkim.mail import SignatureOfMail
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.spf.mail import SpfIdentity, SpfOfIdentity, SpfOfMail

Result = Annotated[AuthResult, doc("RFC 8601 2.7; temperror: undetermined, try again later")]

Detail = Annotated[str, doc("explanation in one sentence")]

Determined = Annotated[
    bool, doc("false: not evaluated or could not be determined; no points are deducted")
]


class SpfOfHelo(Shape):
    """SPF of the HELO name."""

    domain: Annotated[str, doc("domain whose SPF record was evaluated")]
    identity: SpfIdentity
    record: Annotated[str | None, doc("the SPF record")]
    mechanism: Annotated[str | None, doc("the term that matched")]
    result: Result


class SpfVerdict(SpfOfHelo):
    """SPF of the envelope sender."""

    detail: Detail
    determined: Determined
    ip: Annotated[str, doc("IP address of the SMTP client")]
    helo: SpfOfHelo


class Signature(Shape):
    """A DKIM signature of a mail."""

    domain: Annotated[str, doc("d=")]
    selector: Annotated[str, doc("s=")]
    algorithm: Annotated[str, doc("a=")]
    key_type: str | None
    key_bits: Count | None
    result: Result
    detail: Detail
    aligned: Annotated[bool | None, doc("whether it counts for DMARC; null: undetermined")]
    identity: Annotated[str | None, doc("i=")]
    canonicalization: Annotated[str | None, doc("c=")]
    signed_fields: Annotated[Texts, doc("h=")]
    body_length: Annotated[Count | None, doc("l=: number of signed octets; null: whole body")]
    record_name: Annotated[str | None, doc("DNS name of the key record")]


class DmarcVerdict(Shape):
    """DMARC (RFC 9989) of the author's domain."""

    result: Result
    detail: Detail
    determined: Determined
    domain: Annotated[str | None, doc("domain of the author")]
    policy: Annotated[Policy | None, doc("policy that the domain requests for failing mail")]
    organizational_domain: str | None
    record: str | None
    record_domain: Annotated[str | None, doc("domain where the record was found")]
    spf_aligned: Annotated[bool | None, doc("null: undetermined")]
    dkim_aligned: Annotated[bool | None, doc("null: undetermined")]


class Authentication(Shape):
    """SPF, DKIM and DMARC results. SPF cannot be evaluated for a private IP address."""

    spf: SpfVerdict
    dkim: Annotated[tuple[Signature, ...], doc("one entry per signature")]
    dmarc: DmarcVerdict


def render_authentication(found: authentication.Authentication) -> Authentication:
    """Render the results of an inbox message. Its fields are those of a report without points."""
    return Authentication(
        SpfVerdict(**spf_fields(found.spf, found.origin.client_ip)),
        tuple(render_signature(signature, found.dmarc) for signature in found.dkim.signatures),
        DmarcVerdict(**dmarc_fields(found.dmarc)),
    )


def spf_fields(spf: SpfOfMail, client_ip: str) -> dict[str, Any]:
    """Return the fields of a `SpfVerdict`; ``client_ip`` is the address in the session."""
    return {
        **_identity(spf.mail_from),
        "detail": spf.mail_from.explanation,
        "determined": spf.mail_from.result.is_determined,
        "ip": client_ip,
        "helo": SpfOfHelo(**_identity(spf.helo)),
    }


def _identity(identity: SpfOfIdentity) -> dict[str, Any]:
    return {
        "domain": identity.domain,
        "identity": identity.identity,
        "record": identity.record,
        "mechanism": identity.mechanism or None,
        "result": identity.result,
    }


def render_signature(signature: SignatureOfMail, dmarc: DmarcOfMail) -> Signature:
    """Render a signature with its result, and whether it counts for DMARC."""
    header, key = signature.header, signature.key
    return Signature(
        domain=header.signing_domain,
        selector=header.selector,
        algorithm=header.algorithm,
        key_type=None if key is None else key.key_type,
        key_bits=None if key is None else key.bits,
        result=signature.result,
        detail=signature.explanation,
        aligned=_is_aligned(signature, dmarc),
        identity=header.agent_id or None,
        canonicalization=header.canonicalization or None,
        signed_fields=tuple(header.signed_fields),
        body_length=header.body_length,
        record_name=header.key_name if header.selector else None,
    )


def _is_aligned(signature: SignatureOfMail, dmarc: DmarcOfMail) -> bool | None:
    """Return whether the signature counts for DMARC, or `None` if that is undetermined."""
    if signature.header.index in dmarc.aligned_signatures:
        return True
    is_undetermined = dmarc.author_domain is not None and dmarc.is_dkim_aligned is None
    return None if is_undetermined else False


def dmarc_fields(dmarc: DmarcOfMail) -> dict[str, Any]:
    """Return the fields of a `DmarcVerdict`."""
    verdict = dmarc.verdict
    record = verdict.record if verdict is not None else None
    return {
        "result": dmarc.result,
        "detail": dmarc.explanation,
        "determined": dmarc.result.is_determined,
        "domain": dmarc.author_domain,
        "policy": dmarc.policy,
        "organizational_domain": dmarc.organizational_domain,
        "record": None if record is None else record.text,
        "record_domain": None if verdict is None else verdict.found_at,
        "spf_aligned": dmarc.is_spf_aligned,
        "dkim_aligned": dmarc.is_dkim_aligned,
    }
