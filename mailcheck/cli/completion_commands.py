"""``mailcheck completion``: scripts with which bash, zsh and fish complete commands and options.

The scripts are generated from the parsers of all commands, so Tab starts no program.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.main import COMMANDS, make_parser

PROGRAM = "mailcheck"


class Words(Struct, frozen=True):
    """One argument: an option with its ``names``, or a positional argument without names.

    ``choices`` are its possible values. ``is_file``: the value is the name of a file.
    """

    names: tuple[str, ...]
    text: str
    takes_value: bool
    choices: tuple[str, ...]
    is_file: bool


class CommandWords(Struct, frozen=True):
    """A command by its ``path``, such as ``mailcheck webhook add``.

    ``commands`` are the descriptions of its subcommands by name.
    """

    path: str
    commands: Mapping[str, str]
    arguments: tuple[Words, ...]

    @property
    def options(self) -> list[Words]:
        """The arguments with names."""
        return [argument for argument in self.arguments if argument.names]

    @property
    def takes_files(self) -> bool:
        """Whether a positional argument is the name of a file."""
        return any(argument.is_file for argument in self.arguments if not argument.names)

    @property
    def described(self) -> dict[str, str]:
        """The descriptions of subcommands, options and choices of arguments, by word."""
        found = dict(self.commands)
        for argument in self.arguments:
            found |= dict.fromkeys(argument.names or argument.choices, argument.text)
        return found


class _Recorder(argparse.HelpFormatter):
    """Records the arguments of a parser. It is argparse's only public access to them."""

    def __init__(self) -> None:
        super().__init__(PROGRAM, max_help_position=100, width=1_000)
        self.actions: list[argparse.Action] = []

    def add_argument(self, action: argparse.Action) -> None:
        """Record an argument that the help shows."""
        if action.help is not argparse.SUPPRESS:
            self.actions.append(action)
        super().add_argument(action)


_SUBCOMMAND = re.compile(r"^ {2,4}([a-z][a-z-]*)\s+(\S.*)$", re.M)
"""A subcommand and its description in a help text. A description is one line."""


def list_commands() -> list[CommandWords]:
    """Return all commands with their arguments."""
    return list(_commands_under(make_parser(list(COMMANDS)), PROGRAM))


def _commands_under(parser: argparse.ArgumentParser, path: str) -> Iterator[CommandWords]:
    recorder = _Recorder()
    formatter, parser.formatter_class = parser.formatter_class, lambda prog: recorder
    texts = dict(_SUBCOMMAND.findall(parser.format_help()))
    parser.formatter_class = formatter
    below: dict[str, argparse.ArgumentParser] = {}
    arguments = []
    for action in recorder.actions:
        if action.nargs == argparse.PARSER and isinstance(action.choices, dict):
            # A command with an alias is offered by its name, which comes first.
            first = {one: name for name, one in reversed(action.choices.items())}
            below |= {name: value for name, value in action.choices.items() if first[value] == name}
        else:
            arguments.append(_words_of(action))
    yield CommandWords(path, {name: texts.get(name, "") for name in below}, tuple(arguments))
    for name, below_parser in below.items():
        yield from _commands_under(below_parser, f"{path} {name}")


def _words_of(action: argparse.Action) -> Words:
    return Words(
        names=tuple(action.option_strings),
        text=action.help or "",
        takes_value=action.nargs != 0,
        choices=tuple(map(str, action.choices or ())),
        is_file=action.type is Path or "FILE" in str(action.metavar),
    )


def quoted(text: str) -> str:
    """Return a text as one word for bash and zsh, without special characters."""
    return "'" + text.replace("'", "'\\''") + "'"


def _pattern(words: Iterable[str]) -> str:
    """Return the pattern of a case that matches one of the words."""
    return " | ".join(map(quoted, words)) or "''"


class _Values(Struct, frozen=True):
    """The options with a value, as ``path --option``: for files, for other texts, with choices."""

    files: Sequence[str]
    texts: Sequence[str]
    choices: Mapping[str, tuple[str, ...]]

    @property
    def all(self) -> Sequence[str]:
        """All options with a value."""
        return [*self.files, *self.texts, *self.choices]


def _values_of(commands: Iterable[CommandWords]) -> _Values:
    files: list[str] = []
    texts: list[str] = []
    choices: dict[str, tuple[str, ...]] = {}
    for command in commands:
        for option in command.options:
            for name in option.names if option.takes_value else ():
                at = f"{command.path} {name}"
                if option.choices:
                    choices[at] = option.choices
                else:
                    (files if option.is_file else texts).append(at)
    return _Values(files, texts, choices)


def _paths(commands: Iterable[CommandWords]) -> list[str]:
    """Return the paths of all subcommands."""
    return [f"{command.path} {name}" for command in commands for name in command.commands]


