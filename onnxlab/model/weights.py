"""Weights of a Model, taken from files and written to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from onnxlab import dtypes
from onnxlab.errors import EditError, SaveWarning
from onnxlab.graph import edits
from onnxlab.graph.edit.script import Recorded
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.external_data import ExternalData, is_external
from onnxlab.graph.protos.value_info import describe
from onnxlab.model.saving import Saving
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

if TYPE_CHECKING:
    from onnxlab.formats.weights.files import Weights

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class WeightReport:
    """The effect of a file of weights on a model.

    Attributes:
        replaced: initializers whose data comes from the file.
        missing: initializers that the file does not have.
        extra: tensors of the file that the model does not have.
        misfits: by initializer, why the tensor of the file cannot take its place: another shape or dtype.
    """

    replaced: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    misfits: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"{len(self.replaced)} initializers replaced"]
        for words, names in (("not in the file", self.missing), ("not in the model", self.extra)):
            if names:
                lines.append(f"{len(names)} {words}: {_few(names)}")
        lines += [f"{name}: {why}" for name, why in self.misfits.items()]
        return printable_lines(lines)


class WeightFiles(Spelled, metaclass=ShortHelp):
    """Weight files of a Model, as members."""

    __slots__ = ("_model",)

    def __init__(self, model: Saving) -> None:
        self._model = model

    def load_weights(
        self,
        path: str | PathLike[str],
        *,
        strict: bool = True,
        names: Mapping[str, str] | Callable[[str], str] | None = None,
        link: bool = False,
        dry_run: bool = False,
    ) -> WeightReport:
        """Replace initializers of the main graph by the tensors of a file that have their names, as one step.

        Args:
            path: a .safetensors or .npz file, or the index of sharded ones (*.safetensors.index.json).
            strict: whether each initializer must be in the file and each tensor of the file in the model.
            names: the file's name of an initializer by its name in the model, where the two differ.
            link: leave the bytes in the file and let the model read them there, as external data. The file must lie in
                the folder of the model.
            dry_run: only say what would be done.

        Returns:
            WeightReport: what was replaced, and what was not, by name.

        Raises:
            LoadError: the file cannot be read.
            EditError: names are missing or extra and `strict` is set; a shape or dtype differs; or the file cannot be
                linked. Then nothing is changed.

        Examples:
            >>> import numpy as np, onnxlab
            >>> model = onnxlab.load()
            >>> path = model.files.save_weights("weights.safetensors")
            >>> len(model.files.load_weights(path).missing)
            0
        """
        from onnxlab.formats.weights.files import read_weights

        weights = read_weights(path)
        plan, report = self._matched(weights, names)
        if not dry_run:
            if report.misfits:
                raise EditError(f"the weights of {weights.path.name} do not fit: {_few_misfits(report)}")
            if strict and (report.missing or report.extra):
                raise EditError(_strictly(weights, report))
            base = self._link_base(weights) if link else None
            with self._model.graph.edit(f"load weights from {weights.path.name}") as edit:
                for name, tensor in plan.items():
                    self._replace(name, _placed(tensor, weights, base))
                if names is None and not link:
                    flag = "" if strict else ", strict=False"
                    edit.sum_up(Recorded("", f"model.files.load_weights({str(path)!r}{flag})"))
        return report

    def _matched(
        self, weights: Weights, names: Mapping[str, str] | Callable[[str], str] | None
    ) -> tuple[dict[str, onnx.TensorProto], WeightReport]:
        """The tensors of a file by the initializers that they replace."""
        renamed = names if callable(names) else (names or {}).get
        plan: dict[str, onnx.TensorProto] = {}
        missing, misfits, used = [], {}, set()
        for name, old in self._initializers().items():
            source_name = renamed(name) or name
            if source_name not in weights:
                missing.append(name)
                continue
            used.add(source_name)
            tensor = weights.tensor(source_name, old.data_type)
            if (why := _misfit(old, tensor)) is not None:
                misfits[name] = why
            else:
                plan[name] = tensor
        extra = tuple(name for name in weights if name not in used)
        return plan, WeightReport(tuple(plan), tuple(missing), extra, misfits)

    def _initializers(self) -> dict[str, onnx.TensorProto]:
        return {tensor.name: tensor for tensor in self._model.graph.proto.graph.initializer}

    def _link_base(self, weights: Weights) -> Path:
        """The folder of the model, where the file is in it; raises EditError."""
        base, folder = self._model.graph.base_dir, weights.path.parent
        if base is None:
            raise EditError("this model has no folder to read weights from: save it beside the file, or link=False")
        try:
            folder.resolve().relative_to(base.resolve())
        except ValueError:
            raise EditError(
                f"{weights.path} is not in the model's folder {base}, outside of which a model reads nothing: "
                "move it there, or link=False"
            ) from None
        return base

    def _replace(self, name: str, tensor: onnx.TensorProto) -> None:
        value = self._model.graph.values[self._model.graph.main.names[name]]
        tensor.name = name
        describe(tensor, value.tensor)
        edits.set_initializer(self._model.graph, value, tensor)

    def save_weights(
        self,
        path: str | PathLike[str],
        *,
        names: Iterable[str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the initializers of the main graph to a .safetensors or .npz file.

        Args:
            path: where to; the suffix decides the format.
            names: of the initializers to write; default: all.
            metadata: free text by key, which .safetensors keeps.

        Returns:
            Path: of the file.

        Raises:
            SaveError: the format has no place for a tensor, a file of another kind is there, or the file cannot be
                written; the old file stays.
            EditError: no initializer has one of the names.

        Examples:
            >>> model.files.save_weights("weights.npz").name
            'weights.npz'
        """
        from onnxlab.formats.weights import safetensors
        from onnxlab.formats.weights.files import write_weights

        stored = self._initializers()
        sparse = [tensor.values.name for tensor in self._model.graph.proto.graph.sparse_initializer]
        if names is None and sparse:
            message = f"sparse initializers are not written: {_few(sparse)}; files of weights hold dense tensors"
            warnings.warn(message, SaveWarning, stacklevel=2)
        chosen_names = list(stored if names is None else names)
        if unknown := [name for name in chosen_names if name not in stored]:
            raise EditError(f"no initializer of the main graph is called {_few(unknown)}")
        chosen = safetensors.in_order(stored[name] for name in chosen_names)
        return write_weights(path, chosen, self._model.graph.base_dir, metadata or {}, [self._model._source.path])


