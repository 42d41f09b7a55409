"""Examines the sign-in with the accounts of a company before the first person tries it."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.operations.accounts.company_sign_in import CompanyRules
from mailcheck.operations.accounts.id_tokens import KEY_TYPES, discovery_url, read_metadata
from mailcheck.operations.doctor import undetermined_finding
from mailcheck.ports.identity_provider import (
    IdentityProvider,
    ProviderRefused,
    ProviderSilent,
    ProviderUnusable,
)

TOPIC = "company"
_FAULT = "doctor.company.unusable"
_UNKNOWN_CLIENT = ("invalid_client", "unauthorized_client", "invalid_request")


async def examine_company(
    rules: CompanyRules, issuer: str, provider: IdentityProvider, redirect: str
) -> list[Finding]:
    """Examine discovery, keys, the redirect address, and the claim of groups.

    :param redirect: the address to which the provider sends browsers back.
    """
    try:
        document = await provider.get(discovery_url(issuer))
        metadata, problem = read_metadata(document, issuer)
        if metadata is None:
            return [make_finding(_FAULT, issuer=issuer, problem=problem)]
        found = list(_examine_keys(metadata.jwks_uri, await provider.get(metadata.jwks_uri)))
        query = urlencode(
            {
                "response_type": "code",
                "client_id": rules.client_id,
                "redirect_uri": redirect,
                "scope": " ".join(rules.scopes),
                "state": "doctor",
                "nonce": "doctor",
                "prompt": "none",
            }
        )
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        visited = await provider.visit(f"{metadata.authorization_endpoint}{joint}{query}")
        found += _examine_visit(visited.status, visited.location, rules.client_id, redirect)
    except ProviderSilent as failure:
        return [undetermined_finding(TOPIC, "silent", failure=failure)]
    except (ProviderUnusable, ProviderRefused) as failure:
        return [make_finding(_FAULT, case="no-provider", failure=failure)]
    if rules.roles or rules.allowed_groups:
        found.append(_describe_groups(document, rules.groups_claim))
    return found


def _examine_keys(address: str, document: Mapping[str, Any]) -> Iterator[Finding]:
    listed = document.get("keys")
    keys = listed if isinstance(listed, list) else []
    usable = [key for key in keys if isinstance(key, dict) and key.get("kty") in KEY_TYPES]
    if not usable:
        yield make_finding(_FAULT, case="no-keys", address=address)


def _examine_visit(status: int, location: str, client_id: str, redirect: str) -> Iterator[Finding]:
    """Judge the answer to a sign-in without a person, which a provider sends back to us."""
    if location.startswith(redirect):
        errors = parse_qs(urlsplit(location).query).get("error", [""])
        if errors[0] in _UNKNOWN_CLIENT:
            yield make_finding(
                "doctor.company.redirect", case="client", client_id=client_id, error=errors[0]
            )
    elif status >= 400:
        yield make_finding(
            "doctor.company.redirect", client_id=client_id, redirect=redirect, status=status
        )


def _describe_groups(document: Mapping[str, Any], claim: str) -> Finding:
    listed = document.get("claims_supported")
    known = (
        [value for value in listed if isinstance(value, str)] if isinstance(listed, list) else []
    )
    if known and claim.partition(".")[0] not in known:
        shown = ", ".join(known[:20])
        return make_finding("doctor.company.groups", claim=claim, shown=shown)
    return make_finding("doctor.company.groups-claim", claim=claim)
