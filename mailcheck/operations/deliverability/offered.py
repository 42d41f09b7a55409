"""All operations on deliverability tests, for those who serve them."""

from msgspec import Struct

from mailcheck.operations.deliverability.manage_tests import (
    DeleteTest,
    FindTest,
    GenerateTest,
    RecheckTest,
    ScoreMessage,
    ShareTest,
)
from mailcheck.operations.deliverability.wait_for_test import WaitForTest


class DeliverabilityOperations(Struct, frozen=True):
    """What an account can do with its tests; each operation is a class."""

    generate: GenerateTest
    find: FindTest
    wait: WaitForTest
    recheck: RecheckTest
    share: ShareTest
    score_message: ScoreMessage
    delete: DeleteTest
