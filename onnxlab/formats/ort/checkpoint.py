"""Checkpoints of ONNX Runtime's training on a device: parameters, state of optimizers and properties in one file."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError, SaveError
from onnxlab.formats.kinds import FileKind
from onnxlab.formats.ort.decoding import fill_tensor
from onnxlab.formats.ort.encoding import tensor_table
from onnxlab.formats.ort.reader import REREAD, FlatBuffer, FlatTable, damaged
from onnxlab.formats.ort.writer import write
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.external_data import is_external
from onnxlab.printable import printable_lines

IDENTIFIER: Final = b"ODTC"
VERSIONS: Final = (1, 2)
KIND: Final = FileKind("a training checkpoint", (".ckpt", ""), lambda head: head[4:8] == IDENTIFIER)
_GROUP: Final = "group0"
_LARGEST_INT: Final = (1 << 63) - 1

Parameters = dict[str, onnx.TensorProto]


@dataclass(frozen=True, slots=True)
class OptimizerGroup:
    """The state of an optimizer for a group of parameters.

    Attributes:
        step: how many steps the optimizer made.
        learning_rate: the learning rate that it began with.
        momentums: {parameter: {"momentum0": its tensor}}.
    """

    name: str = _GROUP
    step: int = 0
    learning_rate: float = 0.0
    momentums: Mapping[str, Parameters] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A row of a checkpoint's table for a parameter; statistics are None where the parameter has no values.

    Attributes:
        group: "trained" or "frozen".
        zeros: the fraction of elements that are 0.
        nan: how many elements are NaN.
        momentums: {momentum: its Euclidean norm}.
    """

    name: str
    group: str
    dtype: str
    shape: tuple[int, ...]
    mean: float | None = None
    std: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    zeros: float | None = None
    nan: int | None = None
    momentums: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.name}: {self.group} {self.dtype}[{','.join(map(str, self.shape))}]"
        if self.mean is not None:
            text += f"  mean {self.mean:.6g} std {self.std:.6g} min {self.minimum:.6g} max {self.maximum:.6g}"
            text += f" zeros {self.zeros:.1%} NaN {self.nan}"
        return text + "".join(f" |{name}| {norm:.6g}" for name, norm in self.momentums.items())


@dataclass(frozen=True, slots=True)
class TrainingCheckpoint:
    """A checkpoint: `table()` lists it, `compare` sets it against another or against a model's initializers.

    Attributes:
        trained, frozen: parameters by name, in the order of the file.
        groups: the state of optimizers; empty where it was not saved.
        properties: values that the user stored, by name.
        nominal: whether the checkpoint has the names of parameters without their values.
        version: the version of the format.
    """

    trained: Parameters = field(default_factory=dict)
    frozen: Parameters = field(default_factory=dict)
    groups: tuple[OptimizerGroup, ...] = ()
    properties: Mapping[str, int | float | str] = field(default_factory=dict)
    nominal: bool = False
    version: int = 2

    @property
    def parameters(self) -> Parameters:
        """All parameters by name. Raises LoadError where the checkpoint is nominal."""
        if self.nominal:
            names = ", ".join([*self.trained, *self.frozen][:5])
            raise LoadError(f"it is a nominal checkpoint: it names {names} and has no values of them")
        return {**self.trained, **self.frozen}

    def table(self) -> list[ParameterRow]:
        """A row for each parameter."""
        return [
            self._row(tensor, group)
            for group, parameters in (("trained", self.trained), ("frozen", self.frozen))
            for tensor in parameters.values()
        ]

    def _row(self, tensor: onnx.TensorProto, group: str) -> ParameterRow:
        row = ParameterRow(tensor.name, group, dtypes.name(tensor.data_type), tuple(tensor.dims))
        if self.nominal or (array := _reals(tensor)) is None:
            return row
        finite = array[~np.isnan(array)]
        norms = {
            name: float(np.linalg.norm(reals))
            for entry in self.groups
            for name, momentum in entry.momentums.get(tensor.name, {}).items()
            if (reals := _reals(momentum)) is not None
        }
        if not finite.size:
            return replace(row, nan=int(array.size), momentums=norms)
        with np.errstate(all="ignore"):  # infinities have no mean
            return replace(
                row, mean=float(finite.mean()), std=float(finite.std()), minimum=float(finite.min()),
                maximum=float(finite.max()), zeros=float((array == 0).mean()), nan=int(array.size - finite.size),
                momentums=norms,
            )  # fmt: skip

    def __str__(self) -> str:
        lines = [str(row) for row in self.table()]
        lines += [f"{group.name}: step {group.step}, learning rate {group.learning_rate:.6g}" for group in self.groups]
        lines += [f"{name} = {value!r}" for name, value in self.properties.items()]
        return printable_lines([*lines, "nominal: names without values"] if self.nominal else lines)

    def compare(self, other: "TrainingCheckpoint | onnx.ModelProto") -> dict[str, str]:
        """{parameter: how it differs} from another checkpoint or a model's initializers; equal ones are left out."""
        ours = self.parameters
        if isinstance(other, TrainingCheckpoint):
            theirs = other.parameters
        else:
            theirs = {tensor.name: tensor for tensor in other.graph.initializer if tensor.name in ours}
        differences = {name: _difference(tensor, theirs.get(name)) for name, tensor in ours.items()}
        differences |= {name: "only in the other" for name in theirs if name not in ours}
        return {name: text for name, text in differences.items() if text}

    def to_bytes(self) -> bytes:
        """The bytes of a file. Raises SaveError where it would have 2 GiB or more, or a property does not fit."""
        state = {
            "requires_grad_params": [tensor_table(tensor) for tensor in self.trained.values()],
            "frozen_params": [tensor_table(tensor) for tensor in self.frozen.values()],
            "is_nominal_state": self.nominal,
        }
        groups = [
            {
                "group_name": group.name,
                "step": group.step,
                "initial_learning_rate": group.learning_rate,
                "optimizer_states": [
                    {"param_name": name, "momentums": [tensor_table(tensor) for tensor in momentum.values()]}
                    for name, momentum in group.momentums.items()
                ],
            }
            for group in self.groups
        ]
        values: dict[str, Any] = {"version": self.version, "module_state": state, "optimizer_groups": groups or None}
        if self.properties:
            values["property_bag"] = _bag(self.properties)
        return write("Checkpoint", values, IDENTIFIER)