def write_bash(commands: Sequence[CommandWords]) -> str:
    """Return the script for bash."""
    values = _values_of(commands)
    choices = [
        f"        {quoted(at)}) words={quoted(' '.join(known))} ;;"
        for at, known in values.choices.items()
    ]
    words = [
        f"        {quoted(command.path)}) words={quoted(' '.join(command.described))} ;;"
        for command in commands
    ]
    return f"""\
# Completion of {PROGRAM} for bash, written by `{PROGRAM} completion bash`.
_{PROGRAM}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local at={PROGRAM} index=1 words=
    COMPREPLY=()
    if [ "$current" = = ]; then  # bash splits --option=value
        current=
    elif [ "$previous" = = ]; then
        previous=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    while [ "$index" -lt "$COMP_CWORD" ]; do
        case "$at ${{COMP_WORDS[index]}}" in
            {_pattern(values.all)}) index=$((index + 1)) ;;
            {_pattern(_paths(commands))}) at="$at ${{COMP_WORDS[index]}}" ;;
        esac
        index=$((index + 1))
    done
    case "$at $previous" in
        {_pattern(values.files)}) compopt -o default 2> /dev/null; return ;;
        {_pattern(values.texts)}) return ;;
{_lines(choices)}
    esac
    if [ -z "$words" ]; then
        case "$at" in
            {_pattern(command.path for command in commands if command.takes_files)})
                [[ $current == -* ]] || {{ compopt -o default 2> /dev/null; return; }} ;;
        esac
        case "$at" in
{_lines(words)}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _{PROGRAM} {PROGRAM}
"""


def write_zsh(commands: Sequence[CommandWords]) -> str:
    """Return the script for zsh."""
    values = _values_of(commands)
    choices = [
        f"        {quoted(at)}) compadd -- {' '.join(known)}; return ;;"
        for at, known in values.choices.items()
    ]
    words = []
    for command in commands:
        described = (quoted(f"{word}:{text}") for word, text in command.described.items())
        words.append(f"        {quoted(command.path)}) found=({' '.join(described)}) ;;")
    return f"""\
#compdef {PROGRAM}
# Completion of {PROGRAM} for zsh, written by `{PROGRAM} completion zsh`.
_{PROGRAM}() {{
    local at={PROGRAM} index=2
    local -a found
    while (( index < CURRENT )); do
        case "$at $words[index]" in
            {_pattern(values.all)}) (( index++ )) ;;
            {_pattern(_paths(commands))}) at="$at $words[index]" ;;
        esac
        (( index++ ))
    done
    case "$at $words[CURRENT-1]" in
        {_pattern(values.files)}) _files; return ;;
        {_pattern(values.texts)}) _message value; return ;;
{_lines(choices)}
    esac
    case "$at" in
{_lines(words)}
    esac
    case "$at" in
        {_pattern(row.path for row in commands if row.takes_files)})
            [[ $PREFIX == -* ]] || {{ _files; return }} ;;
    esac
    _describe argument found
}}
if [ "$funcstack[1]" = _{PROGRAM} ]; then
    _{PROGRAM} "$@"
else
    compdef _{PROGRAM} {PROGRAM}
fi
"""


def write_fish(commands: Sequence[CommandWords]) -> str:
    """Return the script for fish."""
    lines = [line for command in commands for line in _fish_lines(command)]
    return f"""\
# Completion of {PROGRAM} for fish, written by `{PROGRAM} completion fish`.
function __{PROGRAM}_at
    set -l at {PROGRAM}
    set -l is_value false
    set -l typed (commandline --tokenize --current-process --cut-at-cursor)
    set -e typed[1]
    for word in $typed
        if $is_value
            set is_value false
            continue
        end
        switch "$at $word"
            case {" ".join(map(_fish_quoted, _values_of(commands).all))}
                set is_value true
            case {" ".join(map(_fish_quoted, _paths(commands)))}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete --command {PROGRAM} --no-files
{_lines(lines)}
"""


def _fish_lines(command: CommandWords) -> Iterator[str]:
    begin = f"complete --command {PROGRAM} --condition '__{PROGRAM}_at {command.path}'"
    if command.takes_files:
        yield f"{begin} --force-files"
    for name, text in command.commands.items():
        yield f"{begin} --arguments {name} --description {_fish_quoted(text)}"
    for argument in command.arguments:
        words = [f"{begin} --description {_fish_quoted(argument.text)}"]
        for name in argument.names:
            kind = "long-option" if name.startswith("--") else "short-option"
            words.append(f"--{kind} {name.lstrip('-')}")
        if argument.choices:
            words.append(f"--arguments {_fish_quoted(' '.join(argument.choices))}")
        if argument.names and argument.takes_value:
            words.append("--require-parameter --force-files" if argument.is_file else "--exclusive")
        if argument.names or argument.choices:
            yield " ".join(words)


def _fish_quoted(text: str) -> str:
    """Return a text as one word for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


SHELLS = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck completion``."""
    parser.description = (
        "Prints a script with which the shell completes commands and options. Save it where the"
        " shell looks for such scripts, for example in"
        " ~/.local/share/bash-completion/completions/mailcheck."
    )
    parser.add_argument("shell", choices=list(SHELLS), help="the shell")
    parser.set_defaults(command=print_completion)


def print_completion(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck completion SHELL``: print the script."""
    console.output.write(SHELLS[options.shell](list_commands()))
    return EXIT_FINE
