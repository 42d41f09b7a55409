"""The connection to an OpenID Connect provider."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from twisted.internet.defer import Deferred

JsonObject = Mapping[str, Any]


class ProviderSilent(Exception):
    """The provider does not answer, or has a fault. The message is for the log."""


class ProviderUnusable(Exception):
    """The address or the certificate is not that of a provider. The message is for the log."""


class ProviderRefused(Exception):
    """The provider has answered with an error. The message is for the log.

    ``error`` is the error code of OAuth (RFC 6749 5.2), or empty. ``description`` is the
    provider's text for developers, which may be empty.
    """

    def __init__(self, problem: str, error: str = "", description: str = "") -> None:
        super().__init__(problem)
        self.error = error
        self.description = description


class Visited(NamedTuple):
    """The answer to a browser: its status, and where it leads; empty if it leads nowhere."""

    status: int
    location: str


class TokenEndpoint(Protocol):
    """Sends forms to a token endpoint of OAuth 2.0. Answers are bounded in size and time."""

    def post(
        self, url: str, form: Mapping[str, str], user: tuple[str, str] | None
    ) -> Deferred[JsonObject]:
        """Send a form, and return the JSON object of the answer.

        :param user: name and password of HTTP Basic authentication (RFC 6749 2.3.1).
        :raises ProviderSilent: there is no answer, or the provider has a fault.
        :raises ProviderUnusable: the answer is not that of a provider.
        :raises ProviderRefused: the answer is an error.
        """


class IdentityProvider(TokenEndpoint, Protocol):
    """Sends requests to the provider. Answers are bounded in size and time."""

    def get(self, url: str, token: str = "") -> Deferred[JsonObject]:
        """Fetch a JSON object, with a bearer token if one is given.

        :raises ProviderSilent: there is no answer, or the provider has a fault.
        :raises ProviderUnusable: the answer is not that of a provider.
        :raises ProviderRefused: the answer is an error.
        """

    def visit(self, url: str) -> Deferred[Visited]:
        """Open a page as a browser does, without following where it leads.

        :raises ProviderSilent: there is no answer.
        :raises ProviderUnusable: the certificate is not that of the provider.
        """
