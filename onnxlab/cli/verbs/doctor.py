"""`onnxlab doctor` and `report`: whether all is well here, and what a report of a defect needs."""

import argparse
import re
import traceback
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnxlab.cli.base import entries
from onnxlab.cli.base.answers import STDOUT, answer, deliver
from onnxlab.cli.base.entries import Verbs
from onnxlab.cli.base.exits import DIFFERENT, DONE
from onnxlab.cli.base.inputs import open_model
from onnxlab.cli.base.outputs import write
from onnxlab.printable import printable_lines

if TYPE_CHECKING:
    from onnxlab.model import Model


def add(verbs: Verbs) -> None:
    """Enter the verbs."""
    verbs.add(
        "doctor", _doctor, "say whether onnxlab works on this machine; exit code 1 if something does not", models=()
    )
    report = verbs.add(
        "report", _report, "write what a report of a defect needs, without the model's weights and names"
    )
    report.add_argument("--names", action="store_true", help="include names of nodes and values")
    entries.output(report, "file to write, .md; default: standard output")


def _doctor(options: argparse.Namespace) -> int:
    from onnxlab.cli.base.environment import examined

    findings = list(examined())
    rows = [finding.as_dict() for finding in findings]
    answer(options, lambda: {"findings": rows}, lambda: "\n".join(map(str, findings)))
    return DIFFERENT if any(finding.state == "error" for finding in findings) else DONE


def _report(options: argparse.Namespace) -> int:
    from onnxlab.cli.base.environment import examined
    from onnxlab.formats import kinds, output

    model = open_model(options)
    if options.output not in (None, STDOUT):
        output.check(options.output, kinds.REPORT, [model.path])
    environment = [str(finding) for finding in examined()]
    sections = {
        "Environment": environment,
        "Model": _model(model),
        "Check": _problems(model, options.names),
        "What fails": [
            line for name, attempt in ATTEMPTS.items() for line in _attempt(name, attempt, model, options.names)
        ],
    }
    text = "# onnxlab report\n" + "".join(_section(title, lines) for title, lines in sections.items())
    if options.json:
        answer(options, lambda: {"sections": sections}, str)
    elif options.output in (None, STDOUT):
        deliver(text)
    else:
        write(options.output, text.encode(), kinds.REPORT, [model.path])
    return DONE


def _section(title: str, lines: list[str]) -> str:
    text = printable_lines(lines or ["nothing"])
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # so that no text of the model ends it
    return f"\n## {title}\n\n{fence}text\n{text}\n{fence}\n"


def _model(model: "Model") -> list[str]:
    from onnxlab.render import text

    proto, graph = model.proto, model.graph
    count, nbytes = text.parameters(model)
    operators = Counter(f"{node.proto.domain}::{node.op_type}".removeprefix("::") for node in graph.nodes.values())
    opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in proto.opset_import)
    return [
        f"format {model.files.format}, IR {proto.ir_version}, opsets {opsets}",
        f"producer {proto.producer_name} {proto.producer_version}",
        f"{len(graph.nodes)} nodes, {len(graph.scopes)} graphs, {len(proto.functions)} functions, {count} parameters, "
        f"{nbytes} bytes",
        *(f"input {model.fact(value.id)}" for value in model.inputs),
        *(f"output {model.fact(value.id)}" for value in model.outputs),
        "operators: " + ", ".join(f"{number} {name}" for name, number in operators.most_common()),
    ]


def _problems(model: "Model", names: bool) -> list[str]:
    problems = model.check()
    if names:
        return [str(problem) for problem in problems]
    kinds = Counter((problem.severity, problem.code) for problem in problems)
    return [f"{number} {severity}: {code}" for (severity, code), number in kinds.most_common()]


def _attempt(name: str, attempt: "Callable[[Model], Any]", model: "Model", names: bool) -> list[str]:
    """The lines of an error, where an attempt ends with one; of a message without names only what kind it is."""
    try:
        attempt(model)
    except Exception as error:  # any error is reported
        if names:
            return [f"{name}:", *traceback.format_exc().splitlines()]
        frames = [
            f"  {frame.filename.rpartition('onnxlab/')[2]}:{frame.lineno} {frame.name}" for frame in _frames(error)
        ]
        return [f"{name}: {type(error).__name__}", *frames]
    return []


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if "onnxlab" in frame.filename][-8:]


def _run(model: "Model") -> None:
    from onnxlab.execution.run.trial_runs import trial_limits

    model.run(model.sample_inputs(), limits=trial_limits())


ATTEMPTS: "dict[str, Callable[[Model], Any]]" = {
    "draw": lambda model: model.to_svg(),
    "write": lambda model: model.to_bytes(),
    "run": _run,
    "simplify": lambda model: model.simplify(dry_run=True),
}
