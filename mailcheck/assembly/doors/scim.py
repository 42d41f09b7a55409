"""Builds the door for the directory of a company."""

from collections.abc import Sequence
from functools import partial

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.doors.access import WebParts
from mailcheck.core.audit import DAEMON
from mailcheck.core.signing_in.company import GroupRole, parse_group_role
from mailcheck.operations.accounts.provisioning import Provisioning
from mailcheck.store.accounts.provisioning_store import ProvisioningStore
from mailcheck.web.scim.door import BASE, GUIDE_PATH, SCIM, Scim, admit_operator
from mailcheck.web.site.access_control import api_key_of
from mailcheck.web.site.application import Application, OpenDoor, admit_with_key


def build_scim(parts: WebParts) -> Application:
    """Build the endpoints of SCIM 2.0."""
    daemon, accounts = parts.daemon, parts.daemon.accounts
    roles = [parse_group_role(role) for role in daemon.runtime.config.scim.roles]
    provisioning = build_provisioning(daemon, roles)
    admit = admit_operator(
        admit_with_key(parts.access, api_key_of),
        accounts.keep,
        partial(provisioning.follow_groups, DAEMON),
    )
    opened = OpenDoor(
        SCIM,
        admit,
        parts.urls.of,
        lambda request: parts.urls.of(request).public_url + BASE,
        Scim(provisioning, daemon.runtime.urls.public_url + GUIDE_PATH),
    )
    return Application([opened], parts.addresses, daemon.runtime.now)


def build_provisioning(daemon: Daemon, roles: Sequence[GroupRole]) -> Provisioning:
    """Build what a directory can ask for."""
    runtime, accounts = daemon.runtime, daemon.accounts
    return Provisioning(
        ProvisioningStore(runtime.engine),
        accounts.keep,
        accounts.projects,
        names=accounts.names,
        roles=roles,
        audit=accounts.audit,
        clocks=runtime.clocks,
    )
