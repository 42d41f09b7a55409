"""All operations on deliverability tests, for those who serve them."""

from msgspec import Struct

from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.deliverability.wait_for_test import WaitForTest


class DeliverabilityOperations(Struct, frozen=True):
    """What an account can do with its tests."""

    manage: ManageTests
    wait: WaitForTest
