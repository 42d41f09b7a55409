"""The operations of an account on mail into its applications."""

from msgspec import Struct

from mailcheck.operations.inbound.manage_routes import ManageRoutes
from mailcheck.operations.inbound.read_attempts import ReadInbound
from mailcheck.operations.inbound.send_mail import SendInbound


class InboundOperations(Struct, frozen=True, eq=False):
    """Everything that an account can do with routes."""

    routes: ManageRoutes
    send: SendInbound
    read: ReadInbound
