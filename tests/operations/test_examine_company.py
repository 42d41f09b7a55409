"""The examination of the company's sign-in service, which names what a person would run into."""

from collections.abc import Callable

from mailcheck.assembly.accounts import company_rules
from mailcheck.config.options import OidcOptions
from mailcheck.operations.accounts.examine_company import examine_company
from mailcheck.ports.identity_provider import ProviderSilent, ProviderUnusable, Visited
from tests.fakes.company import CLIENT_ID, ISSUER, Company
from tests.house import run
from tests.table import rows

REDIRECT = "https://mail.company.example/sign-in/company/callback"


def examine(company: Company, claim: str = "groups", groups: tuple[str, ...] = ()) -> list[str]:
    """Return severity, meaning and fix of each finding."""
    options = OidcOptions(
        issuer=ISSUER, client_id=CLIENT_ID, groups_claim=claim, allowed_groups=groups
    )
    found = run(examine_company(company_rules(options, "sub"), ISSUER, company, REDIRECT))
    return [f"{one.severity.name} {one.meaning} {one.fix}" for one in found]


def test_a_usable_provider() -> None:
    """Discovery, keys and redirect address are examined, and nothing is found."""
    company = Company()
    assert examine(company) == []
    assert [one.partition("?")[0] for one in company.asked] == [
        f"{ISSUER}/.well-known/openid-configuration",
        f"{ISSUER}/keys",
        f"{ISSUER}/authorize",
    ]


def other_issuer(company: Company) -> None:
    """Name another issuer."""
    company.metadata["issuer"] = f"{ISSUER}/"


def no_keys(company: Company) -> None:
    """Publish no key."""
    company.published = {"keys": []}


def plain_address(company: Company) -> None:
    """Name an address without HTTPS."""
    company.metadata["token_endpoint"] = "http://login.company.example/token"


def silent(company: Company) -> None:
    """Give no answer."""
    company.fault = ProviderSilent("no route to host")


def no_provider(company: Company) -> None:
    """Be a website."""
    company.fault = ProviderUnusable("status 200 without a JSON object")


def unknown_redirect(company: Company) -> None:
    """Show an error page for the redirect address."""
    company.visited = Visited(400, "")


def unknown_client(company: Company) -> None:
    """Refuse the client at the redirect address."""
    company.visited = Visited(302, f"{REDIRECT}?error=unauthorized_client")


@rows(
    (other_issuer, "ERROR", [f"names the issuer {ISSUER}/: write exactly this one"]),
    (no_keys, "ERROR", [f"no usable key at {ISSUER}/keys"]),
    (plain_address, "ERROR", ["without HTTPS: http://login.company.example/token"]),
    (silent, "UNDETERMINED", ["does not answer: no route to host"]),
    (no_provider, "ERROR", ["not lead to a usable provider", "Correct [oidc] issuer"]),
    (unknown_redirect, "ERROR", [REDIRECT, "status 400", "Register this redirect address"]),
    (unknown_client, "ERROR", [f"client_id {CLIENT_ID}: unauthorized_client"]),
)
def test_faults(change: Callable[[Company], None], severity: str, words: list[str]) -> None:
    """Each fault is named with what the operator changes."""
    company = Company()
    change(company)
    (found,) = examine(company)
    assert found.startswith(severity)
    assert all(word in found for word in words), found


@rows(
    (None, "NOTE", "from the claim groups ([oidc] groups_claim)"),
    (["sub", "groups"], "NOTE", "from the claim groups"),
    (["sub", "roles"], "WARNING", "Its claims are sub, roles"),
)
def test_the_claim_of_groups(listed: list[str] | None, severity: str, words: str) -> None:
    """The claim that holds the groups is named, and whether the provider lists it."""
    company = Company()
    if listed is not None:
        company.metadata["claims_supported"] = listed
    (found,) = examine(company, groups=("staff",))
    assert found.startswith(severity)
    assert words in found
