"""How near a part of an API is to that of the product or the provider that it stands for."""

from enum import Enum


class Like(Enum):
    """How near a route or a part of an API is to the original."""

    SAME = "same"
    CLOSE = "close"
    NOT_OFFERED = "not offered"
