"""The operations on deliverability tests, grouped for the API and the pages."""

from msgspec import Struct

from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.deliverability.wait_for_test import WaitForTest


class DeliverabilityOperations(Struct, frozen=True):
    """Everything an account can do with its tests."""

    manage: ManageTests
    wait: WaitForTest
