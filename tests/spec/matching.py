"""Whether a JSON value matches a schema, and what differs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry

Schema = Mapping[str, Any]
Formats = Mapping[str, Callable[[str], bool]]

NO_DOCUMENTS = Registry([])


class WholeNumber:
    """A keyword for integers. JSON Schema accepts 1.0; a client in a typed language does not."""

    def __init__(self, parent: object, wanted: object, path: object) -> None:
        pass

    def validate(self, value: object) -> None:
        """Reject a number with a fraction, even if it is 0."""
        if isinstance(value, float):
            raise ValueError(f"{value} is not an integer")


class StrictSchema:
    """A schema for JSON of which each integer is written without a fraction."""

    def __init__(
        self, schema: Schema, formats: Formats, documents: Registry = NO_DOCUMENTS
    ) -> None:
        """``documents`` are the schemas that it refers to, which are strict."""
        self._validator = Draft202012Validator(
            strict(schema),
            formats=dict(formats),
            validate_formats=True,
            keywords={"wholeNumber": WholeNumber},
            registry=documents,
        )

    def problems(self, value: Any) -> Sequence[str]:
        """Return how a value differs, with the places."""
        if self._validator.is_valid(value):
            return ()
        return [
            f"{'.'.join(map(str, ('$', *error.instance_path)))}: {error.message[:300]}"
            for error in self._validator.iter_errors(value)
        ]


def strict(schema: Any) -> Any:
    """Return a schema with the keyword for each integer."""
    if isinstance(schema, list | tuple):
        return [strict(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kinds = schema.get("type", ())
    whole = "integer" in kinds if isinstance(kinds, str | list | tuple) else False
    inside = {name: strict(one) for name, one in schema.items()}
    return {**inside, "wholeNumber": True} if whole else inside
