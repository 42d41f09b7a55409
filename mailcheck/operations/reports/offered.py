"""All operations on reports of receivers, for those who serve them."""

from msgspec import Struct

from mailcheck.operations.reports.delete_reports import DeleteReports
from mailcheck.operations.reports.offer_records import OfferRecords
from mailcheck.operations.reports.post_report import PostReport
from mailcheck.operations.reports.show_reports import ShowReports


class ReportOperations(Struct, frozen=True):
    """What an account, and those who report to it, can do; each operation is a file."""

    show: ShowReports
    post: PostReport
    offer: OfferRecords
    delete: DeleteReports
