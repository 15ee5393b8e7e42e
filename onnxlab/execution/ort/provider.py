"""onnxruntime as a provider (extra `ort`): it takes every node that it has a CPU kernel for, and compiles whole parts.

    runner = Runner(graph, inference.fact, [OnnxRuntimeProvider(), NumpyProvider()])

The provider learns whether onnxruntime has a kernel by making a session of the node alone, once per operator, version
and input types. Nodes with bodies, calls of the model's own functions and nodes on values of unknown or rare types stay
with the other providers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import onnx
from onnx.helper import make_tensor_value_info

from onnxlab import dtypes
from onnxlab.errors import OnnxlabError
from onnxlab.execution.base.node_models import IR_VERSION, model_of, node_proto
from onnxlab.execution.base.provider import (
    Capabilities,
    CompiledPart,
    Part,
    PartitionView,
    Provider,
    SubgraphClaim,
)
from onnxlab.forking import fork_safe
from onnxlab.graph.edit.snapshot import AttributeRef, NodeView
from onnxlab.graph.protos import tensors
from onnxlab.ops import find_traits
from onnxlab.optional_packages import needed
from onnxlab.shapes import TensorFact

# Bytes of constants that a part's model holds; larger ones become inputs, since a message is at most 2 GiB.
_EMBEDDED = 1 << 30

_PLAIN = frozenset(
    (dtypes.FLOAT, dtypes.DOUBLE, dtypes.FLOAT16, dtypes.BOOL, dtypes.STRING, dtypes.INT8, dtypes.INT16, dtypes.INT32,
     dtypes.INT64, dtypes.UINT8, dtypes.UINT16, dtypes.UINT32, dtypes.UINT64)
)  # fmt: skip
_TRIAL = '<ir_version: 8, opset_import: ["" : 13]> g (float[1] x) => (float[1] y) { y = Neg (x) }'
_TRIALS = 12  # versions below the newest known that are tried; where all fail, the trial model itself is at fault
_probed: dict[tuple[Any, ...], str] = {}  # {(operator, version, input types): reason for refusing, "" for none}
_lock = fork_safe(threading.Lock())


class OnnxRuntimeProvider(Provider):
    """Runs parts with onnxruntime on the CPU.

    Args:
        optimize: let onnxruntime optimize the part; otherwise it runs the nodes as they are.
        threads: threads within one operator; 0 lets onnxruntime choose.

    Raises:
        MissingPackageError: onnxruntime is not installed; `pip install 'onnxlab[ort]'`. It is an ImportError, too.
    """

    name = "onnxruntime"
    capabilities = Capabilities(trusted=True)

    def __init__(self, optimize: bool = True, threads: int = 0) -> None:
        _onnxruntime()
        self.optimize = optimize
        self.threads = threads

    def newest(self, domain: str, known: int) -> int:
        """The newest version of a domain that the installed onnxruntime reads, `known` where that is not below it."""
        return _newest(domain, known)

    def newest_ir(self, known: int) -> int:
        """The newest IR version that the installed onnxruntime reads, `known` where that is not below it."""
        return _newest(None, known)

    def get_capability(self, view: PartitionView) -> list[SubgraphClaim]:
        """Claim the nodes that have a kernel; the reasons for refusing others go to `view.refuse`."""
        reasons = {node.id: self._refusal(node, view) for node in view.nodes}
        view.refusals.update((node, reason) for node, reason in reasons.items() if reason)
        return [SubgraphClaim((node,)) for node, reason in reasons.items() if not reason]

    def compile(self, part: Part, view: PartitionView) -> CompiledPart:
        """One session for the part. Raises OnnxlabError where onnxruntime refuses it as a whole."""
        constants = view.constants(part.nodes)
        embedded: dict[str, np.ndarray[Any, Any]] = {}
        fed_constants: dict[str, np.ndarray[Any, Any]] = {}
        room = _EMBEDDED
        for name, array in sorted(constants.items(), key=lambda item: item[1].nbytes):
            room -= array.nbytes
            (embedded if room >= 0 else fed_constants)[name] = array
        model = _model(part.nodes, (*part.inputs, *fed_constants), part.outputs, embedded, view)
        try:
            session = _session(model, self.optimize, self.threads)
        except Exception as error:
            raise OnnxlabError(f"onnxruntime refuses the part: {_first_line(error)}") from error
        return CompiledPart(partial(_run, session, part.inputs, list(part.outputs), fed_constants))

    def _refusal(self, node: NodeView, view: PartitionView) -> str:
        """The reason why a node cannot be taken, "" where it can."""
        if node.attributes.bodies:
            return "it has bodies"
        if (node.domain, node.op_type, node.overload) in view.scope.compiler.snapshot.functions:
            return "it calls a function of the model"
        if find_traits(node.domain, node.op_type).random and (node.op_type != "Dropout" or len(node.inputs) > 2):
            return "it draws random numbers, which a run's seed decides"
        facts = [view.fact(name) for name in (*node.inputs, *node.outputs) if name and view.constant(name) is None]
        if not all(isinstance(fact, TensorFact) and fact.elem_type in _PLAIN for fact in facts):
            return "a value has a type that is unknown or that onnxruntime's Python interface does not take"
        if any(isinstance(value, AttributeRef) for value in node.attributes.values()):
            return "it refers to an attribute of a function"
        if reason := _fault(node, view):
            return reason
        types = tuple(_elem_type(name, view) for name in node.inputs)
        key = (node.domain, node.op_type, node.since_version, view.opsets.get(node.domain), types)
        with _lock:
            if key not in _probed:
                _probed[key] = self._probe(node, view)
            return _probed[key]

    def _probe(self, node: NodeView, view: PartitionView) -> str:
        small = {name: a for name, a in view.constants([node]).items() if a.nbytes < 1 << 16}
        inputs = [name for name in dict.fromkeys(node.inputs) if name and name not in small]
        try:
            _session(_model([node], inputs, list(filter(None, node.outputs)), small, view), self.optimize, self.threads)
        except Exception as error:  # onnxruntime raises dozens of its own types
            return _first_line(error)
        return ""


@lru_cache(maxsize=16)
def _newest(domain: str | None, known: int) -> int:
    """The newest version of a domain (None: of the IR) that loads, tried downwards: onnxruntime has no call for it."""
    for version in range(known, max(known - _TRIALS, 0), -1):
        model = onnx.parser.parse_model(_TRIAL)
        if domain is None:
            model.ir_version = version
        elif domain:
            model.opset_import.add(domain=domain, version=version)
        else:
            model.opset_import[0].version = version
        try:
            _session(model)
        except Exception:  # onnxruntime raises dozens of its own types
            continue
        return version
    return known


def _session(model: onnx.ModelProto, optimize: bool = True, threads: int = 0) -> Any:
    runtime = _onnxruntime()
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    levels = runtime.GraphOptimizationLevel  # above that of layouts, 1.31 crashes at a Transpose and MatMul in float16
    options.graph_optimization_level = getattr(
        levels, "ORT_ENABLE_LAYOUT" if optimize else "ORT_DISABLE_ALL", levels.ORT_ENABLE_ALL
    )
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(
    session: Any, inputs: Sequence[str], outputs: list[str], constants: dict[str, Any], context: Any, *arrays: Any
) -> Any:
    """Run a compiled part."""
    options = _onnxruntime().RunOptions()
    with context.listening(partial(setattr, options, "terminate", True)):
        return session.run(outputs, dict(zip(inputs, arrays, strict=True)) | constants, options)


_onnxruntime = partial(needed, "onnxruntime", "ort")


def _fault(node: NodeView, view: PartitionView) -> str:
    """The fault that onnx's checker finds in a node, "" for none: onnxruntime does not survive every such node."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = IR_VERSION
    context.opset_imports = {node.domain: 1, **view.opsets}
    try:
        onnx.checker.check_node(_node_proto(node), context)
    except onnx.checker.ValidationError as error:
        return f"onnx's checker refuses it: {_first_line(error)}"
    return ""


