"""The operations on reports from receivers, grouped for the API and the pages."""

from msgspec import Struct

from mailcheck.operations.reports.decide_senders import DecideSenders
from mailcheck.operations.reports.import_reports import ImportReports
from mailcheck.operations.reports.offer_records import OfferRecords
from mailcheck.operations.reports.plan_policy import PlanPolicy
from mailcheck.operations.reports.receive_reports import PostReport
from mailcheck.operations.reports.show_reports import DeleteReports, ShowReports


class ReportOperations(Struct, frozen=True):
    """Everything an account, and the senders of its reports, can do."""

    show: ShowReports
    post: PostReport
    offer: OfferRecords
    delete: DeleteReports
    decide: DecideSenders
    plan: PlanPolicy
    importing: ImportReports
