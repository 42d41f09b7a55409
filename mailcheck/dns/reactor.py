"""What DNS needs of a reactor."""

from twisted.internet.interfaces import IReactorTCP, IReactorTime, IReactorUDP


class DnsReactor(IReactorTime, IReactorUDP, IReactorTCP):
    """Time, datagrams and streams; every reactor of Twisted has them."""
