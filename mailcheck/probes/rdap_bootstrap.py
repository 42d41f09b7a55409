"""Which registry answers for which suffix: the bootstrap file of RDAP (RFC 9224)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MAX_SUFFIXES = 20_000  # of a file; IANA's has 1,200


@dataclass(frozen=True, slots=True)
class Registry:
    """Who knows the names below ``suffix``; ``base_url`` ends with a slash."""

    suffix: str
    base_url: str


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The registries by suffix."""

    base_urls: Mapping[str, str]

    def find(self, domain: str) -> Registry | None:
        """Give the registry with the longest suffix that the domain has (RFC 9224 4)."""
        labels = domain.split(".")
        suffixes = (".".join(labels[start:]) for start in range(len(labels)))
        found = next((suffix for suffix in suffixes if suffix in self.base_urls), None)
        return None if found is None else Registry(found, self.base_urls[found])


def read_bootstrap(text: bytes) -> Bootstrap:
    """Read a bootstrap file; entries that make no sense are left out.

    :raises ValueError: it is no JSON, or names no registry.
    """
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    base_urls = dict(_entries(document))
    if not base_urls:
        raise ValueError("it names no registry")
    return Bootstrap(base_urls)


@cache
def shipped_bootstrap() -> Bootstrap:
    """Give the registries that are known without asking anybody.

    A part of IANA's file, with the date it had; for the first minutes, and for
    when IANA can't be reached.
    """
    return read_bootstrap(files(__package__).joinpath("rdap_bootstrap.json").read_bytes())


def _entries(document: object) -> Iterator[tuple[str, str]]:
    services = document.get("services") if isinstance(document, Mapping) else None
    for service in services if isinstance(services, list) else []:
        if not isinstance(service, list) or len(service) < 2:
            continue
        suffixes, urls = _texts(service[0]), _texts(service[1])
        base_url = _choose(urls)
        for suffix in suffixes[:MAX_SUFFIXES] if base_url else []:
            yield suffix.lower().strip("."), base_url


def _choose(urls: list[str]) -> str:
    """Prefer https (RFC 9224 3)."""
    for scheme in ("https://", "http://"):
        for url in urls:
            if url.lower().startswith(scheme):
                return url if url.endswith("/") else url + "/"
    return ""


def _texts(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
