"""The products whose APIs are offered, in the order of the documentation."""

from collections.abc import Sequence

from mailcheck.web.compatible.mailhog import MAILHOG
from mailcheck.web.compatible.mailosaur.routes import MAILOSAUR
from mailcheck.web.compatible.mailpit.routes import MAILPIT
from mailcheck.web.compatible.mailslurp.facade import MAILSLURP
from mailcheck.web.site.application import Door

FACADES: Sequence[Door] = (
    MAILPIT,
    MAILHOG,
    MAILOSAUR,
    MAILSLURP,
)
