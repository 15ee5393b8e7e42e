"""Checks of tensors: one field of data that fits type and shape, or a data file that may be read."""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import onnx

from onnxlab import dtypes
from onnxlab.analysis.findings import Findings
from onnxlab.errors import LoadError
from onnxlab.graph.protos import external_data, tensors

_VALUE_FIELDS = (
    "float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data",
)  # fmt: skip
_INT64_MAX = (1 << 63) - 1
_SIX_BITS = (dtypes.FLOAT6E2M3, dtypes.FLOAT6E3M2)


def check_tensor(tensor: onnx.TensorProto, base_dir: Path | None, findings: Findings, subject: str) -> None:
    """Problems of one tensor; `subject` is its name in messages."""
    if not tensor.data_type:
        findings.error("tensor-type", f"{subject} has no element type", "set its data_type", "an element type", "0")
        return
    present = [name for name in _VALUE_FIELDS if len(getattr(tensor, name))]
    if external_data.is_external(tensor):
        _check_external(tensor, base_dir, findings, subject, present)
        return
    count = _count(tensor.dims, findings, subject)
    if count is None:
        return
    if count == 0 and present:
        findings.error(
            "tensor-data",
            f"{subject} has the shape {list(tensor.dims)} without elements, but has data in {present[0]}",
            "clear the data or correct the shape", "no data", present[0],
        )  # fmt: skip
    elif count and len(present) != 1:
        filled = " and ".join(present) or "none"
        hint = "clear the others" if present else "give it data, or a shape without elements"
        findings.error(
            "tensor-data",
            f"{subject} of shape {list(tensor.dims)} must have its data in one field",
            hint,
            "one",
            filled,
        )
    elif not dtypes_known(tensor.data_type):
        name = "tensor-type-unchecked" if present == ["raw_data"] else "tensor-type"
        findings.error(
            name, f"{subject} has element type {tensor.data_type}, which this version of ONNX does not have",
            "use one that it has, or install a newer onnx package", "a known element type", str(tensor.data_type),
        )  # fmt: skip
    elif count and present:
        _check_size(tensor, count, present[0], findings, subject)


def dtypes_known(elem_type: int) -> bool:
    """Whether an element type is one of ONNX's."""
    return elem_type in dtypes.ELEM_TYPES


def _count(dims: object, findings: Findings, subject: str) -> int | None:
    """The product of the dimensions, None where that is no size."""
    shape = list(dims)  # type: ignore[call-overload]
    count = 1
    for dim in shape:
        if dim < 0:
            findings.error(
                "tensor-shape", f"{subject} has the shape {shape}: dimensions are at least 0",
                "correct its dims", "dims ≥ 0", str(dim),
            )  # fmt: skip
            return None
        count *= dim
        if count > _INT64_MAX:
            findings.error(
                "tensor-shape", f"{subject} has the shape {shape}, more elements than 64 bits can count",
                "correct its dims", "less than 2^63 elements", str(count),
            )  # fmt: skip
            return None
    return count


def _check_size(tensor: onnx.TensorProto, count: int, present: str, findings: Findings, subject: str) -> None:
    """The right field, with as many entries as the shape says."""
    elem_type = tensor.data_type
    if present == "raw_data":
        if elem_type == dtypes.STRING:
            findings.error(
                "tensor-data", f"{subject} has strings in raw_data", "put them into string_data", "string_data", present
            )
            return
        expected, unit = (count * dtypes.bits(elem_type) + 7) // 8, "bytes"
    else:
        field = tensors.field_of(elem_type)
        if present != field:
            findings.error(
                "tensor-data", f"{subject} is {dtypes.name(elem_type)} and has its data in {present}",
                f"put it into {field} or raw_data", field, present,
            )  # fmt: skip
            return
        expected, unit = tensors.field_length(elem_type, count), "entries"
    actual = len(getattr(tensor, present))
    if actual != expected:
        # onnx accepts more data than needed, or less by its reading of packed types; such tensors cannot be decoded
        unchecked = actual > expected or _lenient(elem_type, present, actual, count)
        findings.error(
            "tensor-size-unchecked" if unchecked else "tensor-size",
            f"{subject} of shape {list(tensor.dims)} has {actual} {unit} of {present}",
            "correct the shape or the data", f"{expected} {unit}", f"{actual} {unit}",
        )  # fmt: skip


