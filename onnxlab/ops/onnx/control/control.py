"""Control flow: If, Loop, Scan, SequenceMap. Bodies run through the RunContext, captures and all."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import Body, InferContext, Repetition, RunContext
from onnxlab.ops.base.kernel_helpers import Array, normal_axis
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, checked_axis, elem_type, must_equal, rank_at_least, same, scalar
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.control.loop_trips import ITERATION, trip_count
from onnxlab.shapes import (
    UNKNOWN,
    VARIES,
    Dim,
    Fact,
    FactError,
    MapFact,
    OptionalFact,
    SequenceFact,
    Shape,
    SparseTensorFact,
    TensorFact,
    from_items,
    map_dims,
)
from onnxlab.shapes.expressions import symbol_atoms


@kernel("If", context=True)
def if_(ctx: RunContext, condition: Array, then_branch: Body, else_branch: Body) -> tuple[Any, ...]:
    """The outputs of one of two bodies."""
    if condition.size != 1:
        raise ValueError(f"cond has shape {condition.shape}: expected one element")
    return tuple(ctx.run(then_branch if condition.item() else else_branch, ()))


@kernel("Loop", context=True)
def loop(
    ctx: RunContext, trip_count: Array | None, condition: Array | None, *carried: Any, body: Body
) -> tuple[Any, ...]:
    """Run the body while the condition holds, at most trip_count times: (carried values…, stacked scan outputs…)."""
    most = None if trip_count is None else int(trip_count.reshape(()))
    going = condition is None or bool(condition.reshape(()))
    values = list(carried)
    scanned: list[list[Array]] = [[] for _ in range(len(body.outputs) - 1 - len(values))]
    iteration, shape = 0, () if condition is None else condition.shape
    if going and (most is None or most > 0):
        repetition = _repetition(len(values), len(body.outputs))
        feeds = (np.array(0, np.int64), np.full(shape, going), *values)
        repeated = ctx.repeat(body, repetition, _FOREVER if most is None else most, feeds)
        if repeated is not None:
            return tuple(repeated[1][1:])
    while going and (most is None or iteration < most):
        ctx.check()
        results = ctx.run(
            body, (np.array(iteration, np.int64), np.full(shape, going) if shape else np.array(going), *values)
        )
        going = bool(results[0].item())
        values = results[1 : 1 + len(values)]
        for collected, item in zip(scanned, results[1 + len(values) :], strict=True):
            ctx.reserve(item.nbytes, "the scan outputs of the loop")
            collected.append(item)
        iteration += 1
    facts = body.output_facts[1 + len(values) :]
    return (*values, *(_stack(ctx, collected, fact) for collected, fact in zip(scanned, facts, strict=True)))


_FOREVER = 1 << 62
"""Iterations of a Loop without a trip count."""


@cache
def _repetition(carried: int, outputs: int) -> Repetition:
    """The repetition of the body of a Loop."""
    pairs = tuple([(place + 2, place + 1) for place in range(carried)])
    return Repetition(pairs, (), tuple(range(carried + 1, outputs)), counter=0, condition=0)


def _stack(ctx: RunContext, items: Sequence[Array], fact: Any) -> Array:
    """Items stacked along a new axis in front; without any, an empty tensor of the declared type, unknown dims 0."""
    if items:
        ctx.reserve(sum([item.nbytes for item in items]), "the stacked scan outputs")
        return np.concatenate([item[None] for item in items])  # np.stack takes twice as long
    dims = [dim if isinstance(dim, int) else 0 for dim in fact.shape or ()]
    return np.zeros((0, *dims), fact.dtype or np.float32)


@kernel("Scan", since=9, context=True)
def scan(
    ctx: RunContext,
    *inputs: Array,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Run the body over slices of the scan inputs: (states…, scan outputs…); a direction of 1 runs backwards.

    Raises:
        ValueError: the scan inputs have different lengths.
    """
    split = len(inputs) - num_scan_inputs
    states, sequences = list(inputs[:split]), list(inputs[split:])
    axes = [
        normal_axis(axis, sequence.ndim)
        for axis, sequence in zip(scan_input_axes or (0,) * num_scan_inputs, sequences, strict=True)
    ]
    lengths = {sequence.shape[axis] for axis, sequence in zip(axes, sequences, strict=True)}
    if len(lengths) != 1:
        raise ValueError(f"the scan inputs have lengths {sorted(lengths)}: expected equal ones")
    backwards = scan_input_directions or (0,) * num_scan_inputs
    count, length = len(body.outputs) - split, lengths.pop()
    walked = [
        np.moveaxis(sequence, axis, 0)[:: -1 if back else 1]
        for sequence, axis, back in zip(sequences, axes, backwards, strict=True)
    ]
    reversed_outputs = scan_output_directions or (0,) * count
    output_axes = scan_output_axes or (0,) * count
    states, stacked = _scan_all(ctx, body, states, walked, length)
    outputs = []
    for items, back, axis in zip(stacked, reversed_outputs, output_axes, strict=True):
        ordered = items[::-1] if back else items
        outputs.append(np.moveaxis(ordered, 0, axis) if axis and length else ordered)
    return (*states, *outputs)


