"""Verbs of the command line: each with the options that every verb has."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from onnxlab.cli.base.exits import UsageError
from onnxlab.cli.base.inputs import bytes_of, seconds_of
from onnxlab.spelling import suggestion

Command = Callable[[argparse.Namespace], int]

MODEL = "path of the model, or - for standard input"


class Parser(argparse.ArgumentParser):
    """A parser that raises what is wrong, so that it is said as every other error is."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse has to say.

        Raises:
            UsageError: always.
        """
        message = re.sub(r"^argument ([^:]*): ", r"\1: ", message)
        message = re.sub(r"^the following arguments are required: (.*)", r"\1: not given", message)
        raise UsageError(f"{message}; {self.remedy}")

    @property
    def remedy(self) -> str:
        """The end of a message: where the user finds what may be written."""
        return f"`{self.prog} --help` lists what there is"

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Raise for words that are left over, with the options that are meant.

        Raises:
            UsageError: always.
        """
        known = [name for name in self._option_string_actions if name.startswith("--")]
        options = [word for word in words if word.startswith("-")]
        texts = [f"there is no option {word!r}.{suggestion(word, known)}" for word in options]
        if extra := " ".join(word for word in words if word not in options):
            texts.append(f"Too many words: {extra}.")
        raise UsageError(" ".join([*texts, self.remedy]))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise for a word that is none of several, with the one that is meant: argparse asks this of each word."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        near = suggestion(str(value), choices)
        if action.dest == "verb":
            raise UsageError(f"there is no command {value!r}.{near} {self.remedy}")
        name = "/".join(action.option_strings) or action.metavar or action.dest
        raise UsageError(f"{name} is one of {', '.join(choices)}; given {value!r}.{near}")


class Verbs:
    """The verbs, while they are entered.

    Args:
        top: the parser of the whole command line.
    """

    def __init__(self, top: argparse.ArgumentParser) -> None:
        self.top = top
        self._verbs = top.add_subparsers(title="commands", metavar="COMMAND", dest="verb", parser_class=Parser)
        top.set_defaults(parser=top)

    def add(self, name: str, command: Command, words: str, models: Sequence[str] = ("model",)) -> Parser:
        """Enter a verb.

        Args:
            name: of the verb.
            command: function that runs the verb and returns the exit code.
            words: what the verb does, for --help.
            models: the arguments that name models, in their order.
        """
        verb: Parser = self._verbs.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        for model in models:
            verb.add_argument(model, help=MODEL)
        verb.set_defaults(command=command, parser=verb)
        common(verb)
        return verb


def common(verb: argparse.ArgumentParser) -> None:
    """Enter the options that every verb has."""
    group = verb.add_argument_group("in every command")
    group.add_argument("--json", action="store_true", help="answer in JSON, errors too")
    group.add_argument("-q", "--quiet", action="store_true", help="no answer in words, no warnings, no progress")
    group.add_argument("--debug", action="store_true", help="show where in Python an error comes from")
    group.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colors in the answer (auto)"
    )
    words = "bytes that the arrays of a run may take, as 512MB or 2GiB (80 %% of the free memory)"
    group.add_argument("--limit", type=bytes_of, metavar="SIZE", help=words)
    group.add_argument("--timeout", type=seconds_of, metavar="SECONDS", help="end with code 4 after this many seconds")


def trailing(
    verb: argparse.ArgumentParser, name: str, words: str, nargs: str = "*", metavar: str | None = None
) -> None:
    """Enter the last argument of a verb, which may be left out, and may stand behind options."""
    verb.add_argument(name, nargs=nargs, metavar=metavar, help=words, default=None)
    verb.set_defaults(trailing=name)


def take_trailing(options: argparse.Namespace, rest: Sequence[str]) -> list[str]:
    """Give words behind options, which argparse leaves over, to the last argument; returns those still left."""
    name = getattr(options, "trailing", None)
    late = [word for word in rest if word == "-" or not word.startswith("-")]
    if name is None or not late:
        return list(rest)
    before = getattr(options, name)
    if isinstance(before, list):
        before.extend(late)
    elif before is None and len(late) == 1:
        setattr(options, name, late[0])
    else:
        return list(rest)
    return [word for word in rest if word not in late]


def feeds(verb: argparse.ArgumentParser) -> None:
    """Enter arrays for inputs."""
    trailing(verb, "feeds", "name=array.npy, or an .npz; other inputs are random", metavar="FEED")


def sizes(verb: argparse.ArgumentParser) -> None:
    """Enter sizes of symbolic dims."""
    trailing(verb, "sizes", "size of a symbolic dim, as batch=8; the others are assumed", metavar="SYMBOL=SIZE")


def output(verb: argparse.ArgumentParser, words: str, **named: Any) -> None:
    """Enter the option for the file to be written."""
    verb.add_argument("-o", "--output", metavar="FILE", help=words, **named)