def _lenient(elem_type: int, present: str, stored: int, count: int) -> bool:
    """Whether onnx.checker takes data that is too short: 4- and 2-bit types, of which it expects more in each int32."""
    bits = dtypes.bits(elem_type) if elem_type != dtypes.STRING else 0
    return present == "int32_data" and 0 < bits < 8 and elem_type not in _SIX_BITS and stored >= -(-count * bits // 32)


def _check_external(
    tensor: onnx.TensorProto, base_dir: Path | None, findings: Findings, subject: str, present: list[str]
) -> None:
    if present:
        findings.error(
            "external-data", f"{subject} has external data and {present[0]} too",
            "clear one of the two", "external data alone", present[0],
        )  # fmt: skip
        return
    locations = [entry.value for entry in tensor.external_data if entry.key == "location" and entry.HasField("value")]
    if not locations:
        findings.error(
            "external-data", f"{subject} is said to have external data, but not in which file",
            "add a location to its external_data", "a location", "none",
        )  # fmt: skip
        return
    if base_dir is None:
        findings.warning(
            "external-data-unseen", f"{subject} has its data in {locations[0]!r}, which cannot be looked for",
            "load the model by its path",
        )  # fmt: skip
        return
    for location in locations:
        for rule in _LOCATION_RULES:
            if problem := rule(base_dir, location):
                findings.error(
                    "external-data", f"{subject} has its data in {location!r}, which {problem}",
                    "put a plain file into the model's folder and name it", "a plain file beside the model", location,
                )  # fmt: skip
                return
    _check_range(tensor, base_dir, findings, subject)


def _check_range(tensor: onnx.TensorProto, base_dir: Path, findings: Findings, subject: str) -> None:
    """Offset, length and the size of the file, which onnx.checker does not look at; without reading the data."""
    try:
        where = external_data.ExternalData.of(tensor)
        needed = tensors.nbytes(tensor)
        with os.fdopen(external_data.open_confined(base_dir, where.location, tensor.name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
    except LoadError as error:
        findings.error("external-data-unreadable", str(error), "correct its external_data", "", "")
        return
    if (where.length is not None and where.length != needed) or where.offset + needed > size:
        findings.error(
            "external-data-unreadable",
            f"{subject} takes {needed} bytes at {where.offset} of {where.location!r}, "
            f"which has {size}, and its length is given as {where.length}",
            "correct its external_data, or get the file that belongs to the model", f"{needed} bytes", f"{size} bytes",
        )  # fmt: skip


def _empty(_: Path, location: str) -> str:
    return "" if location else "is no file name"


def _absolute(_: Path, location: str) -> str:
    return "is an absolute path" if location.startswith("/") else ""


def _upward(_: Path, location: str) -> str:
    return "has '..' in it" if ".." in os.path.normpath(location) else ""


def _linked(base_dir: Path, location: str) -> str:
    return "is a symbolic link" if os.path.islink(base_dir / location) else ""


def _outside(base_dir: Path, location: str) -> str:
    try:
        (base_dir / location).resolve().relative_to(base_dir.resolve())
    except (ValueError, OSError, RuntimeError):
        return "leads out of the model's folder"
    return ""


def _irregular(base_dir: Path, location: str) -> str:
    path = base_dir / location
    try:
        if not path.is_file():
            return "is no regular file" if path.exists() else "is not there"
        return "has more than one hard link" if path.stat().st_nlink > 1 else ""
    except (OSError, ValueError) as error:
        return f"cannot be looked at ({error})"


_LOCATION_RULES: tuple[Callable[[Path, str], str], ...] = (_empty, _absolute, _upward, _linked, _outside, _irregular)


def check_sparse(sparse: onnx.SparseTensorProto, base_dir: Path | None, findings: Findings, subject: str) -> None:
    """Problems of a sparse tensor: values of rank 1, ascending int64 indices within its shape."""
    if not sparse.HasField("values"):
        findings.error("sparse-tensor", f"{subject} has no values", "set its values", "values", "none")
        return
    check_tensor(sparse.values, base_dir, findings, f"the values of {subject}")
    values, shape = sparse.values, list(sparse.dims)

    def wrong(message: str, expected: str, actual: object) -> None:
        findings.error("sparse-tensor", f"{subject} {message}", "correct the sparse tensor", expected, str(actual))

    if len(values.dims) != 1:
        wrong("must have values of rank 1", "rank 1", f"rank {len(values.dims)}")
    elif not shape or min(shape) <= 0:
        wrong(f"has the shape {shape}", "one dim or more, all above 0", shape)
    elif sparse.HasField("indices"):
        check_tensor(sparse.indices, base_dir, findings, f"the indices of {subject}")
        _check_indices(sparse, base_dir, wrong)
    elif values.dims[0]:
        wrong("has values but no indices", f"{values.dims[0]} indices", "none")


def _check_indices(
    sparse: onnx.SparseTensorProto, base_dir: Path | None, wrong: Callable[[str, str, object], None]
) -> None:
    indices, shape, count = sparse.indices, list(sparse.dims), sparse.values.dims[0]
    if indices.data_type != dtypes.INT64:
        wrong("has indices of the wrong type", "int64", dtypes.name(indices.data_type))
    elif len(indices.dims) not in (1, 2):
        wrong("has indices of the wrong rank", "rank 1 or 2", f"rank {len(indices.dims)}")
    elif indices.dims[0] != count or list(indices.dims[1:]) not in ([], [len(shape)]):
        wrong("has indices of the wrong shape", f"[{count}] or [{count}, {len(shape)}]", list(indices.dims))
    else:
        try:
            table = tensors.to_array(indices, base_dir)
        except LoadError as error:
            wrong(f"has indices that cannot be read: {error}", "", "")
            return
        rows = [tuple(row) if table.ndim == 2 else int(row) for row in table.tolist()]
        size = 1
        for dim in shape:
            size *= dim
        inside = all(
            all(0 <= index < dim for index, dim in zip(row, shape, strict=True))
            if isinstance(row, tuple)
            else 0 <= row < size
            for row in rows
        )
        if not inside:
            wrong(f"has indices outside of its shape {shape}", f"below {shape}", rows[:8])
        elif any(row >= after for row, after in pairwise(rows)):  # type: ignore[operator]
            wrong("has indices that do not ascend", "ascending indices, each once", rows[:8])