def _scan_all(
    ctx: RunContext, body: Body, states: list[Array], walked: Sequence[Array], length: int
) -> tuple[list[Array], list[Array]]:
    """The last states of a Scan, and its outputs stacked along an axis in front."""
    split = len(states)
    places = range(split, split + len(walked))
    collected = tuple(range(split, len(body.outputs)))
    repetition = Repetition(tuple([(place, place) for place in range(split)]), tuple(places), collected)
    repeated = ctx.repeat(body, repetition, length, (*states, *walked)) if length else None
    if repeated is not None:
        return repeated[1][:split], repeated[1][split:]
    scanned: list[list[Array]] = [[] for _ in collected]
    for time in range(length):
        ctx.check()
        results = ctx.run(body, (*states, *[np.asarray(sequence[time]) for sequence in walked]))
        states = results[:split]
        for items, item in zip(scanned, results[split:], strict=True):
            ctx.reserve(item.nbytes, "the scan outputs")
            items.append(item)
    return states, [_stack(ctx, items, fact) for items, fact in zip(scanned, body.output_facts[split:], strict=True)]


@kernel("Scan", since=8, context=True)
def scan_8(
    ctx: RunContext,
    sequence_lens: Array | None,
    *inputs: Array,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Scan-9 with a batch axis in front of everything and sequences of different lengths, padded with zeros."""
    split = len(inputs) - num_scan_inputs
    longest = inputs[split].shape[1]
    results = []
    for entry in range(len(inputs[0])):
        length = longest if sequence_lens is None else int(sequence_lens[entry])
        feeds = [x[entry] for x in inputs[:split]] + [x[entry, :length] for x in inputs[split:]]
        outputs = scan(ctx, *feeds, body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions)
        padded = [np.pad(y, [(0, longest - length)] + [(0, 0)] * (y.ndim - 1)) for y in outputs[split:]]
        results.append([*outputs[:split], *padded])
    return tuple(np.stack(parts) for parts in zip(*results, strict=True))


@kernel("SequenceMap", since=17, context=True)
def sequence_map(ctx: RunContext, sequence: list[Any], *others: Any, body: Body) -> tuple[list[Any], ...]:
    """Run the body on every element; other sequences are walked along, tensors given to every call."""
    outputs: list[list[Any]] = [[] for _ in body.outputs]
    for place, item in enumerate(sequence):
        ctx.check()
        feeds = [other[place] if isinstance(other, list) else other for other in others]
        for collected, result in zip(outputs, ctx.run(body, (item, *feeds)), strict=True):
            ctx.reserve(getattr(result, "nbytes", 0), "the mapped sequence")
            collected.append(result)
    return tuple(outputs)


# -- shape rules -------------------------------------------------------------------------------------------------------


MAX_ROUNDS = 6
"""The most rounds of the search for facts that a loop leaves unchanged; after them, all that changed is unknown."""


ELEMENT = -1


DEEP = 3
"""Nesting from which a loop's body is walked once only, so that nested loops cannot multiply the work."""


def merged(ctx: InferContext, a: Fact, b: Fact, slot: int, label: str) -> Fact:
    """The fact that holds for both; dims that differ are unknown. Raises FactError for different types.

    `slot` is that of the output, or ELEMENT for elements of a sequence, whose sizes may vary.
    """
    if a is b:
        return a
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    match a, b:
        case (TensorFact(), TensorFact()) if not a.elem_type or not b.elem_type or a.elem_type == b.elem_type:
            return _merged_tensors(ctx, a, b, slot)
        case (SparseTensorFact(), SparseTensorFact()) if a.elem_type == b.elem_type:
            return SparseTensorFact(a.elem_type, _merged_shape(ctx, a.shape, b.shape, slot))
        case (SequenceFact(), SequenceFact()):
            length = a.length if a.length == b.length else None
            if 0 in (a.length, b.length) and elem_type(a.elem) == elem_type(b.elem):  # no elements to tell of
                return SequenceFact(a.elem if b.length == 0 else b.elem, length)
            return SequenceFact(merged(ctx, a.elem, b.elem, ELEMENT, label), length)
        case (OptionalFact(), OptionalFact()):
            return OptionalFact(merged(ctx, a.elem, b.elem, slot, label))
        case (OptionalFact(), _):
            return OptionalFact(merged(ctx, a.elem, b, slot, label))
        case (_, OptionalFact()):
            return OptionalFact(merged(ctx, a, b.elem, slot, label))
        case (MapFact(), MapFact()) if a.key_type == b.key_type:
            return MapFact(a.key_type, merged(ctx, a.elem, b.elem, slot, label))
    raise FactError(
        f"{label} have different types", code="type-mismatch", expected=str(a), found=str(b), hint="insert a Cast"
    )


def _merged_tensors(ctx: InferContext, a: TensorFact, b: TensorFact, slot: int) -> TensorFact:
    shape = _merged_shape(ctx, a.shape, b.shape, slot)
    known = None
    if a.known is not None and b.known is not None and a.known.shape == b.known.shape:
        pairs = zip(a.known.items, b.known.items, strict=True)
        items = [x if x is y or (type(x) is type(y) and x == y) else None for x, y in pairs]
        known = from_items(a.known.shape, items, a.known.kind)
    return TensorFact(a.elem_type or b.elem_type, shape, known)


def _merged_shape(ctx: InferContext, a: Shape | None, b: Shape | None, slot: int) -> Shape | None:
    if a is None or b is None or len(a) != len(b):
        return None
    pairs = enumerate(zip(a, b, strict=True))
    return tuple(x if x == y else VARIES if slot == ELEMENT else ctx.symbol(slot, axis) for axis, (x, y) in pairs)


def element_of(ctx: InferContext, sequence: Fact, slot: int = 0) -> Fact:
    """The fact of one element: sizes that vary become unknown ones of (slot, axis)."""
    if not isinstance(sequence, SequenceFact):
        return UNKNOWN
    fact = sequence.elem
    if isinstance(fact, TensorFact) and fact.shape is not None and VARIES in fact.shape:
        dims = tuple(ctx.symbol(slot, axis) if dim is VARIES else dim for axis, dim in enumerate(fact.shape))
        return TensorFact(fact.elem_type, dims)
    return fact


def varying(fact: Fact) -> Fact:
    """The fact of an element made by a body: sizes with unknown symbols may be others for the next one."""

    def dim_of(dim: Dim) -> Dim:
        return VARIES if any(not isinstance(atom.key, str) for atom in symbol_atoms(dim)) else dim

    return map_dims(fact.bare, dim_of)


def added(ctx: InferContext, fact: Fact) -> Fact:
    """The fact of what a node adds to a sequence: in a body, an iteration may add other sizes than the one before."""
    return varying(fact) if ctx.depth else fact.bare


@rule("If")
def if__rule(ctx: InferContext, attributes: Attributes, condition: Fact) -> tuple[Fact, ...]:
    """The join of both branches; of a known condition, the branch that will run."""
    for name in ("then_branch", "else_branch"):
        takes(attributes[name], name, 0)
    branches = [ctx.infer(attributes[name], ()) for name in ("then_branch", "else_branch")]
    then, otherwise = branches
    as_many(ctx, "then_branch", then)
    as_many(ctx, "else_branch", otherwise)
    known = scalar(condition)
    if isinstance(known, bool):
        return tuple(then if known else otherwise)
    label = "the branches' outputs"
    return tuple(
        merged(ctx, a, b, slot, f"{label} {slot}") for slot, (a, b) in enumerate(zip(then, otherwise, strict=True))
    )


def takes(body: Body, name: str, count: int) -> None:
    """Raise FactError unless a body takes as many inputs as the node gives it."""
    if len(body.inputs) != count:
        text = f"its {name} takes {len(body.inputs)} inputs and gets {count}"
        raise FactError(text, code="arity", expected=str(count), found=str(len(body.inputs)))


def as_many(ctx: InferContext, body: str, results: Sequence[Fact]) -> None:
    """Raise FactError unless a node lists as many outputs as its body makes, some without a name maybe."""
    if len(results) != len(ctx.outputs):
        raise FactError(
            f"its {body} makes {len(results)} outputs, the node lists {len(ctx.outputs)}",
            code="arity",
            expected=str(len(ctx.outputs)),
            found=str(len(results)),
        )


@rule("Loop")
def loop_rule(
    ctx: InferContext, attributes: Attributes, limit: MaybeFact = None, condition: MaybeFact = None, *carried: MaybeFact
) -> tuple[Fact, ...]:
    """Carried values: what is true before the loop and after every iteration; scan outputs: stacked iterations."""
    body: Body = attributes["body"]
    count = len(carried)
    if len(body.inputs) != count + 2 or len(body.outputs) < count + 1:
        raise FactError(
            f"it carries {count} values, its body takes {len(body.inputs)} inputs and has {len(body.outputs)} outputs",
            expected=f"{count + 2} inputs (iteration, condition, carried) and at least {count + 1} outputs",
            found=f"{len(body.inputs)} inputs and {len(body.outputs)} outputs",
        )
    start = [fact for fact in carried if fact is not None]
    if len(start) != count:
        raise FactError("a value that it carries is absent", code="arity", expected="a value", found="nothing")
    again = _again(condition)

    def run(iteration: Fact, facts: Sequence[Fact]) -> list[Fact]:
        return ctx.infer(body, [iteration, again, *facts])

    state, results = fixpoint(ctx, start, partial(run, ITERATION))
    trips = trip_count(ctx, run, start, state, results[0], (limit, condition))
    scans = [_stacked(ctx, fact, trips, count + slot) for slot, fact in enumerate(results[count + 1 :])]
    as_many(ctx, "body", facts := (*state, *scans))
    return facts


def _again(condition: MaybeFact) -> Fact:
    """The condition that the body gets: true, since else it would not run, in the shape of the node's condition."""
    shape = condition.shape if isinstance(condition, TensorFact) and condition.shape is not None else ()
    if any(dim != 1 for dim in shape):  # a run refuses it unless every dim is 1
        return TensorFact(dtypes.BOOL, shape)
    return TensorFact(dtypes.BOOL, shape, from_items((1,) * len(shape), [True], "b"))


def fixpoint(
    ctx: InferContext, start: Sequence[Fact], run: Callable[[Sequence[Fact]], list[Fact]]
) -> tuple[list[Fact], list[Fact]]:
    """Facts of the carried values that hold before and after every iteration, and the body's outputs for them.

    `run` returns the body's outputs, the carried values from the second one on.
    """
    state = list(start)
    if ctx.depth >= DEEP:
        state = [_widest(fact) for fact in state]
    for number in range(MAX_ROUNDS):
        results = run(state)
        after = results[1 : len(state) + 1]
        wider = [
            merged(ctx, before, now, slot, f"the carried values {slot} before and after an iteration")
            for slot, (before, now) in enumerate(zip(state, after, strict=True))
        ]
        if all(a is b for a, b in zip(wider, state, strict=True)):
            return state, results
        if number >= 2:  # elements that count up would never settle
            wider = [fact.bare for fact in wider]
        state = wider
    state = [_widest(fact) for fact in state]
    return state, run(state)


def _widest(fact: Fact) -> Fact:
    """The fact of the element type alone, which no iteration may change."""
    return TensorFact(fact.elem_type) if isinstance(fact, TensorFact) else fact


def _stacked(ctx: InferContext, fact: Fact, trips: Dim | None, slot: int) -> Fact:
    if not isinstance(fact, TensorFact):
        return UNKNOWN
    first = ctx.symbol(slot, 0) if trips is None else trips
    return TensorFact(fact.elem_type, None if fact.shape is None else (first, *fact.shape))


def _scan_parts(ctx: InferContext, attributes: Attributes, inputs: Sequence[Fact]) -> tuple[Body, int, int]:
    """(body, number of states, of scanned inputs) of a Scan. Raises FactError where they do not fit."""
    body: Body = attributes["body"]
    scanned = attributes["num_scan_inputs"]
    count = len(inputs) - scanned
    if not 0 < scanned <= len(inputs):
        raise FactError(
            f"num_scan_inputs is {scanned} for {len(inputs)} inputs",
            code="bad-attribute",
            expected=f"1 to {len(inputs)}",
            found=str(scanned),
        )
    if len(body.outputs) < count or len(ctx.outputs) < count:
        raise FactError(
            f"it has {count} loop state variables but {min(len(body.outputs), len(ctx.outputs))} outputs",
            expected=f"at least {count} outputs",
            found=f"{min(len(body.outputs), len(ctx.outputs))}",
        )
    if len(body.inputs) != len(inputs):
        raise FactError(
            f"it has {len(inputs)} inputs of which {scanned} are scanned, its body takes {len(body.inputs)}",
            expected=f"{len(inputs)} body inputs",
            found=f"{len(body.inputs)} body inputs",
        )
    return body, count, scanned


@rule("Scan", since=8)
def scan_8_rule(ctx: InferContext, attributes: Attributes, lengths: MaybeFact, *inputs: Fact) -> tuple[Fact, ...]:
    """Scan-9 with a batch axis in front of everything; the second axes are scanned."""
    body, count, _ = _scan_parts(ctx, attributes, inputs)
    outer = inputs[count].shape or (ctx.symbol(0, 0), ctx.symbol(0, 1))
    before = [_without(fact, 1 if slot < count else 2) for slot, fact in enumerate(inputs)]
    after = ctx.infer(body, before)
    as_many(ctx, "body", after)
    states = map(_state, body.inputs, before[:count], after)
    return (*(_within(outer[:1], fact) for fact in states), *(_within(outer[:2], fact) for fact in after[count:]))


def _without(fact: Fact, axes: int) -> Fact:
    """The fact of a slice of a tensor along its first axes. Raises FactError where it has fewer."""
    if not isinstance(fact, TensorFact) or fact.shape is None:
        return fact.bare
    rank_at_least(fact, axes, "an input")
    return TensorFact(fact.elem_type, fact.shape[axes:])


def _within(outer: tuple[Dim, ...], fact: Fact) -> Fact:
    """The fact of tensors that are stacked along new first axes."""
    if not isinstance(fact, TensorFact):
        return UNKNOWN
    shape = varying(fact).shape
    return TensorFact(fact.elem_type, None if shape is None else (*outer, *shape))


@rule("Scan", since=9)
def scan_rule(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> tuple[Fact, ...]:
    """States keep their shape; scanned inputs lose an axis, scanned outputs gain it."""
    body, count, scanned = _scan_parts(ctx, attributes, inputs)
    axes = attributes.get("scan_input_axes") or (0,) * scanned
    length: Dim | None = None
    slices: list[Fact] = []
    for fact, axis in zip(inputs[count:], axes, strict=True):
        if fact.shape is None:
            slices.append(TensorFact(fact.elem_type) if isinstance(fact, TensorFact) else UNKNOWN)
            continue
        axis = checked_axis(axis, len(fact.shape), "scan_input_axes")
        dim = fact.shape[axis]
        if length is not None:
            must_equal(length, dim, "the scanned inputs have different lengths")
        length = dim if length is None else same(length, dim)
        rest = (*fact.shape[:axis], *fact.shape[axis + 1 :])
        slices.append(TensorFact(fact.elem_type if isinstance(fact, TensorFact) else 0, rest))

    before = [fact.bare for fact in inputs[:count]]
    after = ctx.infer(body, [*before, *slices])
    state = map(_state, body.inputs, before, after)
    outputs = after[count:]
    as_many(ctx, "body", after)
    places = attributes.get("scan_output_axes") or (0,) * len(outputs)
    pairs = enumerate(zip(outputs, places, strict=False))
    return (*state, *(_scanned(ctx, fact, length, place, count + n) for n, (fact, place) in pairs))


def _state(name: str, before: Fact, after: Fact) -> Fact:
    """A state of a Scan, whose shape every iteration must keep. Raises FactError where it certainly changes."""
    if not isinstance(before, TensorFact) or before.shape is None or after.shape is None:
        return before
    message = f"a Scan keeps the shapes of its states, but the body gets {{}} for {name!r} and makes {{}} of it"
    must_equal(len(before.shape), len(after.shape), message, before.shape, after.shape)
    for old, new in zip(before.shape, after.shape, strict=True):
        must_equal(old, new, message, before.shape, after.shape)
    return TensorFact(before.elem_type, tuple(map(same, before.shape, after.shape)))


def _scanned(ctx: InferContext, fact: Fact, length: Dim | None, axis: int, slot: int) -> Fact:
    if not isinstance(fact, TensorFact) or fact.shape is None:
        return TensorFact(fact.elem_type) if isinstance(fact, TensorFact) else UNKNOWN
    axis = checked_axis(axis, len(fact.shape) + 1, "scan_output_axes")
    size = ctx.symbol(slot, axis) if length is None else length
    return TensorFact(fact.elem_type, (*fact.shape[:axis], size, *fact.shape[axis:]))


@rule("SequenceMap", since=17)
def sequence_map_rule(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> tuple[Fact, ...]:
    """Sequences of what the body makes of one element each."""
    takes(attributes["body"], "body", len(inputs))
    count = len(ctx.outputs)
    elements = [
        element_of(ctx, fact, count + slot) if isinstance(fact, SequenceFact) else fact
        for slot, fact in enumerate(inputs)
    ]
    length = next((fact.length for fact in inputs if isinstance(fact, SequenceFact)), None)
    after = ctx.infer(attributes["body"], elements)
    as_many(ctx, "body", after)
    return tuple(SequenceFact(varying(fact), length) for fact in after)


# -- traits ------------------------------------------------------------------------------------------------------------


traits("If", OpTraits(category="control", shape="other", flops=1, first_result=0, same_since=1))
traits("Loop", OpTraits(category="control", shape="other", flops=1, iterates=True, first_result=1, same_since=1))
traits("Scan", OpTraits(category="control", shape="other", flops=1, iterates=True, first_result=0, same_since=9))
traits(
    "SequenceMap", OpTraits(category="control", shape="other", flops=1, iterates=True, first_result=0, same_since=17)
)
