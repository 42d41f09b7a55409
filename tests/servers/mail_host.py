"""A daemon that is the mail host of a domain, with a DNS and a registry of the test."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mailcheck.dns.servers import Server
from tests.servers.certificates import Authority
from tests.servers.daemon import Daemon
from tests.servers.rdap_server import running_rdap_server


@contextmanager
def running_mail_host(
    folder: Path, host: str, dns: Server, registered: Mapping[str, str], **options: Any
) -> Iterator[Daemon]:
    """Run the daemon with a separate registry, so that it can probe its own SMTP port.

    :param host: the name in its certificate, which a trusted authority issues.
    :param registered: the registration dates of domains, all with the same suffix.
    """
    authority = Authority()
    certificate, key = authority.issue(host).write_to(folder)
    suffix = next(iter(registered)).rpartition(".")[2]
    with running_rdap_server(registered, suffixes=[suffix]) as registry:
        bootstrap = folder / "rdap.json"
        bootstrap.write_text(json.dumps(registry.bootstrap()))
        daemon = Daemon(
            folder,
            dns_resolvers=[f"{dns.host}:{dns.port}"],
            dns_allow_special_use=True,
            network_allow_private=True,
            smtp_certificate=str(certificate),
            smtp_private_key=str(key),
            probes_ca_file=authority.write_to(folder / "authority.pem"),
            probes_rdap_bootstrap=str(bootstrap),
            **options,
        )
        daemon.options["probes_smtp_port"] = daemon.smtp_port
        try:
            daemon.start()
            yield daemon
        finally:
            daemon.kill()
