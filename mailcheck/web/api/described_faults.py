"""The operations on the faults that are met on request."""

from mailcheck.wire.inbox.faults import Faults, KeyFault
from mailcheck.wire.openapi.operations import Answer, Operation, json_body

_TAG = "Inbox"

FAULTS_SHOW = Operation(
    "getFaults",
    _TAG,
    "List the faults that mail can meet",
    "Mail to an address with one of these tags meets that fault, so that it is seen what the "
    "software under test does. Every other tag is an ordinary one.",
    {200: Answer("The faults.", [json_body("faults", Faults)])},
)

KEY_FAULT_SET = Operation(
    "setKeyFault",
    _TAG,
    "Let mails of this key fail",
    "Of every so many mails that programs hand in with this very key on the submission port the "
    "last gets 451 after its DATA, and is not stored. It holds from the next sign-in on.",
    {200: Answer("What is set now.", [json_body("faults set", Faults)])},
    (),
    json_body("key fault", KeyFault),
)
