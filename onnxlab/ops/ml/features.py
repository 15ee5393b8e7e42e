"""ai.onnx.ml: scalers, imputers, encoders and maps (see also linear.py, trees.py, svm.py)."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import like, same
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.tensor.string import strings
from onnxlab.shapes import Dim, Fact, FactError, MapFact, SequenceFact, TensorFact

DOMAIN = "ai.onnx.ml"
_ZERO, _ONE = np.array(0, np.float32), np.array(1, np.float32)  # NumPy takes longer for Python's numbers


def logistic(x: Array) -> Array:
    """1 / (1 + e⁻ˣ)."""
    return _ONE / (_ONE + np.exp(-x))


def _softmax(x: Array) -> Array:
    exponentials = np.exp(x - _alone(np.maximum.reduce(x, axis=-1, keepdims=True)))
    return exponentials / _alone(np.add.reduce(exponentials, axis=-1, keepdims=True))


def _alone(column: Array) -> Array:
    """A number for each row; that of one row alone with rank 0, which NumPy takes in a third of the time."""
    return column.reshape(()) if column.size == 1 else column


def rows_of(constant: Array, shape: tuple[int, ...]) -> Array:
    """A number for each column, or one for all, repeated for a few rows: arrays of one shape take a third of the time.

    What does not fit, or would be large, stays as it is.
    """
    fits = len(shape) == 2 and constant.ndim == 1 and len(constant) in (1, shape[1]) and math.prod(shape) <= _FEW
    return np.broadcast_to(constant, shape).copy() if fits else constant


_FEW = 1 << 11


def _softmax_zero(x: Array) -> Array:
    """Softmax of the scores that are not 0; those stay (nearly) 0, or NaN where there are no others."""
    top = np.fmax.reduce(x, axis=-1, keepdims=True)
    live = np.abs(x) > 1e-7
    values = np.where(live, np.exp(x - top), x * np.exp(-top))
    return values / np.where(live, values, 0).sum(axis=-1, keepdims=True)


def probit(x: Array) -> Array:
    """√2 · erf⁻¹(2x − 1), by Winitzki's approximation as in ONNX Runtime."""
    y = 2 * x - 1
    log = np.log((1 - y) * (1 + y))
    v = 2 / (np.pi * 0.147) + 0.5 * log
    return np.sqrt(2) * np.sign(y) * np.sqrt(-v + np.sqrt(v * v - log / 0.147))


_TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x,
    "SOFTMAX": _softmax,
    "LOGISTIC": logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": probit,
}


def post_transform(scores: Array, name: str) -> Array:
    """Scores [N, classes] after the transform of that name; as in ONNX Runtime, a score alone knows PROBIT only.

    Raises:
        ValueError: no transform has that name.
    """
    if name not in _TRANSFORMS:
        raise ValueError(f"post_transform is {name!r}: expected one of {', '.join(_TRANSFORMS)}")
    if name == "NONE" or (scores.shape[-1] == 1 and name != "PROBIT"):
        return scores
    return _TRANSFORMS[name](scores.astype(np.float32, copy=False))


def features(x: Array) -> Array:
    """[N, F] of [N, F] or [F], as float32 unless double."""
    if x.ndim == 2 and x.dtype == np.float32:  # the most frequent case
        return x
    matrix = x.reshape(1, -1) if x.ndim < 2 else x.reshape(len(x), math.prod(x.shape[1:]))
    return matrix if matrix.dtype == np.float64 else matrix.astype(np.float32, copy=False)


def winner(scores: Array) -> Array:
    """[N]: the column of the first largest score; NaN is passed over unless it comes first, as by a loop with >."""
    if not np.count_nonzero(scores != scores):  # no NaN, which is quicker to find out so
        return scores.argmax(axis=1)
    unknown = np.isnan(scores)
    return np.where(unknown[:, 0], 0, np.where(unknown, -np.inf, scores).argmax(axis=1))


def labels(texts: Sequence[str] | None, numbers: Sequence[int] | None) -> Array:
    """Class labels as an array: of str, or int64."""
    return strings(list(texts), (len(texts),)) if texts else np.asarray(numbers or (), np.int64)


