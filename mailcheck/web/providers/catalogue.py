"""The providers whose APIs are offered, in the order of the documentation."""

from collections.abc import Sequence

from mailcheck.web.providers.postmark import POSTMARK
from mailcheck.web.providers.provider import Provider
from mailcheck.web.providers.resend import RESEND

PROVIDERS: Sequence[Provider] = (RESEND, POSTMARK)
