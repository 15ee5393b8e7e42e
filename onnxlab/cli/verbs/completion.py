"""`onnxlab completion`: completion of verbs, options and files for a shell, made by shtab."""

import argparse

from onnxlab.cli.base.answers import answer
from onnxlab.cli.base.entries import Parser, Verbs
from onnxlab.cli.base.exits import DONE

SHELLS = ("bash", "zsh", "fish")
FILES = frozenset((
    "a", "b", "model", "models", "feeds", "output", "script", "samples", "receipt", "checkpoint", "build", "sample",
    "subject", "html",
))  # fmt: skip
"""Arguments that are files."""


def add(verbs: Verbs) -> None:
    """Enter the verb."""
    completion = verbs.add("completion", _completion, "print the script that completes commands in a shell", models=())
    completion.add_argument("shell", choices=SHELLS)
    completion.epilog = (
        'bash: eval "$(onnxlab completion bash)" in ~/.bashrc. zsh: onnxlab completion zsh > FOLDER/_onnxlab, of a '
        "folder of $fpath. fish: onnxlab completion fish > ~/.config/fish/completions/onnxlab.fish"
    )
    completion.set_defaults(top=verbs.top)


def _completion(options: argparse.Namespace) -> int:
    import shtab

    for parser in (options.top, *verbs_of(options.top)):
        for action in parser._actions:
            if action.dest in FILES and action.choices is None:
                action.complete = shtab.FILE
    script = shtab.complete(options.top, shell=options.shell)
    answer(options, lambda: {"shell": options.shell, "script": script}, lambda: script)
    return DONE


def verbs_of(parser: Parser) -> list[Parser]:
    """The parsers of the verbs of a command line."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [verb for group in groups for verb in group.choices.values()]
