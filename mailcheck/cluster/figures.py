"""What is measured of the Redis that daemons share; nothing where there is none."""

from mailcheck.core.instruments import SECONDS, Distribution, Tally


class RedisFigures:
    """``answers``: seconds from a command to its answer. ``messages``: told, and heard."""

    def __init__(self) -> None:
        self.answers = Distribution(SECONDS)
        self.messages = Tally()
