"""All operations on reports of receivers, for those who serve them."""

from msgspec import Struct

from mailcheck.operations.reports.offer_records import OfferRecords
from mailcheck.operations.reports.receive_reports import PostReport
from mailcheck.operations.reports.show_reports import DeleteReports, ShowReports


class ReportOperations(Struct, frozen=True):
    """What an account, and those who report to it, can do; each operation is a class."""

    show: ShowReports
    post: PostReport
    offer: OfferRecords
    delete: DeleteReports
