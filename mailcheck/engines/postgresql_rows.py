"""Statements over rows for PostgreSQL. Each column is passed as one array.

The statement is the same for one row and for many, so it is parsed and planned once. A column
of binary values has no NULL.
"""

from collections.abc import Sequence
from functools import cache

from mailcheck.ports.engine import Value

BIGINT, TEXT, BYTEA, NOTHING = "bigint", "text", "bytea", "nothing"

_AMONG_ROWS = "IN ({rows})"


def replace_nul(text: str) -> str:
    """Replace NUL characters, since PostgreSQL cannot store them in a text."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def bind_arrays(sql: str, rows: Sequence[Sequence[Value]]) -> tuple[str, list[bytes]]:
    """Return the statement to prepare for a statement over rows, and its arguments as literals."""
    columns = list(zip(*rows, strict=True))
    kinds = tuple(map(_kind, columns))
    given = zip(columns, kinds, strict=True)
    return _statement(sql, kinds), [
        _array(column, kind) for column, kind in given if kind != NOTHING
    ]


def _kind(column: Sequence[Value]) -> str:
    for value in column:
        if value is not None:
            if isinstance(value, bytes):
                return BYTEA
            return BIGINT if isinstance(value, int) else TEXT
    return NOTHING


@cache
def _statement(sql: str, kinds: tuple[str, ...]) -> str:
    if len(kinds) == 1 and _AMONG_ROWS in sql:
        # For an array PostgreSQL reads the index in order, without sorting and joining.
        return sql.replace(_AMONG_ROWS, f"= ANY ($1::{kinds[0]}[])")
    names = [f"column{number}" for number in range(1, len(kinds) + 1)]
    typed = [name for name, kind in zip(names, kinds, strict=True) if kind != NOTHING]
    arrays = [f"${n}::{kind}[]" for n, kind in enumerate((k for k in kinds if k != NOTHING), 1)]
    chosen = [name if name in typed else f"NULL AS {name}" for name in names]
    given = f"unnest({', '.join(arrays)}) AS given ({', '.join(typed)})"
    return sql.format(rows=f"SELECT {', '.join(chosen)} FROM {given}")


def _array(values: Sequence[Value], kind: str) -> bytes:
    """Return values as an array literal."""
    try:
        if kind == BYTEA:
            written = ",".join(rf'"\\x{value.hex()}"' for value in values)  # type: ignore[union-attr]
            written = f"{{{written}}}"
        elif kind == TEXT:
            written = f'{{"{_plain_texts(values)}"}}'
        else:
            written = f"{{{','.join(map(int.__repr__, values))}}}"
    except (TypeError, ValueError):
        written = f"{{{','.join(map(_element, values))}}}"
    written = written.replace("'", "''")
    return f"'{written}'".encode()


def _plain_texts(values: Sequence[Value]) -> str:
    """Return texts between quotes in one step, since they seldom have special characters.

    :raises TypeError: a value is not a text.
    :raises ValueError: a text has a special character.
    """
    joined = '","'.join(values)  # type: ignore[arg-type]
    quotes = 2 * (len(values) - 1)
    if joined.count('"') != quotes or "\\" in joined or "\0" in joined:
        raise ValueError
    return joined


def _element(value: Value) -> str:
    if isinstance(value, str):
        escaped = replace_nul(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(int(value))
