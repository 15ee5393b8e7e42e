"""Models of scikit-learn, XGBoost and LightGBM, converted by skl2onnx and onnxmltools, agree with ONNX Runtime."""

import numpy as np
import pytest

from tests.ops.support.random_ml import check_everywhere

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the converters' and libraries' own
]


def problem(classes, rows=90):
    """(X, y) of float32 features on a grid, so that some values fall on a split."""
    rng = np.random.default_rng(classes)
    x = np.round(rng.standard_normal((rows, 5)), 1).astype(np.float32)
    if not classes:
        return x, (x @ [1, -2, 0.5, 0, 1] + rng.standard_normal(rows) / 5).astype(np.float32)
    return x, (np.abs(x @ [1, -2, 0.5, 0.3, 1]) * 1.5).astype(int) % classes


def scikit(name):
    from sklearn import ensemble, linear_model, naive_bayes, neural_network, pipeline, preprocessing, svm, tree

    constructors = {
        "svc": lambda: svm.SVC(), "svc probable": lambda: svm.SVC(probability=True),
        "svc poly": lambda: svm.SVC(kernel="poly", degree=2), "svc sigmoid": lambda: svm.SVC(kernel="sigmoid"),
        "nu svc": lambda: svm.NuSVC(nu=0.1, probability=True), "linear svc": lambda: svm.LinearSVC(),
        "logistic": lambda: linear_model.LogisticRegression(), "tree": lambda: tree.DecisionTreeClassifier(max_depth=5),
        "forest": lambda: ensemble.RandomForestClassifier(6, max_depth=4),
        "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=4),
        "bayes": lambda: naive_bayes.GaussianNB(), "network": lambda: neural_network.MLPClassifier((8,), max_iter=50),
        "scaled": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), preprocessing.Normalizer("l1"),
                                                 svm.SVC(probability=True)),
        "svr": lambda: svm.SVR(), "one class": lambda: svm.OneClassSVM(), "ridge": lambda: linear_model.Ridge(),
        "tree of numbers": lambda: tree.DecisionTreeRegressor(max_depth=5),
        "forest of numbers": lambda: ensemble.RandomForestRegressor(6, max_depth=4),
        "boosting of numbers": lambda: ensemble.GradientBoostingRegressor(n_estimators=4),
    }  # fmt: skip
    return constructors[name]()


def check_scikit(estimator, x, y):
    from skl2onnx import to_onnx

    estimator.fit(x, y)
    maps = hasattr(estimator, "classes_") and type(estimator).__name__ != "LinearSVC"
    options = {"zipmap": False} if maps else None
    check_everywhere(to_onnx(estimator, x[:1], options=options).SerializeToString(), {"X": x})


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["svc", "svc probable", "svc poly", "svc sigmoid", "nu svc", "linear svc", "logistic",
                                  "tree", "forest", "boosting", "bayes", "network", "scaled"])  # fmt: skip
@pytest.mark.slow
def test_classifiers_of_scikit_learn(name, classes, words):
    x, y = problem(classes)
    check_scikit(scikit(name), x, np.array(["no", "yes", "perhaps"])[y] if words else y * 3 + 4)


@pytest.mark.parametrize("name", ["svr", "one class", "ridge", "tree of numbers", "forest of numbers",
                                  "boosting of numbers"])  # fmt: skip
def test_regressors_of_scikit_learn(name):
    check_scikit(scikit(name), *problem(0))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_boosted_trees(library, classes):
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, y = problem(classes)
    options = {"initial_types": [("x", FloatTensorType([None, x.shape[1]]))], "target_opset": 15}
    if library == "xgboost":
        import xgboost

        kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        model = onnxmltools.convert_xgboost(kind(n_estimators=4, max_depth=3).fit(x, y), **options)
    else:
        import lightgbm

        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        fitted = kind(n_estimators=4, max_depth=3, verbose=-1).fit(x, y)
        model = onnxmltools.convert_lightgbm(fitted, zipmap=False, **options)
    x = x.copy()
    x[::3, 0] = np.nan
    check_everywhere(model.SerializeToString(), {"x": x})
