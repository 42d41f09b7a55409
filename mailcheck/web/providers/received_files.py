"""Downloads of the parts of received mails, at URLs that need no key and end soon."""

import hashlib
import hmac
from base64 import b32encode
from functools import partial

from msgspec import Struct

from mailcheck.core.errors import InboundRouteNotFound, ShareNotFound
from mailcheck.core.identifiers import is_secret
from mailcheck.core.inbound import InboundMail, InboundRoute
from mailcheck.core.instants import HOUR, Instant
from mailcheck.operations.inbound.fetch_mail import FetchInbound, RoutedMail
from mailcheck.web.providers.inbound.received import ReceivedFile, ReceivedMail
from mailcheck.web.site import costs
from mailcheck.web.site.application import Call, Door, OpenDoor, Route, admit_anyone, read_nothing
from mailcheck.web.site.failures import PathUnknown, Problem
from mailcheck.web.site.replies import Reply, download_reply, error_reply

VALID_FOR = HOUR
"""Milliseconds for which a URL is valid, as at Resend and Mailtrap."""

RAW = "raw"
"""The name of the whole mail. Files are named by their numbers."""


def files_path(route: InboundRoute, mail: InboundMail, ends_at: Instant) -> str:
    """Return the path of the parts of a mail, which proves that it was given out."""
    return f"/{route.id}/{mail.id}/{ends_at:x}-{_proof(route, mail.id, ends_at)}"


def require_proof(route: InboundRoute, mail_id: str, token: str, now: Instant) -> None:
    """Check the last part of a path of `files_path`.

    :raises ShareNotFound: it is not valid, or has ended.
    """
    end, _, proof = token.partition("-")
    try:
        ends_at = Instant(int(end[:16], 16))
    except ValueError:
        ends_at = Instant(0)
    if ends_at <= now or not is_secret(proof, _proof(route, mail_id, ends_at)):
        raise ShareNotFound("this link is not valid: get the mail from the API again")


def _proof(route: InboundRoute, mail_id: str, ends_at: Instant) -> str:
    signed = f"mailcheck files of {mail_id} until {ends_at}".encode()
    proof = hmac.digest(route.secret.encode(), signed, hashlib.sha256)
    return b32encode(proof[:20]).decode("ascii").lower()


def show_part(name: str, mail: InboundMail) -> Reply:
    """Return the whole mail, or a file of it.

    :raises PathUnknown: the mail has no such file.
    """
    received = ReceivedMail(mail.raw_message)
    if name == RAW:
        return download_reply(received.raw_message, "message/rfc822", "mail.eml")
    for file in received.files:
        if str(file.number) == name:
            return file_response(file)
    raise PathUnknown("the mail has no such attachment")


def file_response(file: ReceivedFile) -> Reply:
    """Return the bytes of a file with its type and charset, which browsers do not show."""
    charset = f"; charset={file.charset.lower()}" if file.charset else ""
    return download_reply(file.data, f"{file.content_type}{charset}", file.filename)


class ReceivedFiles(Struct, frozen=True, eq=False):
    """Gives out the parts of received mails at URLs with a proof.

    ``base`` is the path before the names of providers.
    """

    fetch: FetchInbound
    base: str

    def door(self) -> OpenDoor:
        """Return the door."""
        route = Route("GET", "/<route>/<mail>/<proof>/<name>", self.show, type(None), costs.CONTENT)
        return OpenDoor(
            Door(
                name="received",
                title="Received mail",
                base=f"{self.base}/received",
                routes=(route,),
                read=read_nothing,
                write_error=write_error,
            ),
            admit_anyone,
        )

    async def show(self, call: Call[None]) -> Reply:
        """Return the mail or a file of it.

        :raises ShareNotFound: the proof is not valid, or has ended.
        """
        path = call.path
        try:
            route = await self.fetch.route(path["route"])
        except InboundRouteNotFound:
            raise ShareNotFound("this link is not valid: get the mail from the API again") from None
        require_proof(route, path["mail"], path["proof"], call.received_at)
        show = partial(_show_routed, path["name"])
        return await self.fetch.show_of_route(route, path["mail"], show)


def _show_routed(name: str, found: RoutedMail) -> Reply:
    return show_part(name, found.mail)


def write_error(problem: Problem) -> Reply:
    """Return an error as JSON."""
    return error_reply(problem.status, problem.sentence)
