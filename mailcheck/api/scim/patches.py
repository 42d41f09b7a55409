"""PATCH (RFC 7644 3.5.2), also in the dialects of Entra ID and Okta.

Entra ID sends operations with a capital, booleans as texts, paths of values that do not exist yet,
and the members that it removes as a list of values. Both send changes without a path.
"""

import copy
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mailcheck.api.scim.filters import Both, Comparison, Either, Filter, matches_value, parse_filter
from mailcheck.api.scim.schemas import (
    Attribute,
    Document,
    ResourceType,
    find,
    find_path,
    is_ignored,
    read_value,
)
from mailcheck.core.signing_in.provisioning import Kind, ProvisioningRefused

MAX_OPERATIONS = 1_000
"""Maximum number of operations in a request."""

MAX_SEARCHED = 500
"""Maximum number of values that are searched by a condition other than ``value eq``.

The search runs in the main process, and a request has room for thousands of comparisons.
"""


class Operation(Struct, frozen=True):
    """A change: ``add``, ``replace`` or ``remove``. ``path`` is empty if it has none."""

    op: str
    path: str = ""
    value: Any = None


class _Target(Struct, frozen=True):
    """What a path means: an attribute, which of its values, and its sub-attribute."""

    attribute: Attribute
    condition: Filter | None = None
    part: Attribute | None = None


def read_operations(body: object) -> list[Operation]:
    """Return the operations of a request.

    :raises ProvisioningRefused: the body has another form.
    """
    fields = {name.lower(): value for name, value in body.items()} if isinstance(body, dict) else {}
    listed = fields.get("operations")
    if not isinstance(listed, list) or not listed:
        raise _refuse(Kind.INVALID_SYNTAX, "the body must have a list of Operations")
    if len(listed) > MAX_OPERATIONS:
        raise _refuse(Kind.TOO_MANY, f"a request has at most {MAX_OPERATIONS} operations")
    return [_read_operation(item) for item in listed]


def _read_operation(document: Any) -> Operation:
    if not isinstance(document, dict):
        raise _refuse(Kind.INVALID_SYNTAX, "each operation must be a JSON object")
    op, path = document.get("op"), document.get("path") or ""
    name = op.lower() if isinstance(op, str) else ""
    if name not in ("add", "replace", "remove"):
        raise _refuse(Kind.INVALID_SYNTAX, f"op must be add, replace or remove; got {op!r:.40}")
    if not isinstance(path, str):
        raise _refuse(Kind.INVALID_PATH, "path must be a text")
    if name == "remove" and not path:
        raise _refuse(Kind.NO_TARGET, "remove needs a path")
    return Operation(name, path, document.get("value"))


def apply(document: Document, operations: Sequence[Operation], kind: ResourceType) -> Document:
    """Return the resource after all operations.

    :raises ProvisioningRefused: one cannot be applied. None is applied then.
    """
    changed = copy.deepcopy(document)
    for operation in operations:
        if operation.path:
            _apply_at(changed, operation, kind)
        else:
            _apply_without_path(changed, operation, kind)
    return changed


def _apply_without_path(document: Document, operation: Operation, kind: ResourceType) -> None:
    """Apply a change whose value is an object: its keys are paths, also with dots and URIs."""
    if not isinstance(operation.value, dict):
        raise _refuse(Kind.INVALID_VALUE, "an operation without a path needs an object as value")
    for name, value in operation.value.items():
        path = find_path(kind, name.partition("[")[0])
        # Okta repeats the id of a group that it renames.
        if path is None or not path.attribute.is_read_only:
            _apply_at(document, Operation(operation.op, name, value), kind)


def _apply_at(document: Document, operation: Operation, kind: ResourceType) -> None:
    if is_ignored(kind, operation.path):
        return
    target = _parse_path(operation.path, kind)
    if target.attribute.is_read_only:
        problem = f"{target.attribute.name} cannot be changed by a directory"
        raise _refuse(Kind.MUTABILITY, problem)
    is_removal = operation.op == "remove" or (operation.op == "replace" and operation.value is None)
    if target.condition is not None:
        _change_values(document, target, operation, is_removal=is_removal)
    elif is_removal:
        _remove(document, target, operation.value)
    elif target.part is not None:
        _set_part(document, target.attribute, target.part, operation.value)
    else:
        _set(document, target.attribute, operation)


def _parse_path(text: str, kind: ResourceType) -> _Target:
    name, bracket, rest = text.partition("[")
    condition: Filter | None = None
    if bracket:
        inner, closing, after = rest.rpartition("]")
        if not closing or (after and not after.startswith(".")):
            raise _refuse(Kind.INVALID_PATH, f"the path {text[:60]!r} is not valid")
        condition = parse_filter(inner)
        name += after
    path = find_path(kind, name.strip())
    if path is None:
        raise _refuse(Kind.INVALID_PATH, f"{text[:60]!r} is not an attribute of {kind.name}")
    if condition is not None and not path.attribute.is_multi:
        raise _refuse(Kind.INVALID_PATH, f"{path.attribute.name} has one value only")
    return _Target(path.attribute, condition, path.part)