@kernel("Scaler", domain=DOMAIN, bound=True)
def scaler(offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)) -> Callable[[Array], Array]:
    """(X − offset) · scale, for all features or each."""
    numbers = np.asarray(offset, np.float32), np.asarray(scale, np.float32)

    @lru_cache(4)
    def fitted(shape: tuple[int, ...]) -> tuple[Array, Array]:
        return rows_of(numbers[0], shape), rows_of(numbers[1], shape)

    def scale_rows(x: Array) -> Array:
        shift, factor = fitted(x.shape)
        return ((x - shift) * factor).astype(np.float32, copy=False)

    return scale_rows


_NORMS: dict[str, Callable[[Array], Array]] = {
    "MAX": partial(np.fmax.reduce, axis=-1, keepdims=True, initial=np.finfo(np.float32).min),
    "L1": lambda x: np.add.reduce(np.abs(x), axis=-1, keepdims=True),
    "L2": lambda x: np.sqrt(np.add.reduce(np.square(x), axis=-1, keepdims=True)),
}


@kernel("Normalizer", domain=DOMAIN, bound=True)
def normalizer(norm: str = "MAX") -> Callable[[Array], Array]:
    """Every row divided by its maximum, sum of magnitudes or Euclidean length; not where that is 0.

    NaN does not count as the maximum.
    """
    if norm not in _NORMS:
        raise ValueError(f"norm is {norm!r}: expected MAX, L1 or L2")
    length = _NORMS[norm]

    def normalize(x: Array) -> Array:
        wide = x.astype(np.float32, copy=False)
        size = _alone(length(wide))
        if np.count_nonzero(size) < size.size:
            np.copyto(size, _ONE, where=np.equal(size, _ZERO))
        return np.divide(wide, size)

    return normalize


@kernel("Binarizer", domain=DOMAIN)
def binarizer(x: Array, threshold: float = 0.0) -> Array:
    """1 where X > threshold, else 0."""
    return (x > threshold).astype(x.dtype)


