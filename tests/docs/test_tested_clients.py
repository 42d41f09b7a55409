"""The page of tested clients: it is that of the installed versions, and proves what it says."""

from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.core.messages import PROVIDER_TITLES
from mailcheck.web.site.likeness import Like
from tests.interop.clients import CLIENTS, RESULTS, Outcome, file_of, recorded_run, routes_of
from tests.table import rows

NAMES = [one.name for one in CLIENTS]

LIKE_THE_PRODUCT = {
    "mailpit": """
        PUT /api/v1/messages
        DELETE /api/v1/search
        GET /api/v1/message/<id>
        GET /api/v1/message/<id>/raw
        GET /api/v1/message/<id>/part/<part>
        GET /api/v1/message/<id>/link-check
        GET /api/v1/message/<id>/sa-check
        POST /api/v1/send
        GET /api/v1/webui
        GET /api/v1/chaos
        GET /view/<id>.txt
        GET /livez
        GET /readyz
    """,
    "mailhog": """
        GET /api/v2/messages
        GET /api/v1/messages/<id>
        DELETE /api/v1/messages/<id>
        GET /api/v1/messages/<id>/download
        GET /api/v2/jim
        DELETE /api/v2/jim
    """,
    "mailosaur": """
        DELETE /api/messages
        DELETE /api/messages/<id>
        GET /api/files/attachments/<id>
        GET /api/files/email/<id>
        GET /api/servers/<id>
        PUT /api/servers/<id>
        DELETE /api/servers/<id>
    """,
    "mailslurp": """
        GET /inboxes/ids
        GET /inboxes/count
        GET /inboxes/exists
        GET /inboxes/byEmailAddress
        GET /inboxes/getLatestEmail
        DELETE /inboxes/<id>/deleteAllInboxEmails
        DELETE /emptyInbox
        DELETE /inboxes
        DELETE /emails
        GET /inboxes/<id>/emails/count
        GET /emails/emails/count
        GET /waitForLatestEmail
        GET /waitForNthEmail
        GET /emails/latest
        GET /emails/latestIn
        GET /emails/unreadCount
        GET /emails/<id>
        GET /emails/<id>/summary
        PATCH /emails/read
        PATCH /emails/<id>/read
        GET /emails/<id>/body
        GET /emails/<id>/html
        GET /emails/<id>/raw
        GET /emails/<id>/raw/json
        GET /emails/<id>/links
        GET /emails/<id>/textLines
        DELETE /emails/<id>
        GET /emails/<id>/attachments
        GET /emails/<id>/attachments/<file>
        GET /emails/<id>/attachments/<file>/base64
        GET /emails/<id>/attachments/<file>/metadata
        GET /attachments/<file>/bytes
        GET /attachments/<file>/base64
        GET /attachments/<file>/metadata
        GET /inboxes/<id>/webhooks
        GET /webhooks/paginated
        GET /inboxes/<id>/webhooks/paginated
        GET /webhooks/<hook>
        DELETE /webhooks/<hook>
        DELETE /inboxes/<id>/webhooks/<hook>
    """,
}
"""The routes that version 0.9 calls the same as those of each product."""


@rows(*NAMES)
def test_the_recorded_run_is_that_of_the_pinned_version(name: str) -> None:
    """The results of a client were recorded with the version that `make interop` installs."""
    (client,) = [one for one in CLIENTS if one.name == name]
    run = recorded_run(client)
    assert (run.client, run.version) == (name, client.pinned_version), "run `make client-calls`"
    assert run.calls, "the run has no calls"


@rows(*NAMES)
def test_every_call_has_used_a_route(name: str) -> None:
    """Each call of a client has used a route of its product, or sends no request.

    MailSlurp and the providers refuse what is not offered as an unknown path.
    """
    (client,) = [one for one in CLIENTS if one.name == name]
    known = {" ".join(one) for one in routes_of(client.product)}
    has_catch_all = client.product in (*PROVIDER_TITLES, "mailslurp")
    for call in recorded_run(client).calls:
        if call.outcome is Outcome.DIFFERS or (has_catch_all and call.outcome is Outcome.REFUSED):
            continue
        assert call.route in ({""} if call.outcome is Outcome.LOCAL else known), call


def test_every_file_of_results_belongs_to_a_client() -> None:
    """No results of a client are left that is not tested any more."""
    assert {file_of(one) for one in NAMES} == set(RESULTS.iterdir())


@rows(*(one.name for one in FACADES))
def test_a_label_falls_only_for_a_client(product: str) -> None:
    """A route that was the same is still the same, or its note names the client that shows why."""
    (facade,) = [one for one in FACADES if one.name == product]
    routes = {f"{one.method} {one.path}": one for one in facade.routes}
    for name in filter(None, map(str.strip, LIKE_THE_PRODUCT[product].splitlines())):
        route = routes[name]
        names_client = any(one.package in route.note for one in CLIENTS)
        assert route.like is Like.SAME or names_client, name
