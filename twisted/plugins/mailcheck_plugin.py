"""The Twisted plugin for ``twistd mailcheck``."""

from twisted.application.service import ServiceMaker

mailcheck = ServiceMaker(
    "mailcheck",
    "mailcheck.tap",
    "A mail server for developer inboxes, deliverability tests and domain checks.",
    "mailcheck",
)
