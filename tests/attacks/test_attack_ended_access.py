"""No stream outlasts the right to it: every kind of stream, and every way in which a right ends.

The kinds are listed in ``open_streams.py``, and the ways here. A new kind of stream, a new port
and a new action of the audit log fail a test until they are in one of the lists.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest

from mailcheck.api.requests.parsing import Request
from mailcheck.assembly.doors.agents import build_tools
from mailcheck.assembly.doors.compatible import FACADES
from mailcheck.assembly.doors.late import DOORS
from mailcheck.assembly.doors.pages import build_pages
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.assembly.running.services import Ports
from mailcheck.core.audit import Action
from mailcheck.core.identifiers import digest_secret
from mailcheck.core.instants import DAY, SECOND
from mailcheck.core.oauth.grants import ACCESS_LIFE
from mailcheck.core.projects import Role
from mailcheck.core.signing_in.passkeys import Passkey
from mailcheck.operations.accounts.authenticate import ACCESS_INTERVAL
from mailcheck.operations.accounts.sign_in import IDLE_LIFE
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.accounts.project_store import ProjectStore
from mailcheck.store.accounts.sign_in_store import PasswordStore, SessionStore
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.site.event_streams import Stream
from tests.attacks.open_streams import (
    CREDENTIALS,
    KEY_LIFE,
    OF_AGENTS,
    OF_KEYS,
    OF_OPEN_LISTENERS,
    OF_PAGES,
    OF_PROGRAMS,
    SECRET,
    Credential,
    World,
    key_of_project,
    open_listener,
    own_key,
    own_session,
    password,
    session_in_project,
    token,
)
from tests.engines.deliveries import noted
from tests.house import result_of, run
from tests.web.mcp.agent import Agent

WITHOUT_STREAMS = {
    "providers": "requests are answered at once",
    "mail": "clients have no access that could end",
    "broken_tls": "no client gets beyond the handshake",
    "milter": "clients have no access that could end",
    "metrics": "requests are answered at once",
}
"""The ports on which no client has a stream, with the reasons."""

DOORS_WITH_STREAMS = {"mcp", "mailosaur", "mailslurp"}
DOORS_WITHOUT_STREAMS = {"providers", "scim", ".well-known", "token", "register", "revoke"}
"""The doors of the HTTP site beside REST and pages, which answer at once or not."""

PORTS = {
    "web": {*OF_KEYS, *OF_AGENTS, *OF_PAGES},
    "mailpit": {"mailpit", "mailhog", "/api/events"},
    "mailpit_mail": {"mailpit_mail"},
    "submission": {"submission"},
    "imap": {"imap"},
    "imap_tls": {"imap"},
    "pop3": {"pop3"},
    "pop3_tls": {"pop3"},
}
"""The kinds of streams on each other port."""

ENDS_NOTHING = {
    Action.ACCOUNT_CREATED,
    Action.ACCOUNT_RENAMED,
    Action.ACCOUNT_ADOPTED,
    Action.ACCOUNT_CHANGED,
    Action.GROUP_CREATED,
    Action.GROUP_CHANGED,
    Action.GROUP_DELETED,
    Action.ACCOUNT_ENABLED,
    Action.OPERATOR_CHANGED,
    Action.LIMITS_CHANGED,
    Action.PROJECT_CREATED,
    Action.PERSON_INVITED,
    Action.INVITATION_REVOKED,
    Action.SIGNED_IN,
    Action.IDENTITY_LINKED,
    Action.IDENTITY_REMOVED,
    Action.PASSKEY_ADDED,
    Action.PASSKEY_RENAMED,
    Action.PASSKEY_REMOVED,
    Action.SIGN_IN_LINK_CREATED,
    Action.KEY_ISSUED,
    Action.CLIENT_REGISTERED,
    Action.CLIENT_DELETED,  # its grants are revoked, each with an entry of its own
    Action.WEBHOOK_CREATED,
    Action.WEBHOOK_DELETED,
    Action.ROUTE_CREATED,
    Action.ROUTE_CHANGED,
    Action.ROUTE_DELETED,
    Action.SECRET_REPLACED,
    Action.RELEASE_ASKED,
    Action.MESSAGE_RELEASED,
}
"""The actions after which everything that is open goes on."""


@dataclass(frozen=True)
class Way:
    """A way in which the right of some credentials ends. Without actions, it is a matter of time.

    ``stays`` is whether the account still receives mail afterwards.
    """

    end: Callable[[Credential], object]
    credentials: Collection[Callable[[World], Credential]]
    actions: Collection[Action] = ()
    stays: bool = True


def _accounts(credential: Credential) -> Any:
    return credential.world.house.assembly.accounts


def _session_of(credential: Credential) -> str:
    cookies = credential.world.browser.cookies
    return next(value for name, value in cookies.items() if "session" in name)


def revoke_keys(credential: Credential) -> None:
    """Revoke all keys and grants of the account."""
    keep = _accounts(credential).keep
    for key in run(keep.list_keys(credential.account)):
        if key.revoked_at is None:
            run(keep.revoke_key(key.id))


def rotate_keys(credential: Credential) -> None:
    """Replace all keys of the account at once."""
    keep = _accounts(credential).keep
    for key in run(keep.list_keys(credential.account)):
        if key.revoked_at is None and key.client_id is None:
            run(keep.rotate_key(key, 0, None, _by()))


def end_access(credential: Credential) -> None:
    """End the sessions and programs of the person."""
    run(_accounts(credential).keep.end_access(credential.world.ann))


def disable_account(credential: Credential) -> None:
    """Disable the account or the project."""
    run(_accounts(credential).keep.disable(credential.account))


def delete_account(credential: Credential) -> None:
    """Delete the account or the project."""
    run(_accounts(credential).keep.delete(credential.account))


def disable_person(credential: Credential) -> None:
    """Disable the person."""
    run(_accounts(credential).keep.disable(credential.world.ann))


def delete_person(credential: Credential) -> None:
    """Delete the person."""
    run(_accounts(credential).keep.delete(credential.world.ann))


def leave_project(credential: Credential) -> None:
    """Remove the person from the project."""
    world = credential.world
    run(_accounts(credential).projects.remove_member(world.shop, world.ann.id))


def demote(credential: Credential) -> None:
    """Make the person an editor, who may not grant access to the project."""
    world = credential.world
    run(_accounts(credential).projects.set_member(world.shop, world.ann, Role.EDITOR))


def revoke_token(credential: Credential) -> None:
    """Let the program give its token back (RFC 7009)."""
    assert credential.program is not None
    assert credential.program.revoke(credential.secret).status == 200


def delete_client(credential: Credential) -> None:
    """Delete the client of the program."""
    assert credential.program is not None
    run(_accounts(credential).oauth_clients.delete(credential.program.client_id))


def sign_out(credential: Credential) -> None:
    """Sign out on a page."""
    browser = credential.world.browser
    browser.open("/account")
    browser.submit("/sign-out")


def end_session(credential: Credential) -> None:
    """End the session in the list of another browser."""
    sessions, ann = _accounts(credential).sessions, credential.world.ann
    listed_id = sessions.id_of(_session_of(credential))
    assert run(sessions.end_listed(ann.id, listed_id, _by()))


def _by() -> Any:
    from mailcheck.core.audit import COMMAND_LINE

    return COMMAND_LINE


def change_password(credential: Credential) -> None:
    """Set another password, which ends the sessions, too."""
    run(_accounts(credential).sign_in.set_password(credential.world.ann, "another horse battery"))


def require_passkey(credential: Credential) -> None:
    """Require a passkey after the password."""
    accounts, ann = _accounts(credential), credential.world.ann
    passkey = Passkey("id", ann.id, b"c", b"key", 0, "Phone", ann.created_at)
    result_of(accounts.passkey_store.add_passkey(passkey, noted()))
    run(_passkeys_of(credential).set_required(ann, is_required=True, by=_by()))


def _passkeys_of(credential: Credential) -> Any:
    return _accounts(credential).passkeys


def expire_key(credential: Credential) -> None:
    """Let the key expire."""
    credential.world.house.clock.advance(KEY_LIFE)


def expire_token(credential: Credential) -> None:
    """Let the access token expire, while the time of waits goes on."""
    credential.world.house.set_ahead += ACCESS_LIFE / SECOND


def expire_session(credential: Credential) -> None:
    """Let the session expire, while the time of streams goes on."""
    credential.world.house.set_ahead += (IDLE_LIFE + 1 * DAY) / SECOND


KEYS = (own_key, key_of_project)
SESSIONS = (own_session, session_in_project)

WAYS = {
    "keys are revoked": Way(revoke_keys, (*KEYS, token), {Action.KEY_REVOKED}),
    "keys are rotated": Way(rotate_keys, KEYS, {Action.KEY_ROTATED}),
    "the key expires": Way(expire_key, {own_key}),
    "the token expires": Way(expire_token, {token}),
    "the session expires": Way(expire_session, SESSIONS),
    "the token is given back": Way(revoke_token, {token}, {Action.KEY_REVOKED}),
    "the client is deleted": Way(delete_client, {token}, {Action.KEY_REVOKED}),
    "the account is disabled": Way(
        disable_account, CREDENTIALS, {Action.ACCOUNT_DISABLED}, stays=False
    ),
    "the account is deleted": Way(
        delete_account, CREDENTIALS, {Action.ACCOUNT_DELETED}, stays=False
    ),
    "the person is disabled": Way(
        disable_person, (token, session_in_project), {Action.ACCOUNT_DISABLED}
    ),
    "the person is deleted": Way(
        delete_person, (token, session_in_project), {Action.ACCOUNT_DELETED}
    ),
    "the person leaves": Way(leave_project, (token, session_in_project), {Action.MEMBER_REMOVED}),
    "the person is demoted": Way(demote, {token}, {Action.MEMBER_SET}),
    "sessions and programs are ended": Way(
        end_access, (own_session, session_in_project, token), {Action.ACCESS_ENDED}
    ),
    "signed out": Way(sign_out, SESSIONS, {Action.SIGNED_OUT}),
    "the session is ended": Way(end_session, SESSIONS, {Action.SESSION_ENDED}),
    "the password is changed": Way(
        change_password, (*SESSIONS, password), {Action.PASSWORD_CHANGED}
    ),
    "a passkey is required": Way(require_passkey, {password}, {Action.SECOND_FACTOR_CHANGED}),
}


@pytest.fixture
def world() -> Iterator[World]:
    """A daemon with all doors."""
    world = World()
    yield world
    world.close()


CASES = [
    pytest.param(way, credential, id=f"{name}-{credential.__name__}")
    for name, way in WAYS.items()
    for credential in way.credentials
]


@pytest.mark.parametrize(("way", "make"), CASES)
def test_every_stream_ends_with_its_right(
    world: World, way: Way, make: Callable[[World], Credential]
) -> None:
    """All streams of a credential end, without mail that arrives later; those of others stay."""
    other = OF_KEYS["/inbox/wait"](Credential(world, world.house.account, world.house.key))
    credential = make(world)
    streams = {kind: start(credential) for kind, start in CREDENTIALS[make].items()}
    assert [kind for kind, one in streams.items() if one.is_over()] == []
    way.end(credential)
    if not way.actions:
        world.house.clock.advance(ACCESS_INTERVAL)
    assert [kind for kind, one in streams.items() if not one.is_over()] == []
    if way.stays:
        world.send_secret(credential.account)
        world.house.clock.advance(2)
    assert [kind for kind, one in streams.items() if SECRET.encode() in one.sent()] == []
    assert not other.is_over()
    noted = {one.action for one in run(_accounts(credential).audit.newest())}
    assert set(way.actions) <= noted


@pytest.mark.parametrize("make", CREDENTIALS, ids=lambda make: make.__name__)
def test_a_change_without_a_notification(world: World, make: Callable[[World], Credential]) -> None:
    """A change by another process ends the streams within a second, even if no hint arrives."""
    credential = make(world)
    streams = {kind: start(credential) for kind, start in CREDENTIALS[make].items()}
    engine, account_id = world.house.assembly.runtime.engine, credential.account.id
    now = world.house.assembly.runtime.now()
    if make in (own_key, key_of_project, token):
        for key in result_of(AccountStore(engine).list_keys(account_id)):
            result_of(AccountStore(engine).revoke_key(key.id, noted(now)))
    elif make is own_session:
        result_of(SessionStore(engine).end_session(digest_secret(_session_of(credential)), noted()))
    elif make is session_in_project:
        result_of(ProjectStore(engine).remove_member(account_id, world.ann.id, noted()))
    elif make is password:
        result_of(PasswordStore(engine).set_password(account_id, "another", noted(now)))
    else:
        assert make is open_listener
        result_of(AccountStore(engine).disable(account_id, noted(now)))
    world.house.clock.advance(1.0)
    assert [kind for kind, one in streams.items() if not one.is_over()] == []


def test_the_hints_are_read_again(world: World) -> None:
    """A hint alone ends nothing, and ten hints during one read cause one more."""
    credential = own_session(world)
    (stream, *_) = [start(credential) for start in OF_PAGES.values()]
    for _ in range(10):
        world.house.assembly.accounts.ended_access.on_hint()
    assert not stream.is_over()


def test_every_action_is_judged() -> None:
    """Each action of the audit log ends access in one of the ways, or is known to end none."""
    ends = {action for way in WAYS.values() for action in way.actions}
    assert ends | ENDS_NOTHING == set(Action)
    assert not ends & ENDS_NOTHING


def test_every_kind_of_stream_is_tried(world: World) -> None:
    """All ports, routes, pages, tools and products with streams and waits are in the lists."""
    assembly = world.house.assembly
    assert set(PORTS) | set(WITHOUT_STREAMS) == set(get_type_hints(Ports))
    assert set(DOORS) == DOORS_WITH_STREAMS | DOORS_WITHOUT_STREAMS
    kinds = {kind for streams in CREDENTIALS.values() for kind in streams}
    assert kinds == {kind for listed in PORTS.values() for kind in listed}
    routes = build_routes(assembly)
    waits = [one.path for one in routes if _waits(one.operation.request) or _is_stream(one.handle)]
    assert {one.partition("?")[0] for one in OF_KEYS} - {"mailosaur", "mailslurp"} == {
        # The log of the service waits like that of a project, for a key of the operator.
        *(path for path in waits if path != "/audit")
    }
    pages = build_pages(assembly, routes, ApiDescription(routes))[2]
    streams = {one.path for one in pages if _is_stream(one.handle)}
    assert {one.partition("?")[0] for one in OF_PAGES} == streams
    waiting = {one.name for one in build_tools(assembly) if _waits(one.request)}
    assert set(OF_AGENTS) == {*waiting, "tasks/get"}
    listening = Agent(world.house).post(b"", method="GET")
    assert listening.status == 405, "a stream of the MCP endpoint belongs to OF_AGENTS"
    assert {one.name for one in FACADES} <= kinds
    sockets = {one.path for facade in FACADES for one in facade.routes if _is_facade_stream(one)}
    assert sockets <= set(OF_OPEN_LISTENERS)
    assert set(OF_PROGRAMS) < kinds


def _waits(kind: type[Request]) -> bool:
    return bool({"timeout", "seconds", "wait"} & set(kind.__struct_fields__))


def _is_stream(handle: Callable[..., Any]) -> bool:
    found = get_type_hints(handle).get("return")
    return found is Stream or Stream in getattr(found, "__args__", ())


def _is_facade_stream(route: Any) -> bool:
    return hasattr(route, "handle") and _is_stream(route.handle)
