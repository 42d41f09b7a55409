"""A directory that sends requests to a house, and the bodies that directories send."""

from typing import Any
from urllib.parse import quote

from mailcheck.config.options import ScimOptions
from mailcheck.core.projects import Role
from mailcheck.core.rights import Rights, Scope
from tests.house import Answer, House, config_in_memory, run

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Directory:
    """A directory with a key of the operator."""

    def __init__(self, *roles: str, house: House | None = None) -> None:
        """Build a house with a project "shop" and a mapping of groups, if none is given."""
        self.house = house or House(config_in_memory(scim=ScimOptions(roles=roles)))
        accounts = self.house.assembly.accounts
        self.operator = self.house.account
        self.key = self.house.issue_key(self.operator, rights=Rights(frozenset({Scope.OPERATOR})))
        self.project = run(accounts.projects.create(self.operator, "shop"))

    def send(
        self, method: str, path: str, body: Any = None, key: str | None = None, **options: Any
    ) -> Answer:
        """Send a request below the address of the directory."""
        headers = {"Content-Type": "application/scim+json", **options.pop("headers", {})}
        sent = {} if body is None else {"json": body}
        secret = self.key if key is None else key
        return self.house.open(
            f"/scim/v2{path}", method, secret or None, headers=headers, **sent, **options
        ).answer()

    def find(self, kind: str, condition: str, more: str = "") -> Any:
        """Return the resources that meet a filter."""
        answer = self.send("GET", f"/{kind}?filter={quote(condition)}{more}")
        assert answer.status == 200, answer.body
        return answer.json["Resources"]

    def create_user(self, user_name: str = "ann@example.com", **more: Any) -> Any:
        """Create a person, and return the document."""
        answer = self.send(
            "POST", "/Users", {"schemas": [f"{CORE}User"], "userName": user_name, **more}
        )
        assert answer.status == 201, answer.body
        return answer.json

    def create_group(self, name: str = "developers", *members: str) -> Any:
        """Create a group, and return the document."""
        listed = [{"value": member} for member in members]
        answer = self.send("POST", "/Groups", {"displayName": name, "members": listed})
        assert answer.status == 201, answer.body
        return answer.json

    def patch(self, location: str, *operations: Any) -> Answer:
        """Send a PATCH to a resource, such as ``Users/1``."""
        body = {"schemas": [PATCH_OP], "Operations": list(operations)}
        return self.send("PATCH", f"/{location}", body)

    def roles(self) -> dict[str, Role]:
        """Return the members of the project and their roles."""
        members = run(self.house.assembly.accounts.projects.members(self.project))
        return {member.name: member.role for member in members}

    def actions(self) -> list[tuple[str, str]]:
        """Return the newest entries of the audit log: actions and details, oldest first."""
        entries = run(self.house.assembly.accounts.audit.newest())
        return [(entry.action, entry.detail) for entry in reversed(entries)]
