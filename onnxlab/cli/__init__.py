"""The command line: `onnxlab VERB model.onnx`. Families of verbs in a file each; nothing heavy is imported for --help.

Files:
    __main__      `python -m onnxlab.cli`: the command line where no script is installed.
    command_line  A command from words to exit code: an error is one line on standard error, and with --json an object
                  too.
    grammar       The grammar of the command line: its verbs, family by family, in the order in which --help lists
                  them.
    base/         The common parts of the verbs of the command line: entries, inputs, outputs, answers, exit codes.
    verbs/        The verbs of the command line, one family per file.
"""

from onnxlab.cli.command_line import main as main
from onnxlab.cli.grammar import parser as parser
