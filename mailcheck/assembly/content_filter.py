"""Builds the content filter from a configuration."""

from dataclasses import dataclass
from typing import Any, cast

from twisted.application.service import IService

from mailcheck.config.options import Config
from mailcheck.daemon.checks_service import ChecksService
from mailcheck.daemon.ordered_services import OrderedServices
from mailcheck.daemon.spamd_folder import SpamdSettings, find_spamd
from mailcheck.daemon.spamd_service import SpamdService
from mailcheck.operations.deliverability.filter_ports import ContentFilter
from mailcheck.operations.ports import Worker
from mailcheck.probes.spamd_address import parse_spamd_address
from mailcheck.probes.spamd_endpoint import SpamdReactor
from mailcheck.probes.spamd_filter import (
    AutomaticSpamd,
    ConfiguredSpamd,
    FilterLimits,
    NoSpamd,
    SpamdFilter,
    SpamdFinder,
)


@dataclass(frozen=True, slots=True)
class FilterAssembly:
    """The filter, and the service that has to run while it is used.

    Nothing is connected to and no process is started before the first mail.
    Stopping the service ends what is under way as undetermined, and the
    private spamd.
    """

    content_filter: ContentFilter
    service: IService


def assemble_filter(config: Config, reactor: Any, worker: Worker) -> FilterAssembly:
    """Build the content filter; for the daemon and for commands that score a file.

    ``worker`` takes large mails apart: in the daemon a process, for a command a `DirectWorker`.
    """
    options = config.spamassassin
    services = OrderedServices()
    finder: SpamdFinder
    if options.spamd == "off":
        finder = NoSpamd()
    elif options.spamd == "auto":
        settings = SpamdSettings(options.user, options.network_tests, options.concurrency)
        private = SpamdService(reactor, settings, find_spamd)
        private.setServiceParent(services)
        finder = AutomaticSpamd(cast(SpamdReactor, reactor), private)
    else:
        address = parse_spamd_address(options.spamd)
        finder = ConfiguredSpamd(cast(SpamdReactor, reactor), address)
    limits = FilterLimits(at_a_time=options.concurrency)
    judging = SpamdFilter(finder, reactor, worker, limits)
    ChecksService(judging.close).setServiceParent(services)
    return FilterAssembly(judging, services)
