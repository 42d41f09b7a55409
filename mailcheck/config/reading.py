"""Reads the configuration from a TOML file and the environment, which takes precedence.

An unknown option, a wrong type or a value out of range is an error that names the line or
the variable.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.config.options import Config, NamedOption, options_of
from mailcheck.config.rules import find_problem
from mailcheck.core.errors import cause_of, did_you_mean, nearest_word

ENVIRONMENT_PREFIX = "MAILCHECK_"
FILE_SUFFIX = "_file"

_OF_LISTEN = frozenset({"port", "host", "bind", "address", "addr", "listen_address"})
"""Names under which other programs have the option ``listen``."""

_SEE_OPTIONS = "`mailcheck config example` prints all options"

CLIENT_VARIABLES = frozenset({"MAILCHECK_URL", "MAILCHECK_API_KEY"})
"""Variables of the client libraries. They are not options of the daemon, and no error."""

_OF_ENGINES = re.compile(
    r"MAILCHECK_(NAME|ENV_\w+|SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_\w+)?)"
)
"""Variables that container engines set for a service called mailcheck (Kubernetes service links,
Docker links). They are ignored too."""


class ConfigError(Exception):
    """The configuration is invalid. The message says where and why."""


def load_config(path: Path | None, environment: Mapping[str, str]) -> Config:
    """Read the file, if there is one, and the environment.

    :raises ConfigError: names the invalid line or variable.
    """
    source = _TomlFile(path)
    config = Config()
    sections = {name: getattr(config, name) for name in Config.__struct_fields__}
    source.require_known(sections)
    _require_known_variables(environment, sections)
    origins: dict[tuple[str, str], str] = {}
    for name, section in sections.items():
        values = {}
        for option in options_of(section):
            setting = _find_setting(name, option, source, environment)
            if setting is not None:
                origins[name, option.name] = setting.origin
                values[option.name] = setting.read(option)
        config = replace(config, **{name: replace(section, **values)})
    problem = find_problem(config)
    if problem is not None:
        section_name, option_name, text = problem
        origin = origins.get((section_name, option_name), path or "the default")
        raise ConfigError(f"{origin}: [{section_name}] {option_name} {text}")
    return config


class _Setting(Struct, frozen=True):
    """The value of an option, with the line or variable that sets it."""

    value: Any
    origin: str
    is_file: bool

    def read(self, option: NamedOption) -> Any:
        """Return the value in the option's type. Read it from a file if the setting names one."""
        value = _read_secret(self.value, self.origin) if self.is_file else self.value
        return _checked(value, option, self.origin)


def _find_setting(
    section: str, option: NamedOption, source: "_TomlFile", environment: Mapping[str, str]
) -> _Setting | None:
    """Return the setting of an option, if any. The environment takes precedence over the file."""
    names = _names_of(option)
    in_environment = [
        _Setting(_from_text(environment[variable], option, variable, is_file), variable, is_file)
        for name in names
        for variable, is_file in [(variable_name(section, name), name != option.name)]
        if variable in environment
    ]
    in_source = [
        _Setting(source.get(section, name), source.where(section, name), name != option.name)
        for name in names
        if source.has(section, name)
    ]
    return _only_one(in_environment or in_source, option)


def _names_of(option: NamedOption) -> list[str]:
    """Return the name of an option; for a secret one, also that of its twin with a file."""
    twin = [option.name + FILE_SUFFIX] if option.described.is_secret else []
    return [option.name, *twin]


def _only_one(found: Sequence[_Setting], option: NamedOption) -> _Setting | None:
    """Return the setting of an option, if any.

    :raises ConfigError: there are two.
    """
    if len(found) > 1:
        both = " or ".join(_names_of(option))
        raise ConfigError(f"{found[1].origin}: set either {both}, not both")
    return found[0] if found else None


def variable_name(section: str, option: str) -> str:
    """Return the environment variable of an option."""
    return f"{ENVIRONMENT_PREFIX}{section}_{option}".upper()


def _require_known_variables(environment: Mapping[str, str], sections: Mapping[str, Any]) -> None:
    known = {
        variable_name(section, name)
        for section, options in sections.items()
        for option in options_of(options)
        for name in _names_of(option)
    }
    for variable in environment:
        is_ours = variable.startswith(ENVIRONMENT_PREFIX) and variable not in CLIENT_VARIABLES
        if is_ours and variable not in known and not _OF_ENGINES.fullmatch(variable):
            hint = _explain_variable(variable, known, sections)
            raise ConfigError(f"{variable} is not the variable of an option; {hint}")


def _explain_variable(variable: str, known: Collection[str], sections: Mapping[str, Any]) -> str:
    """Return which variable was meant, or which ones its section has."""
    for section, options in sections.items():
        prefix = variable_name(section, "")
        if variable.startswith(prefix):
            name = variable.removeprefix(prefix).lower()
            names = options.__struct_fields__
            return _explain_option(name, names, partial(variable_name, section))
    bare = {name.removeprefix(ENVIRONMENT_PREFIX): name for name in known}
    similar = nearest_word(variable.removeprefix(ENVIRONMENT_PREFIX), bare)
    return f"did you mean {bare[similar]}?" if similar else _SEE_OPTIONS


def _explain_option(
    name: str, names: Collection[str], shown: Callable[[str], str] = lambda name: name
) -> str:
    """Return which option of a section was meant, or which ones it has."""
    meant = "listen" if name in _OF_LISTEN and "listen" in names else nearest_word(name, names)
    return f"did you mean {shown(meant)}?" if meant else f"there are {', '.join(map(shown, names))}"


