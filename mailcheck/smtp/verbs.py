"""Every command by its verb, and what obeys it."""

from collections.abc import Mapping

from mailcheck.smtp.authentication import auth
from mailcheck.smtp.content import bdat, data
from mailcheck.smtp.envelope import mail, rcpt
from mailcheck.smtp.extended_client import xclient, xforward
from mailcheck.smtp.greeting import ehlo, helo
from mailcheck.smtp.housekeeping import help_, http, noop, not_implemented, quit_, rset, vrfy
from mailcheck.smtp.protocol import Verb
from mailcheck.smtp.starttls import starttls

VERBS: Mapping[bytes, Verb] = {
    b"AUTH": auth,
    b"BDAT": bdat,
    b"DATA": data,
    b"EHLO": ehlo,
    b"HELO": helo,
    b"HELP": help_,
    b"MAIL": mail,
    b"NOOP": noop,
    b"QUIT": quit_,
    b"RCPT": rcpt,
    b"RSET": rset,
    b"STARTTLS": starttls,
    b"VRFY": vrfy,
    b"XCLIENT": xclient,
    b"XFORWARD": xforward,
    # Commands that servers know and we do not have.
    b"ETRN": not_implemented,
    b"EXPN": not_implemented,
    b"SAML": not_implemented,
    b"SEND": not_implemented,
    b"SOML": not_implemented,
    b"TURN": not_implemented,
    # A request that a page in a browser was made to send here.
    b"CONNECT": http,
    b"DELETE": http,
    b"GET": http,
    b"HEAD": http,
    b"OPTIONS": http,
    b"PATCH": http,
    b"POST": http,
    b"PUT": http,
}
