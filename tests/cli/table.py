"""A row for each verb of the command line: how it is called, how it ends, and what it writes."""

from dataclasses import dataclass, field

HOSTILE_NAME = "evil\x1b[2J\u202e<script>\n"


@dataclass(frozen=True)
class Row:
    """A call of a verb, and its exit code.

    Attributes:
        words: after the verb; {model} is a model, {same} a copy of it, {samples} a folder of samples.
        good, broken, hostile: exit codes for a sound model, one whose shapes do not fit, one with names that a terminal
            would obey.
        schema: of the JSON answer, None where it is the verb's own.
        output: the option after which a file to be written stands, with the suffix of its kind; "" before the name
            where it is a positional argument.
        reads: whether it reads a model at all.
    """

    words: tuple[str, ...] = ("{model}",)
    good: int = 0
    broken: int = 0
    hostile: int = 0
    schema: str | None = None
    output: tuple[str, str] | None = None
    reads: bool = True
    environment: frozenset[str] = field(default_factory=frozenset)


TABLE = {
    "info": Row(),
    "shapes": Row(),
    "text": Row(),
    "check": Row(broken=1, output=("--sarif", ".sarif")),
    "svg": Row(output=("-o", ".svg")),
    "run": Row(broken=4, output=("--save", ".npz")),
    "profile": Row(("{model}", "--runs", "1"), broken=4),
    "hunt": Row(broken=4),
    "memory": Row(output=("--svg", ".svg")),
    "cost": Row(),
    "diff": Row(("{model}", "{same}")),
    "compare": Row(("{model}", "{same}"), broken=4, schema="comparison/1"),
    "statistics": Row(("{model}", "{samples}"), broken=4),
    "evaluate": Row(("{model}", "{same}", "{samples}"), broken=4, schema="evaluation/1"),
    "extract": Row(("{model}", "--outputs", "{output}"), output=("-o", ".onnx")),
    "insert": Row(("{model}", "{same}"), output=("-o", ".onnx")),
    "edit": Row(("{model}", "--opset", "21"), output=("-o", ".onnx")),
    "convert": Row(("{model}", "--format", "onnx"), output=("", ".onnx")),
    "simplify": Row(schema="receipt/3", output=("-o", ".onnx")),
    "optimize": Row(schema="receipt/3", output=("-o", ".onnx")),
    "rewrite": Row(("{model}", "Add(a, b) => Add(b, a)"), schema="receipt/3", output=("-o", ".onnx")),
    "report": Row(output=("-o", ".md")),
    "suggest": Row(),
    "fold": Row(schema="receipt/3", output=("-o", ".onnx")),
    "quantize": Row(("{model}", "int8_weights"), schema="receipt/3", output=("-o", ".onnx")),
}
"""Those that read models. test_answers.py has `show` and `warm`, test_surroundings.py
`git`, `doctor` and `completion`, tests/mcp `mcp`, tests/analysis/messages `explain`."""
OTHERS = {"mcp", "show", "warm", "explain", "git", "doctor", "completion"}
