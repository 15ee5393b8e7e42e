"""The registry of kernels and shape rules, by (domain, operator, since_version), and of traits.

A family file (`elementwise.py`, `conv.py`, …) holds the kernels of related operators and, beside them, their
shape rules, gradients and rows of traits. Importing the file registers these; the first lookup imports all files.

A kernel computes outputs from arrays:

    @kernel("Concat", since=4)
    def concat(*inputs, axis): ...

* Inputs come by position, None for an absent optional one; attributes by keyword, decoded (str, int, float,
  sequences of them, NumPy arrays for tensors, a `Body` for a graph). An absent attribute is not passed unless
  the schema gives it a default.
* A kernel returns an array, or a tuple of arrays, at least as many as the node has outputs. A NumPy scalar
  (ufuncs return such) counts as an array of rank 0; a sequence is a list, an empty optional None, a map a dict.
* Arrays are read-only: a kernel never writes to an input, and may return an input or a view of one. Only the form
  that is registered with `in_place` gets one to overwrite.
* With `bound=True` the function takes the attributes alone, and returns the function of the inputs: what it makes of
  attributes, which never change, it makes once for a node.
* With `context=True` the first argument is the `RunContext`: to claim memory before allocating (`reserve`), to
  be stoppable in long loops (`check`), to run bodies, and to know which outputs are wanted.
* Floating-point warnings are the caller's: the executor runs kernels under `np.errstate(all="ignore")`.
* A kernel raises ValueError, IndexError or TypeError, whose message names the input and the broken rule; the executor
  adds the node.

A rule computes facts from facts: `rule(ctx: InferContext, attributes: Mapping, *facts)` -> fact or facts.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from onnxlab import schemas
from onnxlab.forking import fork_safe
from onnxlab.garbage_collection import no_collection
from onnxlab.ops.base import traits as rows
from onnxlab.ops.base.traits import UNKNOWN, Layer, OpTraits

Attributes = Mapping[str, Any]
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel and what it is for.

    `context` says whether the first argument is the RunContext, `custom` whether a user registered it.
    `into`, where there is one, is called as the kernel with an array `out` in front, which is the input at one of the
    places `in_place` and may be overwritten: see `in_place`. `windowed` takes the input at `window_place` as a
    `StoredOperand`: see `windowed`. `bind`, where there is one, makes the kernel of a node's attributes.
    """

    domain: str
    op_type: str
    since: int
    function: Function
    context: bool = False
    custom: bool = False
    into: Function | None = None
    in_place: tuple[int, ...] = ()
    windowed: Function | None = None
    window_place: int = 0
    bind: Function | None = None

    def of(self, attributes: Attributes) -> Function:
        """The kernel of a node with these attributes, to be called with the inputs."""
        if self.bind is None:
            return partial(self.function, **attributes) if attributes else self.function
        return BoundKernel(self.bind, attributes)


@dataclass(slots=True, eq=False)
class BoundKernel:
    """A kernel that is made of a node's attributes, `made`, when it is first called, with the fields of a `partial`.

    Not before: a node that never runs costs nothing, and errors are the run's.
    """

    func: Function
    keywords: Attributes
    made: Function | None = None

    def __call__(self, *inputs: Any) -> Any:
        """Call the kernel."""
        if self.made is None:
            self.made = self.func(**self.keywords)
        return self.made(*inputs)


def innermost(call: Function) -> Function:
    """The function that a kernel comes down to once it has been called."""
    return (call.made or call) if type(call) is BoundKernel else call


def attributes_of(call: Function) -> Attributes:
    """The attributes of the node that `KernelEntry.of` made a kernel for; none for any other callable."""
    return call.keywords if isinstance(call, partial | BoundKernel) else {}


@dataclass(frozen=True, slots=True)
class ShapeRule:
    """A shape rule and what it is for."""

    domain: str
    op_type: str
    since: int
    function: Function


Entry = TypeVar("Entry", KernelEntry, ShapeRule)


