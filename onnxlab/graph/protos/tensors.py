"""TensorProto and SparseTensorProto to read-only NumPy arrays, and back.

Every element type of onnx.proto is read, from `raw_data`, the typed fields or external data. Arrays hold one element
per item: types below 8 bits are unpacked, strings are `str` objects. Sizes are checked against the stored data before
memory is allocated, so that a tensor can claim any shape without harm.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.protos import external_data
from onnxlab.limits import claim

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# element type: the typed field that holds it, by the comments of onnx.proto; all others are in int32_data, float16 and
# the like as their bit patterns
_FIELDS = {
    dtypes.FLOAT: "float_data",
    dtypes.COMPLEX64: "float_data",
    dtypes.DOUBLE: "double_data",
    dtypes.COMPLEX128: "double_data",
    dtypes.INT64: "int64_data",
    dtypes.UINT32: "uint64_data",
    dtypes.UINT64: "uint64_data",
    dtypes.STRING: "string_data",
}
_SIX_BITS = (dtypes.FLOAT6E2M3, dtypes.FLOAT6E3M2)


def to_array(tensor: onnx.TensorProto | onnx.SparseTensorProto, base_dir: Path | None = None) -> Array:
    """The data of a tensor as a read-only array of `dtypes.to_numpy(data_type)`; a sparse one made dense.

    Args:
        tensor: the message. The bytes that protobuf returns for `raw_data` are not copied again.
        base_dir: folder that external data must be in; None refuses to read any.

    Raises:
        LoadError: the data does not fit type and shape, or into memory, or cannot be read.
        LimitError: the data takes more memory than the current run has left.
    """
    if isinstance(tensor, onnx.SparseTensorProto):
        array = _dense(tensor, base_dir)
    else:
        shape = _shape(tensor.dims, tensor.name)
        flat = _flat(tensor, math.prod(shape), base_dir)
        try:
            array = flat.reshape(shape)
        except ValueError as error:  # more dims than NumPy has, or a 0 beside dims whose product overflows
            raise LoadError(f"tensor {tensor.name!r}: NumPy has no array of {len(shape)} such dims: {error}") from None
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True)
class RawTensor:
    """A tensor whose elements lie beside its message until a model stores it, so that they are copied once.

    Attributes:
        message: the tensor without `raw_data`.
        raw_data: the bytes of the elements.
        array: what `to_array` will make of it, where that takes nothing to make.
    """

    message: onnx.TensorProto
    raw_data: bytes
    array: Array | None

    @property
    def name(self) -> str:
        """The name of the tensor."""
        return self.message.name

    def whole(self) -> onnx.TensorProto:
        """The message with its elements, a copy."""
        tensor = onnx.TensorProto()
        self.copy_to(tensor)
        return tensor

    def copy_to(self, tensor: onnx.TensorProto) -> None:
        """Make an empty message this tensor."""
        tensor.CopyFrom(self.message)
        tensor.raw_data = self.raw_data


def from_array(array: Array, name: str = "") -> onnx.TensorProto:
    """A TensorProto of an array, in `raw_data` (strings in `string_data`), in row-major order.

    Raises:
        ValueError: ONNX has no such element type, or an object array holds an item that is no string.
    """
    tensor = raw_tensor(array, name)
    return tensor.whole() if isinstance(tensor, RawTensor) else tensor


def read_in(tensor: onnx.TensorProto, base_dir: Path | None) -> onnx.TensorProto:
    """A copy of a tensor that lies in a data file, with the elements in the message. Raises LoadError as `to_array`."""
    copy = from_array(to_array(tensor, base_dir), tensor.name)
    copy.metadata_props.extend(tensor.metadata_props)
    if tensor.doc_string:
        copy.doc_string = tensor.doc_string
    return copy


def raw_tensor(array: Array, name: str = "") -> RawTensor | onnx.TensorProto:
    """The same for a model to store; a message of its own for strings. Raises as `from_array`."""
    elem_type = dtypes.from_numpy(array.dtype)
    tensor = onnx.TensorProto(dims=array.shape, data_type=elem_type, name=name or None)
    if elem_type == dtypes.STRING:
        tensor.string_data.extend(_encoded(item) for item in array.ravel().tolist())
        return tensor
    bits = dtypes.bits(elem_type)
    flat = np.ascontiguousarray(array).reshape(-1)
    if bits < 8:
        return RawTensor(tensor, _pack(flat.view(np.uint8), bits), None)
    stored = _little_endian(flat.dtype)
    data = flat.astype(stored, copy=False).tobytes()
    plain = array.dtype.kind in "iuf" and array.dtype.isnative and stored == array.dtype
    return RawTensor(tensor, data, np.frombuffer(data, array.dtype).reshape(array.shape) if plain else None)


def to_bytes(tensor: onnx.TensorProto, base_dir: Path | None = None) -> bytes:
    """The data of a tensor as a data file holds it: little-endian, packed, row-major; checked against type and shape.

    Args:
        tensor: a message of any type but strings.
        base_dir: folder that external data must be in; None refuses to read any.

    Raises:
        LoadError: as `to_array`.
    """
    if external_data.is_external(tensor):
        return external_data.read(tensor, base_dir, nbytes(tensor)).tobytes()
    if tensor.HasField("raw_data"):
        raw: bytes = tensor.raw_data
        if len(raw) == nbytes(tensor):
            return raw
    return from_array(to_array(tensor)).raw_data


def nbytes(tensor: onnx.TensorProto) -> int:
    """Bytes that the data takes in a file, by type and shape; for strings, of the strings themselves.

    Raises:
        LoadError: the type is unknown or the shape has a negative dimension.
    """
    if tensor.data_type == dtypes.STRING:
        return sum(map(len, tensor.string_data))
    return _packed_size(math.prod(_shape(tensor.dims, tensor.name)), _bits(tensor))


def field_of(elem_type: int) -> str:
    """The field that holds elements of a type where `raw_data` does not."""
    return _FIELDS.get(elem_type, "int32_data")


def field_length(elem_type: int, count: int) -> int:
    """The number of entries that `count` elements take: two for a complex one, one for several of below 8 bits."""
    if _is_packed(elem_type):
        return _packed_size(count, dtypes.bits(elem_type))
    return 2 * count if elem_type in (dtypes.COMPLEX64, dtypes.COMPLEX128) else count


def _is_packed(elem_type: int) -> bool:
    # onnx packs 2 and 4 bits in int32_data too, but not 6
    return elem_type != dtypes.STRING and dtypes.bits(elem_type) < 8 and elem_type not in _SIX_BITS


def _shape(dims: Any, name: str) -> tuple[int, ...]:
    shape = tuple(dims)
    if any(dim < 0 for dim in shape):
        raise LoadError(f"tensor {name!r} has the shape {list(shape)}: dimensions are at least 0")
    return shape


def _bits(tensor: onnx.TensorProto) -> int:
    try:
        return dtypes.bits(tensor.data_type)
    except ValueError:
        known = ", ".join(dtypes.name(elem_type) for elem_type in dtypes.ELEM_TYPES)
        raise LoadError(
            f"tensor {tensor.name!r} has element type {tensor.data_type}, which is none of {known}"
        ) from None


def _packed_size(count: int, bits: int) -> int:
    return (count * bits + 7) // 8


def _flat(tensor: onnx.TensorProto, count: int, base_dir: Path | None) -> Array:
    """The `count` elements of a tensor in one dimension."""
    elem_type, bits = tensor.data_type, _bits(tensor)
    if tensor.HasField("segment"):
        raise LoadError(f"tensor {tensor.name!r} is stored in segments, which no known tool writes or reads")
    external = external_data.is_external(tensor)
    if elem_type == dtypes.STRING:
        if external or tensor.HasField("raw_data"):
            raise LoadError(f"tensor {tensor.name!r}: strings are stored in string_data only")
        return _strings(tensor, count)
    if external:
        return from_bytes(external_data.read(tensor, base_dir, _packed_size(count, bits)), elem_type, count)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data
        if len(raw) != _packed_size(count, bits):
            raise _wrong_count(tensor, f"{len(raw)} bytes of raw_data", f"{_packed_size(count, bits)} bytes")
        return from_bytes(np.frombuffer(raw, np.uint8), elem_type, count)
    return _from_field(tensor, count, bits)


def _wrong_count(tensor: onnx.TensorProto, count: str, expected: str) -> LoadError:
    return LoadError(
        f"tensor {tensor.name!r} has {count}, but {dtypes.name(tensor.data_type)}{list(tensor.dims)} takes {expected}"
    )


def from_bytes(raw: Bytes, elem_type: int, count: int) -> Array:
    """`count` elements from little-endian bytes, whose number was checked."""
    bits, dtype = dtypes.bits(elem_type), dtypes.to_numpy(elem_type)
    if bits < 8:
        return _unpack(raw, bits, count).view(dtype)
    if elem_type == dtypes.BOOL:
        # NumPy takes any byte but 0 and 1 for both true and false
        return raw.view(np.bool_) if raw.size == 0 or raw.max() <= 1 else raw != 0
    return raw.view(_little_endian(dtype)).astype(dtype, copy=False)


def _from_field(tensor: onnx.TensorProto, count: int, bits: int) -> Array:
    """Elements from the typed field that belongs to the type."""
    elem_type, dtype = tensor.data_type, dtypes.to_numpy(tensor.data_type)
    name, expected = field_of(elem_type), field_length(elem_type, count)
    items = getattr(tensor, name)
    is_complex = dtype.kind == "c"
    if len(items) != expected:
        raise _wrong_count(tensor, f"{len(items)} items of {name}", f"{expected} items")
    if _is_packed(elem_type):
        return _unpack(np.asarray(items, np.int64).astype(np.uint8), bits, count).view(dtype)
    if is_complex:
        return np.asarray(items, np.float32 if bits == 64 else np.float64).view(dtype)
    if name != "int32_data":
        return np.asarray(items, dtype)
    values = np.asarray(items, np.int32)
    if elem_type == dtypes.BOOL:
        truth: Array = values != 0
        return truth
    if dtypes.is_integer(elem_type):
        return values.astype(dtype)
    # bit patterns: the low bits of each int
    return values.astype(np.uint16 if bits == 16 else np.uint8).view(dtype)


def _strings(tensor: onnx.TensorProto, count: int) -> Array:
    if len(tensor.string_data) != count:
        raise _wrong_count(tensor, f"{len(tensor.string_data)} strings", f"{count}")
    array = np.empty(count, object)
    # strings that are not UTF-8 are written back as the same bytes
    array[:] = [item.decode("utf-8", "surrogateescape") for item in tensor.string_data]
    return array


def _encoded(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "surrogateescape")
    raise ValueError(f"an array of objects becomes a tensor of strings, but it holds {item!r} ({type(item).__name__})")


def _unpack(raw: Bytes, bits: int, count: int) -> Bytes:
    """`count` numbers of `bits` bits, the first in the lowest bits of the first byte, to one byte each."""
    if bits == 6:
        rows = np.unpackbits(raw, bitorder="little")[: 6 * count].reshape(count, 6)
        return np.packbits(rows, axis=1, bitorder="little").reshape(-1)
    per_byte = 8 // bits
    out = np.empty((raw.size, per_byte), np.uint8)
    for slot in range(per_byte):
        out[:, slot] = (raw >> np.uint8(slot * bits)) & np.uint8((1 << bits) - 1)
    return out.reshape(-1)[:count]


def _pack(numbers: Bytes, bits: int) -> bytes:
    """The inverse of `_unpack`; the last byte is filled up with zeros."""
    if bits == 6:
        wide = np.unpackbits(numbers.reshape(-1, 1), axis=1, bitorder="little")[:, :6]
        return np.packbits(wide.reshape(-1), bitorder="little").tobytes()
    per_byte = 8 // bits
    slots = np.zeros((_packed_size(numbers.size, bits), per_byte), np.uint8)
    slots.reshape(-1)[: numbers.size] = numbers & np.uint8((1 << bits) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    joined: Array = np.bitwise_or.reduce(slots << shifts, axis=1)
    return joined.tobytes()


@lru_cache(maxsize=64)
def _little_endian(dtype: np.dtype[Any]) -> np.dtype[Any]:
    # dtypes of ml_dtypes and of single bytes have no byte order; `newbyteorder` would return an equal dtype that is not
    # NumPy's own object, for which kernels check, and every ufunc would pass it on
    return np.dtype("<" + dtype.str[1:]) if dtype.kind in "iufc" and dtype.itemsize > 1 else dtype


def _dense(tensor: onnx.SparseTensorProto, base_dir: Path | None) -> Array:
    """A sparse tensor with its zeros: indices of shape [count] into the flat array, or [count, rank]."""
    name = tensor.values.name
    shape = _shape(tensor.dims, name)
    values, indices = to_array(tensor.values, base_dir), to_array(tensor.indices, base_dir)
    if values.ndim != 1 or indices.dtype != np.int64 or indices.shape[:1] != values.shape:
        raise LoadError(
            f"sparse tensor {name!r} has values {list(values.shape)} and {indices.dtype} indices "
            f"{list(indices.shape)}: expected values [n] and int64 indices [n] or [n, {len(shape)}]"
        )
    limits = np.array(shape if indices.ndim == 2 else math.prod(shape))
    if indices.shape[1:] not in ((), (len(shape),)) or (indices < 0).any() or (indices >= limits).any():
        raise LoadError(f"sparse tensor {name!r} has indices outside of its shape {list(shape)}")
    claim(math.prod(shape) * values.dtype.itemsize, f"sparse tensor {name!r}, made dense,")
    try:
        dense = np.zeros(shape, values.dtype)
    except (MemoryError, ValueError) as error:
        raise LoadError(f"sparse tensor {name!r} of shape {list(shape)} does not fit into memory") from error
    if values.dtype == object:
        dense[...] = ""
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values
    else:
        dense.reshape(-1)[indices] = values
    return dense