def _set(document: Document, attribute: Attribute, operation: Operation) -> None:
    """Set a whole attribute, or add to its values."""
    value = read_value(attribute, operation.value)
    if attribute.is_multi and operation.op == "add":
        document[attribute.name] = _joined(document.get(attribute.name, []), value)
    elif attribute.type == "complex" and not attribute.is_multi:
        document[attribute.name] = {**document.get(attribute.name, {}), **value}
    else:
        document[attribute.name] = _joined([], value) if attribute.is_multi else value


def _joined(present: list[Document], added: list[Document]) -> list[Document]:
    """Return values with others, each once. A new primary value takes the place of the old one."""
    if any(item.get("primary") for item in added):
        present = [{**item, "primary": False} if item.get("primary") else item for item in present]
    joined: dict[object, Document] = {}
    for number, item in enumerate((*present, *added)):
        key = (item["value"], item.get("type")) if "value" in item else number
        joined[key] = {**joined.get(key, {}), **item}
    return list(joined.values())


def _set_part(document: Document, attribute: Attribute, part: Attribute, value: Any) -> None:
    """Set a sub-attribute: of the one value, or of each value of a list."""
    read = read_value(part, value)
    if attribute.is_multi:
        values = document.get(attribute.name) or [{}]
        document[attribute.name] = [{**item, part.name: read} for item in values]
    else:
        document[attribute.name] = {**document.get(attribute.name, {}), part.name: read}


def _remove(document: Document, target: _Target, value: Any) -> None:
    """Remove an attribute, a sub-attribute, or the values of a list (as Entra ID means it)."""
    name, present = target.attribute.name, document.get(target.attribute.name)
    if target.attribute.is_required:
        raise _refuse(Kind.INVALID_VALUE, f"{name} cannot be removed: replace it")
    if present is None:
        return
    if target.part is not None:
        values = present if isinstance(present, list) else [present]
        for item in values:
            item.pop(target.part.name, None)
    elif target.attribute.is_multi and value is not None:
        gone = {item.get("value") for item in read_value(target.attribute, value)}
        document[name] = [item for item in present if item.get("value") not in gone]
    else:
        del document[name]


def _change_values(
    document: Document, target: _Target, operation: Operation, *, is_removal: bool
) -> None:
    """Change those values of an attribute that meet a condition."""
    attribute, part, condition = target.attribute, target.part, target.condition
    assert condition is not None
    present: list[Document] = document.get(attribute.name, [])
    met = _find_met(present, condition, attribute)
    if is_removal and part is None:
        document[attribute.name] = [
            item for item, is_met in zip(present, met, strict=True) if not is_met
        ]
        return
    if is_removal:
        assert part is not None
        for item, is_met in zip(present, met, strict=True):
            if is_met:
                item.pop(part.name, None)
        return
    if part is None:
        read = read_value(attribute, operation.value)
        if len(read) != 1:
            raise _refuse(Kind.INVALID_VALUE, f"send one value for {operation.path[:60]}")
        change = read[0]
    else:
        change = {part.name: read_value(part, operation.value)}
    if any(met):
        for item, is_met in zip(present, met, strict=True):
            if is_met:
                item.update(change)
    else:
        # Entra ID replaces the work address of a person who has none.
        document[attribute.name] = _joined(
            present, [{**_meant_by(condition, attribute, operation.path), **change}]
        )


def _value_of(condition: Filter) -> str | None:
    """Return the text that ``value`` equals by a condition, or `None` for any other condition."""
    if not isinstance(condition, Comparison) or not isinstance(condition.value, str):
        return None
    is_by_value = (condition.path.lower(), condition.operator) == ("value", "eq")
    return condition.value if is_by_value else None


def _find_met(
    values: Sequence[Document], condition: Filter, attribute: Attribute
) -> Sequence[bool]:
    """Return which values meet a condition.

    Directories remove members of groups by ``value eq``, so these are found without a search.

    :raises ProvisioningRefused: there are more values than are searched for other conditions.
    """
    part = find(attribute.parts, "value")
    parts = condition.conditions if isinstance(condition, Either) else [condition]
    wanted = set(map(_value_of, parts))
    if part is not None and part.is_exact and None not in wanted:
        return [item.get("value") in wanted for item in values]
    if len(values) > MAX_SEARCHED:
        problem = f'{attribute.name} has more than {MAX_SEARCHED} values: name one by value eq "ID"'
        raise _refuse(Kind.TOO_MANY, problem)
    return [matches_value(item, condition, attribute) for item in values]


def _meant_by(condition: Filter, attribute: Attribute, path: str) -> Document:
    """Return the value that a condition describes, such as ``type eq "work"``.

    :raises ProvisioningRefused: the condition describes more than one value.
    """
    parts = condition.conditions if isinstance(condition, Both) else [condition]
    described: Document = {}
    for item in parts:
        known = None
        if isinstance(item, Comparison) and item.operator == "eq":
            known = next(
                (part for part in attribute.parts if part.name.lower() == item.path.lower()), None
            )
        if known is None or not isinstance(item, Comparison):
            raise _refuse(Kind.NO_TARGET, f"no value of {attribute.name} meets {path[:60]!r}")
        described[known.name] = read_value(known, item.value)
    return described


def _refuse(kind: Kind, problem: str) -> ProvisioningRefused:
    return ProvisioningRefused(kind, problem)
