"""Pipelines of scikit-learn, converted by skl2onnx as its users do, with the ZipMap that it puts at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]
Case = tuple[onnx.ModelProto, Feeds]
_ML = "ai.onnx.ml"


def _converted(pipeline: Any, columns: int, rows: int = 1) -> Case:
    """A pipeline that was fitted, converted, with some rows for it."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType

    kind = [("X", FloatTensorType([None, columns]))]
    model = convert_sklearn(pipeline, initial_types=kind, target_opset={"": 18, _ML: 3})
    return model, {"X": np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)}


def _samples(classes: int, columns: int = 12, rows: int = 240) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns))
    return x, (x @ rng.standard_normal((columns, classes))).argmax(axis=1)


def _fitted(estimator: Any, classes: int = 3, rows: int = 1) -> Case:
    """An estimator behind a scaler, fitted."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = _samples(classes)
    return _converted(make_pipeline(StandardScaler(), estimator).fit(x, y), x.shape[1], rows)


def svm_pipeline(rows: int = 1) -> Case:
    """A scaler and a support vector machine with probabilities."""
    from sklearn.svm import SVC

    return _fitted(SVC(probability=True, random_state=0), rows=rows)


def svm_regression() -> Case:
    """A scaler and a support vector regression."""
    from sklearn.svm import SVR

    return _fitted(SVR())


def linear_pipeline() -> Case:
    """Scaler, principal components, a logistic regression."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return _fitted(make_pipeline(PCA(6), LogisticRegression()))


def normalized_ridge() -> Case:
    """A row's norm and a linear regression."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    return _fitted(make_pipeline(Normalizer(), Ridge()), rows=8)


def forest_pipeline(rows: int = 1) -> Case:
    """A scaler and a random forest."""
    from sklearn.ensemble import RandomForestClassifier

    return _fitted(RandomForestClassifier(50, max_depth=6, random_state=0), rows=rows)


def boosted_pipeline() -> Case:
    """A scaler and gradient boosting."""
    from sklearn.ensemble import GradientBoostingRegressor

    return _fitted(GradientBoostingRegressor(n_estimators=60, random_state=0), rows=8)


def neighbors_pipeline() -> Case:
    """A scaler and the vote of the five nearest neighbors."""
    from sklearn.neighbors import KNeighborsClassifier

    return _fitted(KNeighborsClassifier(), rows=4)


def perceptron_pipeline() -> Case:
    """A scaler and a perceptron of two layers."""
    from sklearn.neural_network import MLPClassifier

    return _fitted(MLPClassifier((32, 16), max_iter=60, random_state=0))


def bayes_pipeline() -> Case:
    """A scaler and Gaussian naive Bayes."""
    from sklearn.naive_bayes import GaussianNB

    return _fitted(GaussianNB())


def columns_pipeline() -> Case:
    """Columns of numbers, scaled and imputed, beside columns of strings, one-hot, and a logistic regression."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    x, y = _samples(2, 4)
    table = np.empty((len(x), 6), object)
    table[:, :4] = x
    words = np.array(["red", "green", "blue", "yellow"], object)
    table[:, 4:] = words[np.random.default_rng(2).integers(0, 4, (len(x), 2))]
    transformer = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2, 3]),
                                     ("words", OneHotEncoder(handle_unknown="ignore"), [4, 5])])  # fmt: skip
    pipeline = make_pipeline(transformer, LogisticRegression()).fit(table, y)
    kinds = [("numbers", FloatTensorType([None, 4])), ("words", StringTensorType([None, 2]))]
    model = convert_sklearn(pipeline, initial_types=kinds, target_opset={"": 18, _ML: 3})
    rows = np.random.default_rng(1).integers(0, 240, 4)
    return model, {"numbers": x[rows].astype(np.float32), "words": table[rows, 4:]}


PIPELINES: tuple[Callable[[], Case], ...] = (
    svm_pipeline,
    svm_regression,
    linear_pipeline,
    normalized_ridge,
    forest_pipeline,
    boosted_pipeline,
    neighbors_pipeline,
    perceptron_pipeline,
    bayes_pipeline,
    columns_pipeline,
)
"""Each makes a model and its feeds."""
