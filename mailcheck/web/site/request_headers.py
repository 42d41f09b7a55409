"""Header fields of a request, which may hold any bytes at all."""

from twisted.web.server import Request


def header_values(request: Request, name: bytes) -> list[str]:
    """Give the values of a field, one for each line; what is not UTF-8 in them is replaced.

    Twisted, asked with a name of type ``str``, raises over such bytes.
    """
    values = request.requestHeaders.getRawHeaders(name, ())
    return [value.decode("utf-8", "replace") for value in values]
