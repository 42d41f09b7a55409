"""What probes need of a reactor."""

from twisted.internet.interfaces import IReactorTCP, IReactorTime


class ProbeReactor(IReactorTime, IReactorTCP):
    """Time and streams; every reactor of Twisted has them."""