def _misfit(old: onnx.TensorProto, new: onnx.TensorProto) -> str | None:
    """The reason why a tensor cannot take the place of another, None where it can."""
    if list(old.dims) != list(new.dims):
        return f"the model has the shape {list(old.dims)}, the file {list(new.dims)}"
    if old.data_type != new.data_type:
        return f"the model has {dtypes.name(old.data_type)}, the file {dtypes.name(new.data_type)}"
    return None


def _placed(tensor: onnx.TensorProto, weights: Weights, base: Path | None) -> onnx.TensorProto:
    """A copy of a tensor of the file: with its bytes, or where to read them from the folder `base`."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    if not is_external(tensor):
        return copy
    where = ExternalData.of(tensor)
    del copy.external_data[:]
    if base is None:
        copy.ClearField("data_location")
        copy.raw_data = tensors.to_bytes(tensor, weights.path.parent)
    else:
        file = (weights.path.parent / where.location).resolve()
        ExternalData(file.relative_to(base.resolve()).as_posix(), where.offset, where.length).note(copy)
    return copy


def _few(names: Iterable[str]) -> str:
    every: list[Any] = [f"{name:.100}" for name in names]
    return ", ".join(every[:_SHOWN]) + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")


def _few_misfits(report: WeightReport) -> str:
    return _few(f"{name:.60} ({why})" for name, why in report.misfits.items())


def _strictly(weights: Weights, report: WeightReport) -> str:
    parts = [
        f"{_few(names)} {'is' if len(names) == 1 else 'are'} not in the {where}"
        for names, where in ((report.missing, "file"), (report.extra, "model"))
        if names
    ]
    return (
        f"{weights.path.name} does not hold just the weights of this model: {'; '.join(parts)}. "
        f"strict=False replaces the {len(report.replaced)} that both have"
    )