class _Table(Generic[Entry]):
    """Entries by (domain, operator), newest version first, with a memo of lookups."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[Entry]] = {}
        self._found: dict[tuple[str, str, int], Entry | None] = {}

    def add(self, entry: Entry) -> None:
        rows = self._rows.setdefault((entry.domain, entry.op_type), [])
        if rows and any(row.since == entry.since for row in rows):
            where = f"{entry.domain or 'ai.onnx'}::{entry.op_type}"
            raise ValueError(f"{where} since {entry.since} is registered already; unregister it first")
        rows.append(entry)
        if len(rows) > 1:
            rows.sort(key=lambda row: -row.since)
        self._found.clear()

    def replace(self, entry: Entry) -> None:
        """Put an entry in place of the one of the same operator and version."""
        rows = self._rows[entry.domain, entry.op_type]
        rows[[row.since for row in rows].index(entry.since)] = entry
        self._found.clear()

    def remove(self, domain: str, op_type: str, since: int | None) -> None:
        """Remove the entries of an operator: one version, or all."""
        rows = self._rows.get((domain, op_type), [])
        self._rows[domain, op_type] = [row for row in rows if since is not None and row.since != since]
        self._found.clear()

    def find(self, domain: str, op_type: str, version: int) -> Entry | None:
        key = (domain, op_type, version)
        try:
            return self._found[key]
        except KeyError:
            rows = self._rows.get((domain, op_type), ())
            return self._found.setdefault(key, next((row for row in rows if row.since <= version), None))

    def versions(self) -> dict[tuple[str, str], tuple[int, ...]]:
        return {key: tuple(sorted(row.since for row in rows)) for key, rows in self._rows.items() if rows}


_kernels: Final = _Table[KernelEntry]()
_rules: Final = _Table[ShapeRule]()
_custom_kernels: Final = _Table[KernelEntry]()
_custom_rules: Final = _Table[ShapeRule]()
_load_lock: Final = fork_safe(threading.RLock())
_loaded = False
_generation = 0


def kernel(
    op_type: str, since: int = 1, domain: str = "", context: bool = False, bound: bool = False
) -> Callable[[F], F]:  # fmt: skip
    """Register the decorated function as kernel of an operator from version `since` of `domain` on.

    The kernel serves every later version too, up to the next one that has a kernel of its own.

    Args:
        context: whether the first argument is the RunContext.
        bound: whether the function takes the attributes alone, and returns the function of the inputs.
    """

    def add(function: F) -> F:
        if bound:
            whole = lambda *inputs, **attributes: function(**attributes)(*inputs)  # noqa: E731
            whole.__module__ = function.__module__
            _kernels.add(KernelEntry(domain, op_type, since, whole, context, bind=function))
        else:
            _kernels.add(KernelEntry(domain, op_type, since, function, context))
        return function

    return add


def in_place(op_type: str, since: int = 1, domain: str = "", places: tuple[int, ...] = (0,)) -> Callable[[F], F]:
    """Register the decorated function as the form of a kernel that may overwrite an input that is needed no more.

    The function is called as `function(out, *inputs, **attributes)`; `out` is the input at one of `places`,
    C-contiguous and not shared. The result is written there where type and shape fit, else to a new array.
    The kernel itself must have been registered, with one output.
    """

    def add(function: F) -> F:
        _kernels.replace(replace(_registered(op_type, since, domain), into=function, in_place=places))
        return function

    return add


def windowed(op_type: str, since: int = 1, domain: str = "", place: int = 0) -> Callable[[F], F]:
    """Register the decorated function as the form of a kernel that reads one input from its file, window by window.

    The function is called as the kernel, with a `StoredOperand` as the input at `place`, and returns None where it
    needs all of this input at once. The kernel itself must have been registered, with one output.
    """

    def add(function: F) -> F:
        _kernels.replace(replace(_registered(op_type, since, domain), windowed=function, window_place=place))
        return function

    return add


def _registered(op_type: str, since: int, domain: str) -> KernelEntry:
    registered = _kernels.find(domain, op_type, since)
    if registered is None or registered.since != since:
        raise LookupError(f"{op_type} since {since} has no kernel to be a form of")
    return registered


def rule(op_types: str, since: int = 1, domain: str = "") -> Callable[[F], F]:
    """Register the decorated function as shape rule of an operator from version `since` of `domain` on.

    Args:
        op_types: name of the operator, or names separated by spaces.
    """

    def add(function: F) -> F:
        for op_type in op_types.split():
            _rules.add(ShapeRule(domain, op_type, since, function))
        return function

    return add


def find_kernel(domain: str, op_type: str, version: int) -> KernelEntry | None:
    """Return the kernel with the greatest `since` that is not above `version`, or None.

    `version` is the schema's since_version or the opset version of the domain: both find the same kernel.
    """
    if not _loaded:
        load()
    key = (schemas.canonical_domain(domain), op_type, version)
    return _custom_kernels.find(*key) or _kernels.find(*key)


def find_rule(domain: str, op_type: str, version: int) -> ShapeRule | None:
    """Return the shape rule with the greatest `since` that is not above `version`, or None.

    A custom operator has only the rule that was registered with this version of it: others may not hold for it.
    """
    if not _loaded:
        load()
    key = (schemas.canonical_domain(domain), op_type, version)
    custom = schemas.custom(*key)
    if custom is None:
        return _rules.find(*key)
    entry = _custom_rules.find(*key)
    return entry if entry is not None and entry.since == custom.since_version else None


def find_traits(domain: str, op_type: str) -> OpTraits:
    """Return the traits of an operator; those that hold for any where it has no row of its own."""
    if not _loaded:
        load()
    return rows.find(domain, op_type) or UNKNOWN


def traits_of(name: str) -> OpTraits:
    """Return the traits of an operator by its whole name, as "Conv" or "com.microsoft::Gelu"."""
    domain, _, op_type = name.rpartition("::")
    return find_traits(domain, op_type)


def all_traits() -> Mapping[tuple[str, str], OpTraits]:
    """Return {(domain, operator): its row} of all that have one, custom operators left out."""
    load()
    return rows.rows()


@cache
def layer_operators(*layers: Layer) -> frozenset[str]:
    """Return the names of the operators, of any domain, that layers of these kinds are named after."""
    return frozenset(op_type for (_, op_type), row in all_traits().items() if row.layer in layers)


def generation() -> int:
    """Counts changes of the custom operators: what was made with another count has to be made again."""
    return _generation


def kernels() -> dict[tuple[str, str], tuple[int, ...]]:
    """Return {(domain, operator): the versions from which a kernel serves it, ascending}."""
    load()
    return _kernels.versions() | _custom_kernels.versions()


def rules() -> dict[tuple[str, str], tuple[int, ...]]:
    """Return {(domain, operator): the versions from which a shape rule serves it, ascending}, custom ones left out."""
    load()
    return _rules.versions()


def in_place_kernels() -> list[tuple[str, KernelEntry]]:
    """(operator, kernel) of those with a form that may overwrite an input."""
    load()
    versions = [(key, since) for key, sinces in _kernels.versions().items() for since in sinces]
    entries = [(key[1], _kernels.find(*key, since)) for key, since in versions]
    return [(op_type, entry) for op_type, entry in entries if entry is not None and entry.into is not None]


def load() -> None:
    """Import every family file of `ops/`; the first lookup does it."""
    global _loaded
    with _load_lock:
        if _loaded:
            return
        folder = Path(__file__).parents[1]
        with no_collection(before=False):
            for module in pkgutil.walk_packages([str(folder)], "onnxlab.ops."):
                importlib.import_module(module.name)
        _loaded = True


def register(
    schema: Any,
    *,
    kernel: Function | None = None,
    infer: Function | None = None,
    context: bool = False,
    traits: OpTraits = UNKNOWN,
) -> None:
    """Make a custom operator known, for every model, open ones included.

    An operator that exists already is hidden from the schema's since_version on, until `unregister`. Without a kernel
    it runs by the schema's function body, and without a shape rule it is inferred by that body, if it has one; else
    by the inference function of an OpSchema; else its outputs have the element types that the schema states.

    Args:
        schema: a `schemas.Schema`, or an `onnx.defs.OpSchema`.
        kernel: the kernel, as described at the top of this module.
        infer: the shape rule, as described there.
        context: whether the kernel gets the RunContext first.
        traits: the row of traits, for color, cost and folding; the default is safe for any operator.

    Raises:
        ValueError: the schema contradicts itself, or that version of a custom operator is registered already.
    """
    global _generation
    schemas.register(schema)
    domain, since = schemas.canonical_domain(schema.domain), schema.since_version
    op_type = schema.op_type if isinstance(schema, schemas.Schema) else schema.name
    _generation += 1
    if kernel is not None:
        _custom_kernels.add(KernelEntry(domain, op_type, since, kernel, context, True))
    if infer is not None:
        _custom_rules.add(ShapeRule(domain, op_type, since, infer))
    rows.add_custom(domain, op_type, since, traits)


def unregister(domain: str, op_type: str, since_version: int | None = None) -> None:
    """Forget a custom operator, one version or all: schema, kernel and rule.

    Raises:
        LookupError: there is no such custom operator.
    """
    global _generation
    schemas.unregister(domain, op_type, since_version)
    _generation += 1
    domain = schemas.canonical_domain(domain)
    _custom_kernels.remove(domain, op_type, since_version)
    _custom_rules.remove(domain, op_type, since_version)
    rows.remove_custom(domain, op_type, since_version)
