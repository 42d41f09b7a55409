"""All operations on deliverability tests, for those who serve them."""

from msgspec import Struct

from mailcheck.operations.deliverability.delete_test import DeleteTest
from mailcheck.operations.deliverability.find_test import FindTest
from mailcheck.operations.deliverability.generate_test import GenerateTest
from mailcheck.operations.deliverability.recheck_test import RecheckTest
from mailcheck.operations.deliverability.score_message import ScoreMessage
from mailcheck.operations.deliverability.share_test import ShareTest
from mailcheck.operations.deliverability.wait_for_test import WaitForTest


class DeliverabilityOperations(Struct, frozen=True):
    """What an account can do with its tests; each operation is a file."""

    generate: GenerateTest
    find: FindTest
    wait: WaitForTest
    recheck: RecheckTest
    share: ShareTest
    score_message: ScoreMessage
    delete: DeleteTest
