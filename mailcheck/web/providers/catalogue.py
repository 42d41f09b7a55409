"""The providers whose APIs are offered, in the order of the documentation."""

from collections.abc import Sequence

from mailcheck.web.providers.brevo import BREVO
from mailcheck.web.providers.events import TestRecipients
from mailcheck.web.providers.mailgun import MAILGUN
from mailcheck.web.providers.mailtrap import MAILTRAP
from mailcheck.web.providers.postmark import POSTMARK
from mailcheck.web.providers.provider import Provider, WriteEvent
from mailcheck.web.providers.resend import RESEND
from mailcheck.web.providers.sendgrid import SENDGRID
from mailcheck.web.providers.ses import SES
from mailcheck.web.providers.ses_query import SES_QUERY

PROVIDERS: Sequence[Provider] = (
    RESEND,
    POSTMARK,
    SENDGRID,
    MAILGUN,
    SES,
    SES_QUERY,
    BREVO,
    MAILTRAP,
)


def events_of(name: str) -> tuple[WriteEvent, TestRecipients]:
    """Return the function that writes the events of a provider, and its test recipients.

    :raises KeyError: the provider has no events.
    """
    found = {
        provider.name: (provider.write_event, provider.test_recipients)
        for provider in PROVIDERS
        if provider.write_event is not None
    }
    return found[name]
