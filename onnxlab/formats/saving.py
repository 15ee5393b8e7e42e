"""Writing model files with the external data beside them: all of it or nothing, and only what changed."""

import contextlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from google.protobuf.message import EncodeError

from onnxlab.errors import LoadError, SaveError, SaveWarning
from onnxlab.formats import carrying, foreign, kinds, storage, textual
from onnxlab.formats import source as sources
from onnxlab.formats.atomic import Replacement, left_behind, other_names, real_target
from onnxlab.formats.carrying import Carried, Moved, is_same
from onnxlab.formats.onnx import decode
from onnxlab.formats.paths import PathProblem, absolute
from onnxlab.formats.report import FieldChange, differences
from onnxlab.formats.source import Source, Stamp


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is to be saved.

    Attributes:
        overwrite: also where the file changed on disk since it was loaded.
        external_data: True or a file name puts large initializers into a data file, False takes all external data into
            the model's file; None leaves everything where it is, unless the file would be too large for protobuf.
        shard_bytes: the most bytes of one data file.
    """

    overwrite: bool = False
    external_data: bool | str | None = None
    shard_bytes: int | None = None

    @property
    def as_it_is(self) -> bool:
        """Whether the tensors stay where they are."""
        return self.external_data is None and self.shard_bytes is None


def write(
    model: onnx.ModelProto,
    path: str | os.PathLike[str],
    source: Source | None = None,
    original: bytes | None = None,
    options: Options | None = None,
    announce: Callable[[bytes], object] = lambda data: None,
) -> Source:
    """Write a model, and into another folder its external data with it, all or nothing.

    The file keeps its mode and owner; where `path` is a symbolic link, what it points at is replaced. Data files
    are never overwritten: one that is there must have the same content, and new data goes under a new name.

    Args:
        model: what to write; it is not changed.
        path: where to.
        source: where it came from; its `original()` keeps giving the bytes as loaded.
        original: bytes to write instead of serializing `model`, when nothing changed.
        options: default: everything stays where it is, and a file that somebody else changed is not overwritten.

        announce: called with the bytes of the model's file right before the files are put in their places.

    Returns:
        The source from now on, with `path` and its folder.

    Raises:
        SaveError: it could not be written; what was there before is still there.
    """
    source, options = source or Source(), options or Options()
    path = where(path)
    inline = _is_inline(source, options)
    plan = storage.Plan()
    try:
        target = real_target(path)
        if not is_same(source.path, target):
            kinds.refuse_for_a_model(path)
            _refuse_over_data(model, source.base_dir, target)
        links = other_names(target)
        with Replacement() as files:
            _refuse_conflict(source, path, target, options)
            carried = _carried(model, path, source, options, original is not None)
            data = original
            if data is None:
                plan, data = prepared(model, path, source, options, carried)
                data = _with_foreign_strings(data, path, source)
                storage.write_files(plan, path.parent, files)
                if is_same(source.origin, target):
                    source = _without_origin(source)
            carrying.write_files(carried, source.base_dir, path.parent, files)
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
    state, form = Stamp.of(target.stat()), file_format(path, source)
    if original is not None:
        strings = source.strings
        return Source(path, path.parent, path, state, disk=state, origin_format=form, form=form, strings=strings)
    # what lies elsewhere in the file than in the live model is read where it was
    folder = source.base_dir if inline or carried.moved else path.parent
    source = replace(source, path=path, base_dir=folder, disk=state, form=form, digest=None)
    return replace(source, layout=plan.layout, moved=carried.moved, inline=inline)


def where(path: str | os.PathLike[str]) -> Path:
    """The absolute path that a user means; raises SaveError where it is none."""
    try:
        return absolute(path)
    except PathProblem as problem:
        raise SaveError(f"cannot save to {str(path)!r:.1000}: {problem}") from None


def _is_inline(source: Source, options: Options) -> bool:
    """Whether all external data is taken into the model's file."""
    return options.external_data is False or (options.as_it_is and source.inline)


def _carried(model: onnx.ModelProto, path: Path, source: Source, options: Options, as_loaded: bool) -> Carried:
    """What is to be written of the external data that the model has already; raises as `carrying.decide`."""
    if not as_loaded and _is_inline(source, options):
        return Carried()
    known = source.moved if is_same(source.path, path) else {}
    compact = not options.as_it_is
    return carrying.decide(model, source.base_dir, path, known, compact=compact, as_loaded=as_loaded)