def _elem_type(name: str, view: PartitionView) -> int:
    if not name:
        return dtypes.UNDEFINED
    constant = view.constant(name)
    if constant is not None:
        return dtypes.from_numpy(constant.dtype)
    fact = view.fact(name)
    return fact.elem_type if isinstance(fact, TensorFact) else dtypes.UNDEFINED


def _model(
    nodes: Sequence[NodeView],
    inputs: Iterable[str],
    outputs: Iterable[str],
    constants: dict[str, np.ndarray[Any, Any]],
    view: PartitionView,
) -> onnx.ModelProto:
    """A model of these nodes alone; shapes are left to onnxruntime."""
    read, written = ([make_tensor_value_info(name, _elem_type(name, view), None) for name in names]
                 for names in (inputs, outputs))  # fmt: skip
    stored = [tensors.from_array(array, name) for name, array in constants.items()]
    protos = list(map(_node_proto, nodes))
    return model_of(
        onnx.GraphProto(name="part", node=protos, input=read, output=written, initializer=stored), view.opsets
    )


def _node_proto(node: NodeView) -> onnx.NodeProto:
    proto = node_proto(node)
    proto.name = f"node_{node.id}"
    while proto.input and not proto.input[-1]:  # absent inputs at the end make some of onnxruntime's fusions crash
        proto.input.pop()
    return proto


def _first_line(error: Exception) -> str:
    """onnxruntime's message without its prefix of codes and file names."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.rpartition(" : ")[2] if text.startswith("[ONNXRuntimeError]") else text
