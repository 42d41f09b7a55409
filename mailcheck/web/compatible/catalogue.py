"""The products whose APIs are offered, in the order of the documentation."""

from collections.abc import Sequence

from mailcheck.web.compatible.facade import Facade
from mailcheck.web.compatible.mailosaur.facade import MAILOSAUR

FACADES: Sequence[Facade] = (MAILOSAUR,)
