"""Regions: the nodes of one application before and after, run apart from the model on inputs of their own.

Regions show differences that a whole model cannot show: its outputs may hardly depend on its inputs, or it cannot run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from typing import Any, Final

import onnx

from onnxlab.errors import OnnxlabError
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import TrialRuns
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos import tensors
from onnxlab.infer import Inference
from onnxlab.infer.facts.type_protos import type_of_fact
from onnxlab.shapes import Fact, TensorFact
from onnxlab.transforms import verification
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rewriting import Array, Rewriting
from onnxlab.transforms.rounding import rounded_runs
from onnxlab.transforms.shrinking import shrunk
from onnxlab.transforms.verification import Feeds, Judgment, RunModel

MOST_ELEMENTS: Final = 1 << 22
"""Elements of an input above which a region is not run."""

_SIZES: Final = (None, 1, 3)
_SMALL: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class RewrittenRegion:
    """Nodes of one application, before and after.

    Attributes:
        rule, place: of the application; `place` is a value that tells it from others.
        before, after: nodes in their order.
        constants: arrays of the constants that the nodes read, by name.
        facts: facts of the other values that the nodes read, by name.
        outputs: names of the nodes' results that are read elsewhere.
        imports: the opsets of the nodes.
        zero_signs: whether the sign of a zero counts.
    """

    rule: str
    place: str
    before: tuple[onnx.NodeProto, ...]
    after: tuple[onnx.NodeProto, ...]
    constants: Mapping[str, Array]
    facts: Mapping[str, Fact]
    outputs: tuple[str, ...]
    imports: tuple[onnx.OperatorSetIdProto, ...]
    zero_signs: bool

    def key(self) -> bytes:
        """The key of regions that need not be run twice: rule, structure, shapes, small constants."""
        names: dict[str, str] = {}
        hasher = sha256(self.rule.encode())
        for node in (*self.before, *self.after):
            parts = [node.domain, node.op_type]
            parts += [names.setdefault(name, str(len(names))) if name else "" for name in (*node.input, *node.output)]
            hasher.update("\0".join(parts).encode())
            for attribute in node.attribute:
                hasher.update(attribute.SerializeToString(deterministic=True))
        for name in names:
            fact = self.facts.get(name)
            array = self.constants.get(name)
            hasher.update(str(fact).encode() if fact is not None else b"-")
            if array is not None:
                hasher.update(f"{array.dtype}{array.shape}".encode())
                hasher.update(array.tobytes() if array.nbytes <= _SMALL else b"")
        return hasher.digest() + bytes([self.zero_signs])


class RegionRecorder:
    """Copies the nodes of a match before they are replaced."""

    def __init__(self, rewriting: Rewriting, match: Match, rule: str) -> None:
        self._rewriting = rewriting
        self._rule = rule
        self._place = rewriting.place(match.root)
        self._zero_signs = rewriting.sees_zero_signs(match.root)
        self._nodes = sorted(match.nodes, key=lambda node: node.label)
        self._before = tuple(_copy(node.proto) for node in self._nodes)
        calls = dict(zip([node.id for node in match.nodes], match.pattern.calls(), strict=True))
        self._stay = tuple(_copy(node.proto) for node in self._nodes if calls[node.id].stays)
        self._root = match.root.proto.output[0]
        self._outside = self._read(self._nodes)

    def _read(self, nodes: "list[NodeRecord]") -> dict[str, tuple[Array | None, Fact]]:
        rewriting, values = self._rewriting, self._rewriting.graph.values
        produced = {vid for node in nodes for vid in node.outputs}
        read = {vid: values[vid] for node in nodes for vid in node.inputs if vid and vid not in produced}
        return {value.name: (rewriting.constant(value), rewriting.fact(vid)) for vid, value in read.items()}

    def region(self, nodes: "list[NodeRecord]", source: str = "") -> RewrittenRegion:
        """The region, after the match was replaced by nodes, or by the value `source`."""
        identity = onnx.NodeProto(op_type="Identity", input=[source], output=[self._root])
        after = (identity,) if source else tuple(_copy(node.proto) for node in nodes)
        outside = {**self._outside, **({} if source else self._read(nodes))}
        produced = {name for node in self._stay for name in node.output}
        graph = self._rewriting.graph
        scope = graph.scopes[graph.main.id]
        root = graph.root(graph.scopes[nodes[-1].scope]) if nodes and not source else scope
        imports = root.proto.opset_import if root.is_function else graph.header.opset_import
        return RewrittenRegion(
            self._rule,
            self._place,
            self._before,
            (*self._stay, *after),
            {name: array for name, (array, _) in outside.items() if array is not None},
            {name: fact for name, (array, fact) in outside.items() if array is None and name not in produced},
            (self._root,),
            tuple(imports),
            self._zero_signs,
        )


def _copy(proto: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    return copy


class Regions:
    """Regions judged, each kind of them once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Judgment] = {}

    def judge(self, region: RewrittenRegion) -> Judgment:
        """Run a region before and after on inputs of every kind; "not run" where a region cannot run."""
        key = region.key()
        judgment = self._known.get(key)
        if judgment is None:
            judgment = self._known[key] = _judged(region)
        return judgment


def _judged(region: RewrittenRegion) -> Judgment:
    for name, fact in region.facts.items():
        if not isinstance(fact, TensorFact) or fact.shape is None or not fact.elem_type:
            return Judgment("not run", f"the type or rank of {name} is not known")
        if prod(dim for dim in fact.shape if isinstance(dim, int)) > MOST_ELEMENTS:
            return Judgment("not run", f"{name} is too large to be made up")
    try:
        before, after = _Alone(region, region.before), _Alone(region, region.after)
        cases = verification.cases(before.run, before.samples(), all_kinds=True)
        judged = verification.judge_with_noise(after.run, cases, before.rounded, region.zero_signs)
        return shrunk(judged, before.run, after.run, region.facts, region.zero_signs)
    except OnnxlabError as error:
        return Judgment("not run", str(error))


class _Alone:
    """Some nodes as a model."""

    def __init__(self, region: RewrittenRegion, nodes: tuple[onnx.NodeProto, ...]) -> None:
        model = onnx.ModelProto(ir_version=10)
        model.opset_import.extend(region.imports)
        graph = model.graph
        graph.name = "region"
        graph.node.extend(nodes)
        for name, fact in region.facts.items():
            info = graph.input.add(name=name)
            info.type.CopyFrom(type_of_fact(fact))
        graph.initializer.extend(tensors.from_array(array, name) for name, array in region.constants.items())
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in region.outputs)
        self._graph = ModelGraph(model)
        self._fact = Inference(self._graph).fact
        self._runner = Runner(self._graph, self._fact)
        self._trials = TrialRuns(self._runner)
        dims = [dim for fact in region.facts.values() for dim in fact.shape or () if not isinstance(dim, int)]
        self._symbols = list(dict.fromkeys(map(str, dims)))

    def run(self, feeds: Feeds) -> Mapping[str, Any]:
        """The outputs for inputs."""
        return self._trials(feeds)

    def rounded(self) -> list[RunModel]:
        """Runs in which what nodes compute is off by a rounding."""
        return rounded_runs(self._graph, self._fact)

    def samples(self) -> list[Feeds]:
        """Inputs of several sizes."""
        feeds: list[Feeds] = []
        for seed, size in enumerate(_SIZES if self._symbols else _SIZES[:1]):
            sizes = None if size is None else {name: size + place for place, name in enumerate(self._symbols)}
            feeds.append(self._runner.sample_inputs(None, seed=seed, sizes=sizes))
        return feeds
