"""A typed cache on top of `Memory`, whose values are stored as text.

Values are encoded as MessagePack by msgspec, which supports tuples as keys. msgspec cannot decode a
union of two foreign classes, such as ``IPv4Address | IPv6Address``. Decoded values are therefore
converted according to the annotations of their classes.
"""

import dataclasses
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.memory.recent import LruCache
from mailcheck.ports.cluster import Memory

READ_BEFORE = 8_000_000
"""Maximum number of characters of the texts whose decoded values are reused: 500 reputations, which
take 3 ms each to decode."""

Value = TypeVar("Value")
Reader = Callable[[Any], Any]

_ATOMS = {
    str: (str,),
    bytes: (bytes,),
    int: (int,),
    float: (int, float),
    bool: (bool,),
    NoneType: (NoneType,),
}
_IN_TEXT: dict[frozenset[Any], Reader] = {
    frozenset({IPv4Address, IPv6Address}): ip_address,
    frozenset({IPv4Network, IPv6Network}): ip_network,
}


class CachedValues(Generic[Value]):
    """A cache for values of one type, by key.

    :param aspect: separates values of the same type that have the same keys.
    """

    def __init__(self, memory: Memory, kind: str, value_type: Any, aspect: str = "") -> None:
        self._memory = memory
        self._kind, self._type, self._aspect = kind, value_type, aspect
        self._read = reader_of(value_type)
        self._read_before: LruCache[str, tuple[str, Value]] = LruCache(
            READ_BEFORE, lambda kept: len(kept[0])
        )

    def variant(self, aspect: str) -> "CachedValues[Value]":
        """Return a cache for other values of the same type with the same keys."""
        return CachedValues(self._memory, self._kind, self._type, aspect)

    def _name(self, key: str) -> Key:
        return key_of(self._kind, self._aspect, key)

    async def get(self, key: str) -> Value | None:
        """Return the cached value, or `None` if there is none or it cannot be decoded."""
        text = await self._memory.recall(self._name(key))
        if text is None:
            return None
        before = self._read_before.get(key)
        if before is not None and before[0] == text:
            return before[1]
        try:
            value = cast(Value, self._read(msgspec.msgpack.decode(b64decode(text, validate=True))))
        except (msgspec.DecodeError, ValueError, TypeError, LookupError):
            return None
        self._read_before.put(key, (text, value))
        return value

    async def put(self, key: str, value: Value, milliseconds: int) -> bool:
        """Cache a value for some milliseconds. Return whether all daemons have it."""
        text = b64encode(msgspec.msgpack.encode(value, enc_hook=_plain)).decode()
        return await self._memory.keep(self._name(key), text, milliseconds)

    async def acquire(self, key: str, milliseconds: int) -> bool:
        """Acquire the lock for computing a value. Return false while another daemon has it."""
        return await self._memory.acquire(self._name(key), milliseconds)

    async def release(self, key: str) -> None:
        """Release the lock for computing a value."""
        await self._memory.release(self._name(key))


@cache
def reader_of(kind: Any) -> Reader:
    """Return the function that converts decoded data to a type. It raises for other data.

    :raises TypeError: values of this type cannot be cached.
    """
    kind = getattr(kind, "__supertype__", kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _ATOMS:
        return lambda value: _atom(value, _ATOMS[kind])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _read_fields(kind, kind.__struct_fields__, kind)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return _read_fields(kind, names, partial(_filled, kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if origin in (Union, UnionType):
        return _read_one_of(arguments)
    if origin is tuple and arguments[1:] != (...,):
        readers = tuple(map(reader_of, arguments))
        return lambda values: tuple(
            read(value) for read, value in zip(readers, _atom(values, (list, tuple)), strict=True)
        )
    if origin in (tuple, Sequence, frozenset):
        read_item, make = reader_of(arguments[0]), frozenset if origin is frozenset else tuple
        return lambda values: make(map(read_item, _atom(values, (list, tuple))))
    if origin is Mapping:
        read_key, read_value = map(reader_of, arguments)
        return lambda pairs: {
            read_key(key): read_value(value) for key, value in _atom(pairs, (dict,)).items()
        }
    raise TypeError(f"values of type {kind} cannot be cached")


def _read_fields(kind: Any, names: Iterable[str], make: Callable[..., Any]) -> Reader:
    hints = get_type_hints(kind)
    readers: dict[str, Reader] = {}

    def read(values: Any) -> Any:
        # The readers are built on first use, since a class may contain itself.
        if not readers:
            readers.update({name: reader_of(hints[name]) for name in names})
        if _atom(values, (dict,)).keys() != readers.keys():
            raise LookupError(f"{kind} of another version of mailcheck")
        return make(**{name: read_field(values[name]) for name, read_field in readers.items()})

    return read


def _filled(kind: Any, **values: Any) -> Any:
    """Build an object without its constructor, whose checks were done before it was cached."""
    value = object.__new__(kind)
    for name, part in values.items():
        object.__setattr__(value, name, part)
    return value


def _read_one_of(kinds: Sequence[Any]) -> Reader:
    rest = frozenset(kinds) - {NoneType}
    if rest in _IN_TEXT:
        read = _IN_TEXT[rest]
    elif len(rest) == 1:
        read = reader_of(next(iter(rest)))
    else:
        raise TypeError(f"a union of {kinds} cannot be cached")
    return lambda value: None if value is None and len(kinds) > len(rest) else read(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (IPv4Address, IPv6Address, IPv4Network, IPv6Network)):
        return str(value)
    raise TypeError(f"{value!r} cannot be cached")


def _atom(value: Any, kinds: tuple[type, ...]) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"{value!r} is not an instance of {kinds}")
    return value
