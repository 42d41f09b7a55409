"""All private names of Twisted that mailcheck uses, each with the reason.

`tests/test_private_names.py` fails when Twisted changes one of them, and when another module uses a
private name of a library. ``setup.cfg`` bounds the version of Twisted.
"""

from abc import abstractmethod

from twisted.web.http import HTTPChannel


class OpenHttpChannel(HTTPChannel):
    """Twisted's HTTP connection, with a public name for each private one."""

    @property
    def target(self) -> bytes:
        """The target in the request line. Twisted gives it to the request after the body only."""
        target: bytes = self._path
        return target

    @abstractmethod
    def reject_malformed(self) -> None:
        """Respond to a request that Twisted cannot parse, and close the connection."""

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802
        # Twisted sends only a status line, without a body that names the problem, and resets a
        # connection on which the client is still sending.
        self.reject_malformed()