def _difference(ours: onnx.TensorProto, theirs: onnx.TensorProto | None) -> str:
    if theirs is None:
        return "not in the other"
    if (ours.data_type, list(ours.dims)) != (theirs.data_type, list(theirs.dims)):
        shapes = [f"{dtypes.name(tensor.data_type)}{list(tensor.dims)}" for tensor in (ours, theirs)]
        return f"{shapes[0]} against {shapes[1]}"
    array, other = tensors.to_array(ours), tensors.to_array(theirs)
    bits = "" if array.dtype == object else f"V{array.itemsize}"  # NaN and zeros with signs are compared by their bits
    count = int((array.view(bits) != other.view(bits)).sum()) if bits else int((array != other).sum())
    if not count:
        return ""
    gap = _largest_gap(ours, theirs)
    return f"{count} of {array.size} elements differ" + ("" if gap is None else f", by {gap:.6g} at most")


def _reals(tensor: onnx.TensorProto) -> "np.ndarray[Any, Any] | None":
    """The elements as float64; None for strings and complex numbers, which have no order."""
    array = tensors.to_array(tensor)
    return None if array.dtype.kind in "Oc" else array.astype(np.float64)


def _largest_gap(ours: onnx.TensorProto, theirs: onnx.TensorProto) -> float | None:
    """The largest difference of two elements, NaN left out; None where there is none, or no order."""
    array, other = _reals(ours), _reals(theirs)
    if array is None or other is None:
        return None
    with np.errstate(all="ignore"):
        gap = np.abs(array - other)
    return float(np.nanmax(gap)) if not np.isnan(gap).all() else None


def _bag(properties: Mapping[str, Any]) -> dict[str, Any]:
    bag: dict[str, list[dict[str, Any]]] = {"ints": [], "floats": [], "strings": []}
    for name, value in properties.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise SaveError(f"the property {name!r} is {value!r}; a checkpoint has int, float and str")
        if isinstance(value, int) and abs(value) > _LARGEST_INT:
            raise SaveError(f"the property {name!r} is {value}, which does not fit into 64 bits")
        kind = "ints" if isinstance(value, int) else "floats" if isinstance(value, float) else "strings"
        bag[kind].append({"name": name, "value": value})
    return bag


def of_model(parameters: Iterable[onnx.TensorProto], base_dir: Path | None = None) -> TrainingCheckpoint:
    """A checkpoint of initializers: float initializers are trained parameters, all others frozen."""
    checkpoint = TrainingCheckpoint()
    for stored in parameters:
        external = is_external(stored)
        tensor = tensors.from_array(tensors.to_array(stored, base_dir), stored.name) if external else stored
        floats = dtypes.to_numpy(tensor.data_type).kind in "fV" and tensor.data_type != dtypes.STRING
        (checkpoint.trained if floats else checkpoint.frozen)[tensor.name] = tensor
    return checkpoint