def prepared(
    model: onnx.ModelProto, path: Path, source: Source, options: Options, carried: Carried
) -> tuple[storage.Plan, bytes]:
    """What a save to `path` would write: where the tensors go, and the bytes of the model's file.

    Raises:
        SaveError: it does not fit into one file.
        LoadError: external data that is to be taken in cannot be read.
    """
    whole = _is_inline(source, options)
    if whole:
        model = storage.embedded(model, source.base_dir)
    if form := textual.by_name(file_format(path, source)):
        placed = model if whole else _placed(model, {}, carried.moved)
        return storage.Plan(), _as_text(placed, path, form, whole or options.as_it_is)
    if whole:
        return storage.Plan(), _checked(_serialized(model), path)
    in_place = is_same(source.path, path)
    keep = storage.unchanged(model, source.layout) if in_place else {}
    if options.as_it_is:
        if storage.fits(model, keep, sources.LARGEST):
            data = _serialized(_placed(model, keep, carried.moved))
            if data is not None:
                return storage.Plan(keep), data
        warnings.warn(
            f"{path.name} would have 2 GiB or more, which protobuf cannot hold: its weights go into data files beside "
            "it, which belong to it from now on",
            SaveWarning,
            stacklevel=4,
        )
    chosen = options.external_data if isinstance(options.external_data, str) else f"{path.name}.data"
    if Path(chosen).name != chosen:
        raise SaveError(f"cannot put the weights into {chosen!r}: give the name of a file in the model's own folder")
    fresh = not isinstance(options.external_data, str)
    taken = {path.name, carried.name, *carrying.mentioned(model)}
    plan = storage.plan(model, path.parent, chosen, keep, options.shard_bytes, fresh, taken)
    return plan, _checked(_serialized(_placed(model, plan.layout, carried.moved)), path)


def _placed(model: onnx.ModelProto, layout: storage.Layout, moved: Moved) -> onnx.ModelProto:
    """A copy of the model that says where its data is in the files; the model itself where that is no news."""
    if not layout and not moved:
        return model
    return carrying.relocated(model, storage.detached(model, layout), moved)


def pending_changes(model: onnx.ModelProto, source: Source | None) -> list[FieldChange]:
    """The fields in which a model differs from what it was loaded from or last saved to.

    Raises:
        SaveError: it came from neither file nor bytes, or its file is not there any more as it was.
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


def _with_foreign_strings(data: bytes, path: Path, source: Source) -> bytes:
    """What is written, with strings that are no UTF-8 as they were; a text keeps their stand-ins."""
    if textual.by_name(file_format(path, source)) is None:
        return foreign.restored(data, source.strings)
    if source.strings:
        shown = ", ".join(map(repr, source.strings))[:200]
        told = f"{path.name}: a text holds UTF-8 only, so it has {shown} as shown here"
        warnings.warn(told, SaveWarning, stacklevel=4)
    return data


def _last_bytes(source: Source) -> bytes | None:
    """The file at `path` as it was last read or written, the bytes as loaded where there is no file."""
    if source.path is None or source.disk is None:
        return source.kept
    with contextlib.suppress(OSError):
        data = source.path.read_bytes()
        if source.disk.same_content(Stamp.of(source.path.stat())):
            return data
    return None


def file_format(path: Path, source: Source) -> str:
    """The name of the format that a file is written in.

    That of the file that the model came from, for it and for others of its suffix, whatever that stands for elsewhere;
    else the one that the suffix means.
    """
    origin = source.path
    if origin is not None and (origin.suffix.lower() == path.suffix.lower() or is_same(origin, path)):
        return source.form
    form = textual.by_suffix(path)
    return form.name if form else "onnx"


def _as_text(model: onnx.ModelProto, path: Path, form: textual.Format, stays: bool) -> bytes:
    if not stays:
        raise SaveError(f"cannot save to {path}: weights go to data files beside .onnx files only")
    try:
        data, lost = textual.encode(model, form)
    except (ValueError, EncodeError) as error:
        raise SaveError(f"cannot save to {path}: {form.name} cannot hold this model: {error}") from error
    if lost:
        warnings.warn(f"{path.name}: {lost}", SaveWarning, stacklevel=5)
    return data


def _refuse_conflict(source: Source, path: Path, target: Path, options: Options) -> None:
    """Raise SaveError where the file that the model came from was changed by somebody else since."""
    if options.overwrite or source.disk is None or source.path is None or not is_same(source.path, target):
        return
    if not source.disk.same_content(Stamp.of(target.stat())):
        raise SaveError(
            f"cannot save to {path}: the file was changed on disk since it was loaded; save with overwrite=True, or "
            "under another name"
        )


def _refuse_over_data(model: onnx.ModelProto, base_dir: Path | None, target: Path) -> None:
    """Raise SaveError where the target is a file that the model's own weights are in."""
    if base_dir is None or not target.exists():
        return
    for location in carrying.mentioned(model):
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
    """The source when its file is about to be overwritten: the bytes are kept, unless protobuf gives them again."""
    return replace(source, origin=None, stamp=None, kept=None if source.is_canonical() else source.original())