@kernel("Imputer", domain=DOMAIN, bound=True)
def imputer(
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Callable[[Array], Array]:
    """X with one value (which may be NaN) replaced, by one other or by one for each feature."""
    of_nan = replaced_value_float != replaced_value_float

    @cache
    def replacing(dtype: np.dtype[Any]) -> tuple[Any, Array]:
        if dtype.kind == "f":
            return dtype.type(replaced_value_float), np.asarray(imputed_value_floats, dtype)
        return replaced_value_int64, np.asarray(imputed_value_int64s, dtype)

    def impute(x: Array) -> Array:
        old, new = replacing(x.dtype)
        return np.where(x != x if of_nan and x.dtype.kind == "f" else x == old, for_features(new, x.shape), x)

    return impute


def for_features(new: Array, shape: Sequence[int]) -> Array:
    """The value for each feature, or for all; only the first of a list that has another length than the features."""
    return new if shape and len(shape) <= 2 and len(new) == shape[-1] else new[:1]


@kernel("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(*inputs: Array, inputdimensions: Sequence[int] | None = None) -> Array:
    """Inputs [N, F] side by side as float32; each is cut or zero-padded to its entry of inputdimensions."""
    columns = []
    for number, x in enumerate(inputs):
        matrix = features(x)
        width = inputdimensions[number] if inputdimensions else matrix.shape[1]
        column = np.zeros((len(matrix), width), np.float32)
        used = min(width, matrix.shape[1])
        column[:, :used] = matrix[:, :used]
        columns.append(column)
    return np.concatenate(columns, axis=1)


_NAN = ("NaN",)  # the key of NaN, which is not equal to itself


def _mapping(table: Mapping[Hashable, Any], default: Any, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """A function that looks every element up; NaN is a key like any other."""
    from_array, has_nan, is_text = _dense(table, default, dtype), _NAN in table, dtype.kind == "O"
    held = table if is_text else _packed(table, dtype)
    missing = default if is_text else np.array(default, dtype).tobytes()
    get, nan, otherwise = held.get, held.get(_NAN, missing), repeat(missing)

    def mapped(x: Array) -> Array:
        if from_array is not None and x.size > _ONE_BY_ONE and x.dtype == np.int64:
            return from_array(x)
        keys = (x if x.ndim == 1 else x.ravel()).tolist()
        values: Iterable[Any] = map(get, keys, otherwise)
        if has_nan and x.dtype.kind == "f":
            values = [nan if key != key else value for key, value in zip(keys, values, strict=False)]
        if not is_text:
            return np.ndarray(x.shape, dtype, bytearray().join(values))
        result: Array = np.fromiter(values, dtype, len(keys))
        return result if x.ndim == 1 else result.reshape(x.shape)

    return mapped


def _packed(table: Mapping[Hashable, Any], dtype: np.dtype[Any]) -> dict[Hashable, bytes]:
    """The values as bytes: joined, they are an array sooner than numbers of Python."""
    memory, size = np.array([*table.values()], dtype).tobytes(), dtype.itemsize
    return {key: memory[place * size : (place + 1) * size] for place, key in enumerate(table)}


_ONE_BY_ONE = 16  # elements up to which looking each up takes less time than calls on arrays
_SPARSE = 8  # entries of an array for each key, at most
_LARGEST_KEY = 1 << 40


def _dense(table: Mapping[Hashable, Any], default: Any, dtype: np.dtype[Any]) -> Callable[[Array], Array] | None:
    """A function that looks int64 up in an array; None where the keys are no integers close to each other."""
    keys = [key for key in table if type(key) is int and abs(key) < _LARGEST_KEY]
    low, count = min(keys, default=0), max(keys, default=0) - min(keys, default=0) + 1
    if not keys or len(keys) < len(table) or count > _SPARSE * len(keys):
        return None
    values = np.fromiter((table.get(key, default) for key in range(low, low + count + 1)), dtype, count + 1)
    # what is below the first key is a large number without its sign; the entry behind all keys is the default
    return lambda x: values.take(np.minimum((x - low).view(np.uint64), count).view(np.int64))


def _table(keys: Sequence[Any], values: Sequence[Any]) -> dict[Hashable, Any]:
    """The values by key; of a key that is listed twice, the first."""
    pairs = list(zip(keys, values, strict=True))[::-1]
    return {_NAN if isinstance(key, float) and key != key else key: value for key, value in pairs}


_TEXTS, _NUMBERS, _FLOATS = map(np.dtype, (object, np.int64, np.float32))


def _either(to_texts: Callable[[Array], Array], to_numbers: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Numbers to strings, and what are no numbers to numbers."""
    return lambda x: (to_texts if x.dtype.kind in "iu" else to_numbers)(x)


@kernel("CategoryMapper", domain=DOMAIN, bound=True)
def category_mapper(
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Callable[[Array], Array]:
    """Strings to their integers, or integers to their strings."""
    pairs = [*zip(cats_int64s, cats_strings, strict=True)]
    to_texts: dict[Hashable, str] = dict(pairs)
    to_numbers: dict[Hashable, int] = {text: number for number, text in pairs}
    return _either(_mapping(to_texts, default_string, _TEXTS), _mapping(to_numbers, default_int64, _NUMBERS))


@kernel("LabelEncoder", since=4, domain=DOMAIN, bound=True)
def label_encoder(**attributes: Any) -> Callable[[Array], Array]:
    """Every element replaced by the value of its key, or by the default of the values' type."""
    return _mapping(*encoding(**attributes))


def encoding(
    default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Array | None = None, keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None, keys_strings: Sequence[str] | None = None,
    keys_tensor: Array | None = None, values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None, values_strings: Sequence[str] | None = None,
    values_tensor: Array | None = None,
) -> tuple[dict[Hashable, Any], Any, np.dtype[Any]]:  # fmt: skip
    """The values by key, the default and the type of a LabelEncoder with these attributes."""
    keys: Sequence[Any] = ()
    if keys_tensor is not None:
        keys = keys_tensor.reshape(-1).tolist()
    elif keys_floats is not None:
        keys = np.asarray(keys_floats, np.float32).tolist()
    else:
        keys = keys_int64s or keys_strings or ()
    if values_tensor is not None:
        dtype, values = values_tensor.dtype, values_tensor.reshape(-1).tolist()
        kind = "s" if dtype.kind == "O" else dtype.kind
        default = {"s": "_Unused", "i": -1, "f": -0.0}.get(kind, 0)
    elif values_strings is not None:
        dtype, values, default = np.dtype(object), list(values_strings), default_string
    elif values_floats is not None:
        dtype, values, default = np.dtype(np.float32), list(values_floats), default_float
    else:
        dtype, values, default = np.dtype(np.int64), list(values_int64s or ()), default_int64
    if default_tensor is not None:
        default = default_tensor.reshape(-1).tolist()[0]
    return _table(keys, values), default, dtype


@kernel("LabelEncoder", since=2, domain=DOMAIN, bound=True)
def label_encoder_2(keys_floats: Sequence[float] | None = None, **attributes: Any) -> Callable[[Array], Array]:
    """LabelEncoder as from version 4 on, but NaN is no key."""
    if keys_floats is not None:
        places = [place for place, key in enumerate(keys_floats) if key == key]
        keys_floats = [keys_floats[place] for place in places]
        for name in ("values_floats", "values_int64s", "values_strings"):
            if attributes.get(name) is not None:
                attributes[name] = [attributes[name][place] for place in places]
    return label_encoder(keys_floats=keys_floats, **attributes)


@kernel("LabelEncoder", since=1, domain=DOMAIN, bound=True)
def label_encoder_1(
    classes_strings: Sequence[str], default_int64: int = -1, default_string: str = "_Unused"
) -> Callable[[Array], Array]:
    """Strings to their place in the list, or places to strings."""
    return category_mapper(range(len(classes_strings)), classes_strings, default_int64, default_string)


@kernel("OneHotEncoder", domain=DOMAIN, bound=True)
def one_hot_encoder(
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Callable[[Array], Array]:
    """float32 with a new last axis: 1 at the category's place, zeros for an unknown one unless that is an error."""
    categories: Sequence[Hashable] = cats_int64s or cats_strings or ()
    count = len(categories)
    places = {category: place for place, category in enumerate(categories)}  # of one that is listed twice, the last
    rows = {category: np.eye(1, count, place, np.float32).tobytes() for category, place in places.items()
            if count <= _FEW}  # fmt: skip
    unknown = bytes(4 * count) if zeros else None

    def encode(x: Array) -> Array:
        values = x
        if cats_int64s and x.dtype != np.int64:
            with np.errstate(all="ignore"):
                values = x.astype(np.int64)
        items = values.ravel().tolist()
        if rows:
            try:
                memory = bytearray().join(map(rows.get, items, repeat(unknown)))  # type: ignore[arg-type]
            except TypeError:
                raise ValueError(_NO_CATEGORY) from None
            return np.ndarray((*x.shape, count), _FLOATS, memory)  # in half of the time of frombuffer
        columns = [*map(places.get, items, repeat(count))]
        if not zeros and count in columns:
            raise ValueError(_NO_CATEGORY)
        hot = np.zeros((len(columns), count + 1), np.float32)  # the last column is for unknown categories
        hot[range(len(columns)), columns] = 1
        return np.ascontiguousarray(hot[:, :count]).reshape(*x.shape, count)

    return encode


_FEW = 64  # categories whose rows are kept
_NO_CATEGORY = "X holds a category that is in no list, and zeros=0 forbids it"


def _written(value: Any) -> str:
    """A number with six decimals, as in ONNX Runtime."""
    return value if isinstance(value, str) else f"{value:f}"


@kernel("CastMap", domain=DOMAIN)
def cast_map(x: Mapping[int, Any], cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1) -> Array:
    """[1, C]: a map's values in the order of its keys, or at them (SPARSE, C = max_map)."""
    dtype: Any = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}[cast_to]
    converters: dict[str, Callable[[Any], Any]] = {"TO_FLOAT": float, "TO_INT64": int, "TO_STRING": _written}
    convert = converters[cast_to]
    if map_form == "DENSE":
        items = [convert(x[key]) for key in sorted(x)]
    else:
        items = [convert(x[key]) if key in x else ("0.f" if cast_to == "TO_STRING" else 0) for key in range(max_map)]
    result = np.empty((1, len(items)), dtype)
    result[0] = items
    return result


@kernel("DictVectorizer", domain=DOMAIN)
def dict_vectorizer(
    x: Mapping[Any, Any],
    int64_vocabulary: Sequence[int] | None = None,
    string_vocabulary: Sequence[str] | None = None,
) -> Array:
    """[1, C]: a map's values in the order of a vocabulary, 0 for missing ones."""
    vocabulary: Sequence[Any] = int64_vocabulary or string_vocabulary or ()
    first = next(iter(x.values()), 0.0)
    sample = np.asarray(np.float32(first) if type(first) is float else first)  # maps of ZipMap hold Python floats
    if sample.dtype.kind in "US" or sample.dtype == object:
        return strings([str(x.get(key, "")) for key in vocabulary], (1, len(vocabulary)))
    return np.array([[x.get(key, 0) for key in vocabulary]], sample.dtype)


@kernel("ZipMap", domain=DOMAIN, bound=True)
def zip_map(
    classlabels_int64s: Sequence[int] | None = None, classlabels_strings: Sequence[str] | None = None
) -> Callable[[Array], list[dict[Any, float]]]:
    """A map {label: score} for every row."""
    keys: Sequence[Any] = classlabels_strings or classlabels_int64s or ()
    count, maps_of = len(keys), _maps(keys)

    def zipped(x: Array) -> list[dict[Any, float]]:
        matrix = x.reshape(1, -1) if x.ndim == 1 else x
        if count != matrix.shape[1]:
            raise ValueError(f"X has shape {x.shape}: {count} class labels need as many columns")
        return maps_of(matrix.tolist())

    return zipped


def _maps(keys: Sequence[Any]) -> Callable[[list[list[float]]], list[dict[Any, float]]]:
    """A function that gives each row a map; two and three classes, which are the most frequent, in half of the time."""
    if len(keys) == 2:
        first, second = keys
        return lambda rows: [{first: a, second: b} for a, b in rows]
    if len(keys) == 3:
        first, second, third = keys
        return lambda rows: [{first: a, second: b, third: c} for a, b, c in rows]
    return lambda rows: [*map(dict, map(zip, repeat(keys), rows))]


@kernel("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(x: Array, y: Array) -> Array:
    """The elements of the last axis that Y names."""
    indices = y.reshape(-1)
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    return np.take(rows, indices, axis=-1)


# -- shape rules -------------------------------------------------------------------------------------------------------


def row_count(ctx: InferContext, x: Fact) -> Dim:
    """Number of samples: of a matrix its first dim, of a single vector one."""
    if x.shape is None:
        return ctx.symbol(0, 0)
    return x.shape[0] if len(x.shape) > 1 else 1


@rule("Scaler", domain=DOMAIN)
@rule("Normalizer", domain=DOMAIN)
def scaler_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape in float32."""
    return TensorFact(dtypes.FLOAT, x.shape)


@rule("Imputer", domain=DOMAIN)
def imputer_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's type and shape."""
    return x.bare


@rule("Binarizer", domain=DOMAIN)
def binarizer_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's type and shape."""
    return x.bare


def classes_of(attributes: Attributes) -> tuple[int, int]:
    """(element type of labels, number of classes) of a classifier."""
    for name, elem in (("classlabels_strings", dtypes.STRING), ("classlabels_int64s", dtypes.INT64)):
        if attributes.get(name):
            return elem, len(attributes[name])
    if attributes.get("classlabels_ints"):
        return dtypes.INT64, len(attributes["classlabels_ints"])
    return dtypes.INT64, 0


@rule("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor_rule(ctx: InferContext, attributes: Attributes, x: Fact, indices: Fact) -> Fact:
    """The last axis reduced to the chosen columns."""
    if x.shape is None:
        return like(x, None)
    count: Dim = ctx.symbol(0, len(x.shape) - 1)
    if indices.shape:
        count = 1
        for dim in indices.shape:
            count = count * dim
    return like(x, (1, count) if len(x.shape) == 1 else (*x.shape[:-1], count))


@rule("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer_rule(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """Columns of all inputs side by side."""
    rows: Dim | None = None
    for fact in inputs:
        if fact.shape is not None and len(fact.shape) == 2:
            rows = fact.shape[0] if rows is None else same(rows, fact.shape[0])
    total = sum(attributes.get("inputdimensions") or ())
    return TensorFact(dtypes.FLOAT, (ctx.symbol(0, 0) if rows is None else rows, total or ctx.symbol(0, 1)))


@rule("LabelEncoder", domain=DOMAIN)
def label_encoder_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape in the type of the values."""
    kinds = (
        ("values_strings", dtypes.STRING),
        ("values_int64s", dtypes.INT64),
        ("values_floats", dtypes.FLOAT),
    )
    for name, elem in kinds:
        if attributes.get(name):
            return TensorFact(elem, x.shape)
    tensor = attributes.get("values_tensor")
    if tensor is not None:
        return TensorFact(tensor.data_type, x.shape)
    is_string = isinstance(x, TensorFact) and x.elem_type == dtypes.STRING
    return TensorFact(dtypes.INT64 if is_string else dtypes.STRING, x.shape)


@rule("LabelEncoder", since=4, domain=DOMAIN)
def label_encoder_4_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape in the type of the values: of one list of keys and one as long of values."""
    key, count = _only_list(attributes, "keys")
    value, others = _only_list(attributes, "values")
    if isinstance(x, TensorFact) and x.elem_type and x.elem_type != key:
        raise FactError(
            f"it reads {dtypes.name(x.elem_type)}, its keys are {dtypes.name(key)}", code="type-mismatch",
            expected=dtypes.name(key), found=dtypes.name(x.elem_type),
        )  # fmt: skip
    same_length("values", others, "keys", count)
    return TensorFact(value, x.shape)


_LISTS = {"strings": dtypes.STRING, "int64s": dtypes.INT64, "floats": dtypes.FLOAT, "tensor": 0}


def _only_list(attributes: Attributes, side: str) -> tuple[int, int]:
    """(element type, length) of the one attribute that lists keys or values. Raises FactError where it is not one."""
    names = [f"{side}_{suffix}" for suffix in _LISTS]
    present = [name for name in names if attributes.get(name) is not None]
    if len(present) != 1:
        listed = ", ".join(present) or "none"
        raise FactError(f"it has {len(present)} lists of {side}", code="bad-attribute",
                        expected=f"one of {', '.join(names)}", found=listed)  # fmt: skip
    entries = attributes[present[0]]
    elem = _LISTS[present[0].removeprefix(f"{side}_")] or entries.data_type
    return elem, length_of(entries)


def length_of(entries: Any) -> int:
    """The entries of a list, or of a tensor, that an attribute has."""
    from onnx import TensorProto  # the registry is used without onnx

    return int(np.prod(entries.dims, dtype=object)) if isinstance(entries, TensorProto) else len(entries)


def check_transform(attributes: Attributes, code: str = "bad-attribute") -> None:
    """Raise FactError for a post_transform that no operator knows."""
    name = attributes.get("post_transform")
    if name is not None and name not in _TRANSFORMS:
        raise FactError(f"attribute post_transform is {name!r}", code=code, found=repr(name),
                        expected=f"one of {', '.join(_TRANSFORMS)}")  # fmt: skip


def same_length(name: str, count: int, other: str, expected: int) -> None:
    """Raise FactError where two lists that belong together are not of one length."""
    if count != expected:
        text = f"it has {count} {name} and {expected} {other}"
        raise FactError(text, code="bad-attribute", expected=str(expected), found=str(count))


@rule("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape with a column for each category at the end."""
    count = len(attributes.get("cats_int64s") or attributes.get("cats_strings") or ())
    return TensorFact(dtypes.FLOAT, None if x.shape is None else (*x.shape, count))


@rule("ZipMap", domain=DOMAIN)
def zip_map_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A map from label to score for each row."""
    key = dtypes.STRING if attributes.get("classlabels_strings") else dtypes.INT64
    return SequenceFact(MapFact(key, TensorFact(dtypes.FLOAT, ())))


def _feature_extractor_bytes(attributes: Mapping[str, Any], x: Any, y: Any) -> int:
    return int(x.size // max(1, x.shape[-1]) * y.size * x.itemsize)


# -- traits ------------------------------------------------------------------------------------------------------------


def _one_hot_encoder_bytes(attributes: Mapping[str, Any], x: Any) -> int:
    categories = attributes.get("cats_int64s") or attributes.get("cats_strings") or ()
    return int(x.size * len(categories) * 4)


traits("Binarizer FeatureVectorizer", OpTraits(category="elementwise", shape="shapes", flops=1), "ai.onnx.ml")
traits(
    "CategoryMapper Imputer",
    OpTraits(category="elementwise", shape="shapes", flops=1, quiet=True, fresh=True),
    "ai.onnx.ml",
)
traits("CastMap DictVectorizer", OpTraits(category="sequence", shape="other", flops=1), "ai.onnx.ml")
traits("LabelEncoder", OpTraits(category="text", shape="shapes", flops=1, quiet=True, fresh=True), "ai.onnx.ml")
traits("Normalizer Scaler", OpTraits(category="normalization", shape="shapes", flops=1), "ai.onnx.ml")
traits(
    "OneHotEncoder",
    OpTraits(category="elementwise", shape="shapes", flops=1, out_bytes=_one_hot_encoder_bytes, quiet=True, fresh=True),
    "ai.onnx.ml",
)
traits("ZipMap", OpTraits(category="sequence", shape="other", flops=1, quiet=True, fresh=True), "ai.onnx.ml")
traits(
    "ArrayFeatureExtractor",
    OpTraits(category="elementwise", shape="shapes", flops=1, out_bytes=_feature_extractor_bytes),
    DOMAIN,
)
