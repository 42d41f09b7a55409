"""Names the mailcheck daemon to twistd: ``twistd mailcheck``."""

from twisted.application.service import ServiceMaker

mailcheck = ServiceMaker(
    "mailcheck",
    "mailcheck.tap",
    "Receives mail, lets developers wait for it, and tells whether mail will arrive.",
    "mailcheck",
)
