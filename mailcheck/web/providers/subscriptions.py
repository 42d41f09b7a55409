"""The part of Amazon SNS that applications call: certificates and confirmations."""

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import parse_qsl
from uuid import UUID
from xml.sax.saxutils import escape

from msgspec import Struct

from mailcheck.core.errors import InboundRouteNotFound
from mailcheck.core.identifiers import is_secret
from mailcheck.core.inbound import InboundRoute, InboundRouteId
from mailcheck.operations.inbound.fetch_mail import FetchInbound
from mailcheck.web.providers.conversion import Conversion
from mailcheck.web.providers.inbound import ses, sns_key
from mailcheck.web.providers.inbound.signing import digest_of
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Door, OpenDoor, Route, admit_anyone, read_nothing
from mailcheck.web.site.failures import PathUnknown, Problem
from mailcheck.web.site.replies import Reply

PEM = "application/x-pem-file"
XML = "text/xml"

NAMESPACE = "http://sns.amazonaws.com/doc/2010-03-31/"

LARGEST_FORM = 65_536
"""Maximum number of bytes of a form that is read."""

Confirm = Callable[[InboundRouteId], Awaitable[bool]]
"""Confirms a route, and returns whether there is one."""


class Subscriptions(Struct, frozen=True, eq=False):
    """Answers the requests to SNS: certificates, and confirmations of subscriptions.

    ``base`` is the path before the names of providers.
    """

    fetch: FetchInbound
    confirm: Confirm
    conversion: Conversion
    base: str

    def door(self) -> OpenDoor:
        """Return the door."""
        routes = [
            Route(method, path, self.act, type(None), costs.FREE)
            for method in ("GET", "POST")
            for path in ("", "/")
        ]
        certificate = Route(
            "GET", "/<route>/<name>", self.show_certificate, type(None), costs.QUESTION
        )
        return OpenDoor(
            Door(
                name="sns",
                title="Amazon SNS",
                base=f"{self.base}/sns",
                routes=(*routes, certificate),
                read=read_nothing,
                write_error=write_sns_error,
            ),
            admit_anyone,
        )

    async def show_certificate(self, call: Call[None]) -> Reply:
        """Return the certificate that verifies the signatures of a route.

        :raises PathUnknown: there is no such certificate.
        """
        route = await self._find(call.path["route"])
        wanted = f"/{call.path['route']}/{call.path['name']}"
        if route is None or not is_secret(wanted, ses.certificate_path(route)):
            raise PathUnknown("there is no such certificate")
        write = partial(sns_key.write_certificate, route.secret)
        return Reply(200, await self.conversion.run(write, route.account_id), PEM)

    async def act(self, call: Call[None]) -> Reply:
        """Confirm a subscription, as a GET of ``SubscribeURL`` or as AWS's libraries do."""
        query = call.http.uri.decode("utf-8", "replace").partition("?")[2]
        body = call.body[:LARGEST_FORM].decode("utf-8", "replace")
        form = dict(parse_qsl(query)) | dict(parse_qsl(body))
        action = form.get("Action", "")
        if action == "Unsubscribe":
            return _error(403, "AuthorizationError", "delete the route to end its subscription")
        if action != "ConfirmSubscription":
            return _error(
                400, "InvalidAction", "the actions are ConfirmSubscription and Unsubscribe"
            )
        route_id = ses.route_of(form.get("TopicArn", ""))
        route = None if route_id is None else await self._find(route_id)
        if route is None:
            return _error(404, "NotFound", "the topic does not exist")
        if not is_secret(form.get("Token", ""), ses.token_of(route)):
            return _error(400, "InvalidParameter", "the token is not that of the subscription")
        await self.confirm(route.id)
        return _result(action, f"<SubscriptionArn>{ses.subscription_of(route)}</SubscriptionArn>")

    async def _find(self, route_id: str) -> InboundRoute | None:
        try:
            return await self.fetch.route(route_id)
        except InboundRouteNotFound:
            return None


def _result(action: str, result: str) -> Reply:
    text = (
        f'<{action}Response xmlns="{NAMESPACE}"><{action}Result>{result}</{action}Result>'
        f"<ResponseMetadata><RequestId>{_request_id(result)}</RequestId></ResponseMetadata>"
        f"</{action}Response>"
    )
    return Reply(200, text.encode(), XML)


def _error(status: int, code: str, message: str) -> Reply:
    kind = "Sender" if status < 500 else "Receiver"
    text = (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{kind}</Type><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message></Error><RequestId>{_request_id(message)}"
        "</RequestId></ErrorResponse>"
    )
    return Reply(status, text.encode("utf-8", "replace"), XML)


def write_sns_error(problem: Problem) -> Reply:
    """Return an error of SNS."""
    return _error(problem.status, type(problem.failure).__name__, problem.sentence)


def _request_id(text: str) -> str:
    return str(UUID(bytes=digest_of("request", text)[:16]))
