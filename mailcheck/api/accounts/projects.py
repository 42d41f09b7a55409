"""JSON shapes of projects, their members and invitations."""

from collections.abc import Sequence
from typing import Annotated

from mailcheck.api.shapes import Always, Count, Shape, Timestamp, doc, shape_from
from mailcheck.core.accounts import Account
from mailcheck.core.projects import ListedInvitation, Role
from mailcheck.core.projects import Member as ProjectMember

RoleField = Annotated[Role, doc("an owner may do all, an editor change things, a reader read them")]


Deleted = Annotated[
    dict[str, Count], doc("what was deleted with it: numbers by kind, such as messages and keys")
]


class Project(Shape):
    """A project that several people share, with an inbox of its own."""

    id: str
    name: str
    address: Annotated[str, doc("the address of its inbox; +tag can be added to the local part")]
    created_at: Timestamp
    disabled: Annotated[bool, doc("whether the operator has disabled it")]


class Projects(Shape):
    """The projects that a key manages."""

    projects: Annotated[tuple[Project, ...], doc("by name")]


class DeletedProject(Shape):
    """A project that was deleted."""

    success: Always
    id: str
    deleted: Deleted


class Member(Shape):
    """A person in a project."""

    id: Annotated[str, doc("id of the person's account")]
    name: str
    role: RoleField
    added_at: Timestamp


class Members(Shape):
    """The members of a project."""

    members: Annotated[tuple[Member, ...], doc("in the order in which they joined")]


class RemovedMember(Shape):
    """A person who is not a member any more."""

    success: Always
    id: str


class Invitation(Shape):
    """An invitation that was not used yet."""

    id: Annotated[str, doc("not secret: it does not let anybody join")]
    role: RoleField
    address: Annotated[
        str | None, doc("address of a person who may have no account; null for any person")
    ]
    expires_at: Timestamp


class Invitations(Shape):
    """The invitations to a project."""

    invitations: Annotated[tuple[Invitation, ...], doc("those that expire first come first")]


class InvitationWithLink(Invitation):
    """A new invitation with its link, which no other response contains."""

    url: Annotated[str, doc("lets one person join; send it to that person, it is not shown again")]


class RevokedInvitation(Shape):
    """An invitation that was revoked."""

    success: Always
    id: str


def render_project(project: Account, domain: str) -> Project:
    """Render a project. ``domain`` is that of its address."""
    address = f"{project.mailbox_name}@{domain}"
    return shape_from(Project, project, address=address, disabled=project.disabled_at is not None)


def render_projects(found: Sequence[Account], domain: str) -> Projects:
    """Render projects."""
    return Projects(tuple(render_project(place, domain) for place in found))


def render_member(member: ProjectMember) -> Member:
    """Render a member."""
    return shape_from(Member, member, id=member.account_id)


def render_members(members: Sequence[ProjectMember]) -> Members:
    """Render the members of a project."""
    return Members(tuple(map(render_member, members)))


def render_invitation(listed: ListedInvitation) -> Invitation:
    """Render an invitation."""
    return shape_from(Invitation, listed, address=listed.address or None)


def render_invitations(listed: Sequence[ListedInvitation]) -> Invitations:
    """Render the invitations to a project."""
    return Invitations(tuple(map(render_invitation, listed)))


def render_invited(listed: ListedInvitation, url: str) -> InvitationWithLink:
    """Render a new invitation with its link."""
    return shape_from(InvitationWithLink, render_invitation(listed), url=url)