def _from_text(text: str, option: NamedOption, variable: str, is_path: bool) -> Any:
    """Parse a variable: a TOML value, a plain word, or comma-separated words for a list."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    is_number = option.described.is_number_too and text.isascii() and text.isdigit()
    if (is_path or isinstance(option.default, str)) and not is_quoted and not is_number:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        if is_quoted:
            raise ConfigError(f"{variable}: {error}") from None
        if isinstance(option.default, tuple):
            return [word.strip() for word in text.split(",") if word.strip()]
        return text


def _read_secret(path: Any, origin: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise ConfigError(f"{origin}: the file {path} cannot be read: {cause_of(error)}") from None


def _checked(value: Any, option: NamedOption, where: str) -> Any:
    """Return the value in the option's type.

    :raises ConfigError: the value has another type, or is out of range.
    """
    default = option.default
    if option.described.tables is not None:
        return _checked_tables(value, option.name, option.described.tables, where)
    if isinstance(default, tuple):
        return _checked_words(value, option, where)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if option.described.is_number_too:
        if isinstance(value, str) and value not in option.described.choices:
            words = ", ".join(option.described.choices)
            raise ConfigError(
                f"{where}: {option.name} must be {words} or an integer, not {value!r}"
            )
        default = value if type(value) is int else default
    if type(value) is not type(default) or (isinstance(value, float) and not isfinite(value)):
        kind = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
        raise ConfigError(f"{where}: {option.name} must be {kind[type(default)]}, not {value!r}")
    lowest, highest = option.described.lowest, option.described.highest
    is_number = not isinstance(value, str)
    if is_number and lowest is not None and value < lowest:
        raise ConfigError(f"{where}: {option.name} must be at least {lowest:g}, not {value!r}")
    if highest is not None and value > highest:
        raise ConfigError(f"{where}: {option.name} must be at most {highest:g}, not {value!r}")
    choices = option.described.choices
    if choices and type(value) is str and value not in choices:
        raise ConfigError(
            f"{where}: {option.name} must be one of {', '.join(choices)}, not {value!r}"
        )
    return value


def _checked_words(value: Any, option: NamedOption, where: str) -> tuple[str, ...]:
    """Return a list of strings, or one string as such a list.

    :raises ConfigError: the value has another type.
    """
    words: list[Any] = value if isinstance(value, list) else [value]
    if option.name.endswith("listen"):  # a port alone; the rule says what to write
        words = [str(word) if type(word) is int else word for word in words]
    if not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{where}: {option.name} must be a list of strings, not {value!r}")
    return tuple(words)


def _checked_tables(value: Any, name: str, kind: type[Struct], where: str) -> tuple[Struct, ...]:
    """Return a list of tables as structs.

    :raises ConfigError: it is not such a list, or a table has an unknown or a wrong option.
    """
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        # The value is left out of the message, since it may contain a password.
        raise ConfigError(f"{where}: {name} must be a list of tables, each with double brackets")
    return tuple(
        _checked_table(table, kind, f"{where}: {name}, table {number}")
        for number, table in enumerate(value, 1)
    )


def _checked_table(table: Mapping[str, Any], kind: type[Struct], where: str) -> Struct:
    values, left = {}, set(table)
    for option in options_of(kind):
        names = [name for name in _names_of(option) if name in table]
        found = [_Setting(table[name], where, is_file=name != option.name) for name in names]
        setting = _only_one(found, option)
        if setting is not None:
            values[option.name] = setting.read(option)
        left.difference_update(names)
    for unknown in sorted(left):
        hint = _explain_option(unknown, kind.__struct_fields__)
        raise ConfigError(f"{where} has no option {unknown}; {hint}")
    return kind(**values)


class _TomlFile:
    """The values of a TOML file, and their line numbers."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._text = ""
        if path is not None:
            try:
                self._text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{path} cannot be read: {cause_of(error)}") from None
        try:
            self._values: dict[str, Any] = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: {error}") from None

    def has(self, section: str, name: str) -> bool:
        return name in self._values.get(section, {})

    def get(self, section: str, name: str) -> Any:
        return self._values[section][name]

    def require_known(self, sections: Mapping[str, Any]) -> None:
        for section, values in self._values.items():
            if section not in sections or not isinstance(values, dict):
                raise ConfigError(
                    f"{self.where(section, None)}: unknown section [{section}]; "
                    f"{self._explain(section, sections)}"
                )
            options = sections[section]
            known = {name for option in options_of(options) for name in _names_of(option)}
            for name in values:
                if name not in known:
                    hint = _explain_option(name, options.__struct_fields__)
                    where = self.where(section, name)
                    raise ConfigError(f"{where}: [{section}] has no option {name}; {hint}")

    def _explain(self, section: str, sections: Mapping[str, Any]) -> str:
        """Return which section was meant, or that an option stands outside of its section."""
        of_option = [
            f"[{name}]"
            for name, options in sections.items()
            if section in options.__struct_fields__
        ]
        if section not in sections and of_option:
            return f"{section} is an option of {' or '.join(of_option)}"
        if section in sections:
            return f"write the options below a line [{section}]"
        return did_you_mean(section, sections)

    def where(self, section: str, name: str | None) -> str:
        """Return the line of a section or an option, which tomllib does not report."""
        current: str | None = None
        for number, line in enumerate(self._text.splitlines(), 1):
            header = re.match(r"\s*\[+\s*[\"']?([\w-]+)", line)
            if header is not None:
                current = header[1]
            is_section = name is None and (
                (header is not None and current == section) or _names(line, section)
            )
            if is_section or (name is not None and current == section and _names(line, name)):
                return f"{self._path}, line {number}"
        return str(self._path) if name is None else self.where(section, None)


def _names(line: str, name: str) -> bool:
    return re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[.=]", line) is not None
