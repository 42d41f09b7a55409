"""The products whose APIs are offered, in the order of the documentation."""

from collections.abc import Sequence

from mailcheck.web.compatible.facade import Facade

FACADES: Sequence[Facade] = ()
