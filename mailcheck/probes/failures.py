"""Why a probe has nothing to report; each becomes a value before it leaves this room."""

from enum import Enum


class DialFailed(Exception):
    """No connection came about."""


class HostNotFound(DialFailed):
    """DNS says that the name has no address."""


class HostUndetermined(DialFailed):
    """The addresses of the name could not be found out."""


class AddressRefused(DialFailed):
    """None of the host's addresses may be connected to; says why, in a few words."""


class NotConnected(DialFailed):
    """None of the addresses took the connection in time."""


class Refused(NotConnected):
    """All addresses refused: the host is there, and nobody listens."""


class FetchProblem(Enum):
    """Why there is no response to show."""

    NO_HOST = "no-host"
    """The host has no address, or none that may be connected to."""
    NO_CONNECTION = "no-connection"
    """The host refuses connections, or encrypting them."""
    BAD_CERTIFICATE = "bad-certificate"
    BAD_REDIRECT = "bad-redirect"
    """To something that is no web address, from https to http, or once too often."""
    TOO_LARGE = "too-large"
    NO_HTTP = "no-http"
    """What comes is not HTTP, compressed against our wish, or breaks off."""
    SILENT = "silent"
    """No answer in time, not from DNS either; or the fault is ours."""


class FetchFailed(Exception):
    """A web resource could not be fetched."""

    def __init__(self, problem: FetchProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem
