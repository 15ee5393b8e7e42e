"""Writing model files with the external data beside them: all of it or nothing, and only what changed."""

import contextlib
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import EncodeError

from onnxlab.errors import LoadError, SaveError, SaveWarning
from onnxlab.formats import external_data_copies, foreign, kinds, registry, storage
from onnxlab.formats import source as sources
from onnxlab.formats.atomic import Replacement, left_behind, other_names, real_target
from onnxlab.formats.base.format import About, Format, FormatLoss, LossReport
from onnxlab.formats.external_data_copies import CarriedData, Moved, is_same
from onnxlab.formats.onnx import decode
from onnxlab.formats.paths import PathProblem, absolute
from onnxlab.formats.report import FieldChange, differences
from onnxlab.formats.source import Source, Stamp
from onnxlab.graph.protos import glow_dialect


@dataclass(frozen=True, slots=True)
class SaveOptions:
    """The options of a save.

    Attributes:
        overwrite: whether to write even if the file changed on disk since it was loaded.
        external_data: True or a file name puts large initializers into a data file, False takes all external data into
            the model's file; None leaves all tensors where they are, unless the file would be too large for protobuf.
        shard_bytes: the most bytes of one data file.
        format: the name of the format to write; None chooses it by the file's name and the model's source.
    """

    overwrite: bool = False
    external_data: bool | str | None = None
    shard_bytes: int | None = None
    format: str | None = None

    @property
    def as_it_is(self) -> bool:
        """Whether the tensors stay where they are."""
        return self.external_data is None and self.shard_bytes is None


def write(
    model: onnx.ModelProto,
    path: str | os.PathLike[str],
    source: Source | None = None,
    original: bytes | None = None,
    options: SaveOptions | None = None,
    announce: Callable[[bytes], object] = lambda data: None,
) -> Source:
    """Write a model, and into another folder its external data with it, all or nothing.

    The file keeps its mode and owner; where `path` is a symbolic link, its target is replaced. Data files are never
    overwritten: an existing one must have the same content, and new data goes to a file of a new name.

    Args:
        model: the model to write, which is not changed.
        path: the path to write to.
        source: the source of the model; its `original()` still returns the bytes as loaded afterwards.
        original: bytes to write instead of serializing `model`, when nothing changed.
        options: by default tensors stay where they are, and a file that changed since it was loaded is not overwritten.

        announce: called with the bytes of the model's file right before the files are put in their places.

    Returns:
        The source from now on, with `path` and its folder.

    Raises:
        SaveError: the model could not be written; the former files are unchanged.
    """
    source, options = source or Source(), options or SaveOptions()
    path = where(path)
    form = file_format(path, source, options)
    inline = _is_inline(source, options, form)
    plan = storage.StoragePlan()
    try:
        target = real_target(path)
        if not is_same(source.path, target):
            kinds.refuse_for_a_model(path, form)
            _refuse_over_data(model, source.base_dir, target)
        links = other_names(target)
        with Replacement() as files:
            _refuse_conflict(source, path, target, options)
            carried = _carried(model, path, source, options, form, original is not None)
            data = original
            if data is None:
                plan, data = prepared(model, path, source, options, carried)
                data = _with_foreign_strings(data, path, source, form)
                storage.write_files(plan, path.parent, files)
                if is_same(source.origin, target):
                    source = _without_origin(source)
            external_data_copies.write_files(carried, source.base_dir, path.parent, files)
            files.write(target, data)
            _refuse_conflict(source, path, target, options)
            announce(data)
    except LoadError as error:
        raise SaveError(f"cannot save to {path}: {error}") from error
    except SaveError:
        raise
    except OSError as error:
        raise SaveError(f"cannot save to {path}: {error.strerror or error}; nothing was changed") from error
    if links:
        warnings.warn(left_behind(path.name, links), SaveWarning, stacklevel=3)
    for loss in _untranslated(model, source, form):
        warnings.warn(f"{path.name}: {loss}", SaveWarning, stacklevel=3)
    state, name = Stamp.of(target.stat()), form.name
    if original is not None:
        return Source(
            path, path.parent, path, state, disk=state, origin_format=name, form=name, strings=source.strings,
            extra=source.extra,
        )  # fmt: skip
    # data that has another place in the saved model is still read from its old place
    folder = source.base_dir if inline or carried.moved else path.parent
    source = replace(source, path=path, base_dir=folder, disk=state, form=name, digest=None)
    return replace(source, layout=plan.layout, moved=carried.moved, inline=inline)


def where(path: str | os.PathLike[str]) -> Path:
    """The absolute path that a user means; raises SaveError where the argument is no path."""
    try:
        return absolute(path)
    except PathProblem as problem:
        raise SaveError(f"cannot save to {str(path)!r:.1000}: {problem}") from None


def _is_inline(source: Source, options: SaveOptions, form: Format) -> bool:
    """Whether all external data is taken into the model's file."""
    return not form.holds_external_data or options.external_data is False or (options.as_it_is and source.inline)


def _carried(
    model: onnx.ModelProto, path: Path, source: Source, options: SaveOptions, form: Format, as_loaded: bool
) -> CarriedData:
    """The treatment of the model's present external data; raises as `external_data_copies.decide`."""
    if not as_loaded and _is_inline(source, options, form):
        return CarriedData()
    known = source.moved if is_same(source.path, path) else {}
    compact = not options.as_it_is
    return external_data_copies.decide(model, source.base_dir, path, known, compact=compact, as_loaded=as_loaded)


def prepared(
    model: onnx.ModelProto, path: Path, source: Source, options: SaveOptions, carried: CarriedData
) -> tuple[storage.StoragePlan, bytes]:
    """Prepare a save to `path`: where the tensors go, and the bytes of the model's file.

    Raises:
        SaveError: the model does not fit into one file.
        LoadError: external data that goes into the model's file cannot be read.
    """
    form = file_format(path, source, options)
    whole = _is_inline(source, options, form)
    if whole:
        model = storage.embedded(model, source.base_dir)
    if form.name != "onnx":
        placed = model if whole else _placed(model, {}, carried.moved)
        stays = options.as_it_is or options.external_data is False
        return storage.StoragePlan(), _encoded(placed, path, form, source.extra, stays)
    if whole:
        return storage.StoragePlan(), _checked(_serialized(model), path)
    in_place = is_same(source.path, path)
    keep = storage.unchanged(model, source.layout) if in_place else {}
    if options.as_it_is:
        if storage.fits(model, keep, sources.LARGEST):
            data = _serialized(_placed(model, keep, carried.moved))
            if data is not None:
                return storage.StoragePlan(keep), data
        warnings.warn(
            f"{path.name} would have 2 GiB or more, which protobuf cannot hold: its weights go into data files beside "
            "it, which belong to it from now on",
            SaveWarning,
            stacklevel=4,
        )
    chosen = options.external_data if isinstance(options.external_data, str) else f"{path.name}.data"
    where(path.parent / chosen)
    if Path(chosen).name != chosen:
        raise SaveError(f"cannot put the weights into {chosen!r}: give the name of a file in the model's own folder")
    fresh = not isinstance(options.external_data, str)
    occupied = {path.name, carried.name, *external_data_copies.mentioned(model)}
    plan = storage.plan(model, path.parent, chosen, keep, options.shard_bytes, fresh, occupied)
    return plan, _checked(_serialized(_placed(model, plan.layout, carried.moved)), path)


def _placed(model: onnx.ModelProto, layout: storage.Layout, moved: Moved) -> onnx.ModelProto:
    """A copy of the model with the places of its data in the saved files; the model itself where none differ."""
    if not layout and not moved:
        return model
    return external_data_copies.relocated(model, storage.detached(model, layout), moved)


def pending_changes(model: onnx.ModelProto, source: Source | None) -> list[FieldChange]:
    """The fields in which a model differs from its file or bytes, as last loaded or saved.

    Raises:
        SaveError: the model came from neither file nor bytes, or its file has changed or is gone.
    """
    data = _last_bytes(source or Source())
    if source is None or data is None:
        where = f"{source.path} was changed on disk since" if source and source.path else "there is no file of it"
        raise SaveError(f"cannot compare the model with what was loaded: {where}")
    now = model
    if source.inline:
        now = storage.embedded(model, source.base_dir)
    else:
        now = _placed(model, storage.unchanged(model, source.layout), source.moved)
    before = decode(data, source.path)
    foreign.replace(before)
    return list(differences(before, now))


def _with_foreign_strings(data: bytes, path: Path, source: Source, form: Format) -> bytes:
    """The bytes to write, with strings that are no UTF-8 restored; formats other than ONNX keep their stand-ins."""
    if form.name == "onnx":
        return foreign.restored(data, source.strings)
    if source.strings:
        shown = ", ".join(map(repr, source.strings))[:200]
        warning = f"{path.name}: a text holds UTF-8 only, so it has {shown} as shown here"
        warnings.warn(warning, SaveWarning, stacklevel=4)
    return data


def _last_bytes(source: Source) -> bytes | None:
    """The file at `path` as it was last read or written, the bytes as loaded where there is no file."""
    if source.path is None or source.disk is None:
        return source.data
    with contextlib.suppress(OSError):
        data = source.path.read_bytes()
        if source.disk.same_content(Stamp.of(source.path.stat())):
            return data
    return None


def file_format(path: Path, source: Source, options: SaveOptions | None = None) -> Format:
    """The format that a file is written in.

    The options may name the format. Otherwise the format of the model's own file is used for that file and for others
    of the same suffix; for all other files the format of the suffix is used, and ONNX where the suffix has none.

    Raises:
        SaveError: there is no format of the name in the options, or the format is only read.
    """
    origin = source.path
    if options is not None and options.format is not None:
        try:
            form = registry.by_name(options.format)
        except LookupError as error:
            raise SaveError(f"cannot save to {path}: {error.args[0]}") from None
    elif origin is not None and (origin.suffix.lower() == path.suffix.lower() or is_same(origin, path)):
        form = registry.by_name(source.form)
    else:
        form = registry.by_suffix(path) or registry.by_name("onnx")
    if form.write is None:
        raise SaveError(f"cannot save to {path}: {form.title} is only read; {form.instead}")
    return form


def _encoded(model: onnx.ModelProto, path: Path, form: Format, extra: Any, stays: bool) -> bytes:
    """The bytes of a file of a format other than ONNX."""
    if not stays:
        raise SaveError(f"cannot save to {path}: weights go to data files beside .onnx files only")
    assert form.write is not None, "file_format refuses what cannot be written"
    try:
        written = form.write(model, extra)
    except SaveError as error:
        raise SaveError(f"cannot save to {path}: {error}") from error
    except (ValueError, EncodeError) as error:
        raise SaveError(f"cannot save to {path}: {form.title} cannot hold this model: {error}") from error
    if written.lost:
        warnings.warn(f"{path.name}: {written.lost}", SaveWarning, stacklevel=5)
    return written.data


def _refuse_conflict(source: Source, path: Path, target: Path, options: SaveOptions) -> None:
    """Raise SaveError where another program changed the model's file since it was last read or written."""
    if options.overwrite or source.disk is None or source.path is None or not is_same(source.path, target):
        return
    if not source.disk.same_content(Stamp.of(target.stat())):
        raise SaveError(
            f"cannot save to {path}: the file was changed on disk since it was loaded; save with overwrite=True, or "
            "under another name"
        )


def _refuse_over_data(model: onnx.ModelProto, base_dir: Path | None, target: Path) -> None:
    """Raise SaveError where the target is a data file with weights of the model."""
    if base_dir is None or not target.exists():
        return
    for location in external_data_copies.mentioned(model):
        if "\0" not in location and is_same(base_dir / location, target):
            raise SaveError(f"cannot save to {target}: the weights of this model are in it; give another name")


def _serialized(model: onnx.ModelProto) -> bytes | None:
    """The bytes of a model, None where protobuf cannot hold them."""
    try:
        data: bytes = model.SerializeToString()
    except (EncodeError, ValueError):
        return None
    return data if len(data) <= sources.LARGEST else None


def _checked(data: bytes | None, path: Path) -> bytes:
    if data is None:
        raise SaveError(
            f"cannot save to {path}: the model takes 2 GiB or more in one file, which protobuf cannot write; keep "
            "large weights in external data, as initializers of the main graph"
        )
    return data


def _without_origin(source: Source) -> Source:
    """The source before its file is overwritten: its bytes are kept in memory, unless serializing gives them again."""
    return replace(source, origin=None, stamp=None, data=None if source.is_canonical() else source.original())


def _extra(source: Source) -> Any:
    """The `extra` of the source; None where it is of another format than the file now has."""
    return source.extra if source.form == source.origin_format else None


def notes_of(source: Source, message: Any) -> Mapping[str, str]:
    """Notes of a file's format on a node, a declared value or an initializer, besides ONNX: {title: text}."""
    return {**registry.by_name(source.form).notes(_extra(source), message), **glow_dialect.notes(message)}


def about(source: Source, model: onnx.ModelProto) -> About:
    """The statements of the format of a file on the whole model besides ONNX; in Glow's dialect its partitions."""
    form = registry.by_name(source.form)
    pairs, columns, rows = form.table(_extra(source))
    parts = glow_dialect.partitions({entry.key: entry.value for entry in model.metadata_props})
    if parts and not rows:
        columns, rows = glow_dialect.COLUMNS, [part.texts() for part in parts]
    dialect = " in Glow's dialect" if glow_dialect.is_dialect(model) else ""
    return About(f"{form.title}{dialect}", form.uninferred, pairs, columns, rows)


def loss_report(model: onnx.ModelProto, source: Source, name: str) -> LossReport:
    """The losses of writing a model in a format; raises NameLookupError where there is no such format."""
    form = registry.by_name(name)
    if form.write is None:
        return LossReport(
            form.title, (FormatLoss("model", "", f"{form.title} is only read, not written", refused=True),)
        )
    return LossReport(form.title, (*_untranslated(model, source, form), *form.losses(model, source.extra)))


def _untranslated(model: onnx.ModelProto, source: Source, form: Format) -> list[FormatLoss]:
    """The operators of a format without inference, which another format takes over as they are."""
    if not source.uninferred or source.origin_format == form.name or not model.graph.node:
        return []
    origin = registry.by_name(source.origin_format)
    how = "; to run it, let torch convert it: trust=True of onnxlab.load, --trust of onnxlab convert"
    why = f"they stay those of {origin.title}, which no runtime of ONNX has{how if origin.convert else ''}"
    return [FormatLoss("operators", "of the nodes", why)]