def read_checkpoint(path: str | Path) -> TrainingCheckpoint:
    """Read a checkpoint, its external data included. Raises LoadError where the file is none or damaged.

    Examples:
        >>> read_checkpoint("absent")
        Traceback (most recent call last):
        onnxlab.errors.LoadError: cannot read the checkpoint absent: No such file or directory
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise LoadError(f"cannot read the checkpoint {path}: {error.strerror or error}") from None
    try:
        return decode(data, file)
    except LoadError as error:
        raise LoadError(f"cannot read the checkpoint {path}: {error}") from error


def decode(data: bytes, path: Path | None = None) -> TrainingCheckpoint:
    """The checkpoint in a file; external data is in the file of the same name with ".data" behind it."""
    if data[4:8] != IDENTIFIER:
        raise LoadError("it is no training checkpoint of ONNX Runtime: its bytes 4 to 8 are not 'ODTC'")
    try:
        return _decoded(data, path)
    except (struct.error, ValueError, OverflowError, TypeError) as error:  # numbers out of the range of a proto's field
        raise error if isinstance(error, LoadError) else damaged(f"{error}") from None


def _decoded(data: bytes, path: Path | None) -> TrainingCheckpoint:
    root = FlatBuffer(data).root("Checkpoint")
    version, state = root["version"], root["module_state"]
    if version not in VERSIONS:
        raise LoadError(f"it is in version {version} of checkpoints; versions 1 and 2 are read")
    if state is None:
        raise LoadError("it is a checkpoint without parameters")
    nominal = bool(state["is_nominal_state"])
    external = _external(path) if state["has_external_data"] else None
    parameters = [
        _by_name(_tensor(tensor, external, nominal) for tensor in state[name])
        for name in ("requires_grad_params", "frozen_params")
    ]
    if both := parameters[0].keys() & parameters[1].keys():
        raise LoadError(f"its parameter {min(both)!r:.100} is trained and frozen")
    groups = tuple(_group(group, external) for group in root["optimizer_groups"])
    return TrainingCheckpoint(parameters[0], parameters[1], groups, _properties(root["property_bag"]), nominal, version)


def _by_name(parameters: Iterable[onnx.TensorProto]) -> Parameters:
    by_name: dict[str, onnx.TensorProto] = {}
    for tensor in parameters:
        if tensor.name in by_name:
            raise LoadError(f"it has two tensors called {tensor.name!r:.100}, of which one would be lost")
        by_name[tensor.name] = tensor
    return by_name


def _properties(bag: FlatTable | None) -> dict[str, int | float | str]:
    if bag is None:
        return {}
    numbers: dict[str, int | float | str] = {
        entry.text("name"): entry["value"] for entry in (*bag["ints"], *bag["floats"])
    }
    return numbers | {entry.text("name"): entry.text("value") for entry in bag["strings"]}


def _group(group: FlatTable, external: Callable[[int, int], bytes] | None) -> OptimizerGroup:
    momentums = {
        state.text("param_name"): _by_name(_tensor(tensor, external, False) for tensor in state["momentums"])
        for state in group["optimizer_states"]
    }
    return OptimizerGroup(group.text("group_name"), group["step"], group["initial_learning_rate"], momentums)


def _tensor(stored: FlatTable, external: Callable[[int, int], bytes] | None, nominal: bool) -> onnx.TensorProto:
    tensor = onnx.TensorProto()
    offset = stored["external_data_offset"]
    fill_tensor(stored, tensor, in_file=offset < 0)
    if offset >= 0:
        if external is None:
            raise LoadError(f"its tensor {tensor.name!r:.100} is in a data file, which the checkpoint says it has not")
        tensor.raw_data = external(offset, tensors.nbytes(tensor))
    elif not nominal:
        tensors.to_array(tensor)  # raises where the bytes do not fit the shape
    return tensor


def _external(path: Path | None) -> Callable[[int, int], bytes]:
    """A function that reads bytes of the data file beside a checkpoint."""
    bytes_read = 0

    def read(offset: int, size: int) -> bytes:
        if path is None:
            raise LoadError("its parameters are in a data file beside it: read it by its path")
        nonlocal bytes_read
        bytes_read += size
        beside = path.with_name(f"{path.name}.data")
        try:
            with beside.open("rb") as file:
                length = beside.stat().st_size
                if offset + size > length:
                    raise LoadError(f"its data file {beside.name} ends before byte {offset + size:,}")
                if bytes_read > REREAD * length:
                    raise damaged(f"it refers to the same bytes of {beside.name} over and over")
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise LoadError(f"its data file {beside.name} cannot be read: {error.strerror or error}") from None

    return read


def with_values(
    checkpoint: TrainingCheckpoint, values: Sequence[onnx.TensorProto]
) -> tuple[TrainingCheckpoint, list[str]]:
    """A checkpoint with the current values of initializers, and the names of parameters that are none of these."""
    current = {tensor.name: tensor for tensor in values}
    frozen = {name: current[name] for name in checkpoint.frozen if name in current}
    trained = {name: tensor for name, tensor in current.items() if name not in frozen}
    gone = [name for name in (*checkpoint.trained, *checkpoint.frozen) if name not in current]
    groups = tuple(
        replace(group, momentums={name: state for name, state in group.momentums.items() if name in trained})
        for group in checkpoint.groups
    )
    return replace(checkpoint, trained=trained, frozen=frozen, groups=groups), gone
