"""Shape rules of ai.onnx.ml, where onnx's own say only the type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import like, same
from onnxlab.shapes import Dim, Fact, MapFact, SequenceFact, TensorFact

Attributes = Mapping[str, Any]

DOMAIN = "ai.onnx.ml"


def _rows(ctx: InferContext, x: Fact) -> Dim:
    """Number of samples: of a matrix its first dim, of a single vector one."""
    if x.shape is None:
        return ctx.symbol(0, 0)
    return x.shape[0] if len(x.shape) > 1 else 1


@rule("Scaler", domain=DOMAIN)
@rule("Normalizer", domain=DOMAIN)
def scaler(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape in float32."""
    return TensorFact(dtypes.FLOAT, x.shape)


@rule("Imputer", domain=DOMAIN)
def imputer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's type and shape."""
    return x.bare


@rule("Binarizer", domain=DOMAIN)
def binarizer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's type and shape."""
    return x.bare


def _classes(attributes: Attributes) -> tuple[int, int]:
    """(element type of labels, number of classes) of a classifier."""
    for name, elem in (("classlabels_strings", dtypes.STRING), ("classlabels_int64s", dtypes.INT64)):
        if attributes.get(name):
            return elem, len(attributes[name])
    if attributes.get("classlabels_ints"):
        return dtypes.INT64, len(attributes["classlabels_ints"])
    return dtypes.INT64, 0


@rule("TreeEnsembleClassifier", domain=DOMAIN)
def classifier(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """A label for each row, and a score for each row and class."""
    elem, count = _classes(attributes)
    rows = _rows(ctx, x)
    return TensorFact(elem, (rows,)), TensorFact(dtypes.FLOAT, (rows, count or ctx.symbol(1, 1)))


@rule("LinearClassifier", domain=DOMAIN)
def linear_classifier(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """A label for each row, and a score for each row and intercept, or two for two classes."""
    chosen, scores = classifier(ctx, attributes, x)
    given, labels = len(attributes.get("intercepts") or ()), _classes(attributes)[1]
    if not given or (given == 1 and labels == 2):
        return chosen, scores
    return chosen, TensorFact(dtypes.FLOAT, (_rows(ctx, x), given))


@rule("SVMClassifier", domain=DOMAIN)
def svm_classifier(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """A label for each row, and a score for each row and class, or pair of classes where they are no probabilities."""
    chosen, scores = classifier(ctx, attributes, x)
    machines = len(attributes.get("vectors_per_class") or ())
    if machines <= 2 or attributes.get("prob_a"):
        return chosen, scores
    return chosen, TensorFact(dtypes.FLOAT, (_rows(ctx, x), machines * (machines - 1) // 2))


@rule("TreeEnsembleRegressor", domain=DOMAIN)
@rule("LinearRegressor", domain=DOMAIN)
def regressor(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A number for each row and target."""
    count = attributes.get("n_targets") or attributes.get("targets") or 1
    return TensorFact(dtypes.FLOAT, (_rows(ctx, x), count))


@rule("SVMRegressor", domain=DOMAIN)
def svm_regressor(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A number for each row."""
    return TensorFact(dtypes.FLOAT, (_rows(ctx, x), 1))


@rule("TreeEnsemble", since=5, domain=DOMAIN)
def tree_ensemble(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A number for each row and target, in the input's type."""
    return like(x, (_rows(ctx, x), attributes.get("n_targets") or ctx.symbol(0, 1)))


@rule("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(ctx: InferContext, attributes: Attributes, x: Fact, indices: Fact) -> Fact:
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
def feature_vectorizer(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
    """Columns of all inputs side by side."""
    rows: Dim | None = None
    for fact in inputs:
        if fact.shape is not None and len(fact.shape) == 2:
            rows = fact.shape[0] if rows is None else same(rows, fact.shape[0])
    total = sum(attributes.get("inputdimensions") or ())
    return TensorFact(dtypes.FLOAT, (ctx.symbol(0, 0) if rows is None else rows, total or ctx.symbol(0, 1)))


@rule("LabelEncoder", domain=DOMAIN)
def label_encoder(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
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


@rule("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape with a column for each category at the end."""
    count = len(attributes.get("cats_int64s") or attributes.get("cats_strings") or ())
    return TensorFact(dtypes.FLOAT, None if x.shape is None else (*x.shape, count))


@rule("ZipMap", domain=DOMAIN)
def zip_map(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A map from label to score for each row."""
    key = dtypes.STRING if attributes.get("classlabels_strings") else dtypes.INT64
    return SequenceFact(MapFact(key, TensorFact(dtypes.FLOAT, ())))
