"""The connection to an OpenID Connect provider."""

from collections.abc import Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred

JsonObject = Mapping[str, Any]


class ProviderSilent(Exception):
    """The provider does not answer with JSON. The message is for the log."""


class ProviderRefused(Exception):
    """The provider has answered with an error. The message is for the log."""


class IdentityProvider(Protocol):
    """Sends requests to the provider. Answers are bounded in size and time."""

    def get(self, url: str, token: str = "") -> Deferred[JsonObject]:
        """Fetch a JSON object, with a bearer token if one is given.

        :raises ProviderSilent: there is no usable answer.
        :raises ProviderRefused: the answer is an error.
        """

    def post(
        self, url: str, form: Mapping[str, str], user: tuple[str, str] | None
    ) -> Deferred[JsonObject]:
        """Send a form, and return the JSON object of the answer.

        :param user: name and password of HTTP Basic authentication (RFC 6749 2.3.1).
        :raises ProviderSilent: there is no usable answer.
        :raises ProviderRefused: the answer is an error.
        """
