"""Everything that a page may ask, by the name of the method."""

from collections.abc import Mapping

from onnxlab.notebook.protocol.commands import COMMANDS
from onnxlab.notebook.protocol.pairs import PAIRS
from onnxlab.notebook.protocol.questions import QUESTIONS
from onnxlab.notebook.protocol.rewriting import REWRITING
from onnxlab.notebook.protocol.runs import RUNS
from onnxlab.notebook.protocol.schema import Method
from onnxlab.notebook.protocol.watching import WATCHING

METHODS: Mapping[str, Method] = {**QUESTIONS, **COMMANDS, **REWRITING, **RUNS, **PAIRS, **WATCHING}
