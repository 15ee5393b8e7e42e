"""Texts whose n-grams are counted by the kernel: what NumPy counts, odd texts included."""

import numpy as np
import pytest

import onnxlab
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.ops.microsoft.text_counts import TextCounter, splitting
from tests.execution.planning.test_text_counts import MICROSOFT, ML, chain_of, grams, model_of, node, texts
from tests.support.oracle import new_session

PIECES = [
    "a",
    "b",
    "graph",
    "Node",
    "#",
    "",
    "é",
    "𝒳",
    "İ",
    "ß",
    "x_1",
    "-1",
    "\x00",
    "\ud800",
    "\u3000",
    "\x85",
    "Σ",
    "a" * 70,
]
SPACES = [" ", "  ", ",", ", ", "\t", "\u00a0", "\n", "\x1c", ",,", "ab"]


@pytest.fixture
def compiled(monkeypatch):
    """A function that runs a model by compiled kernels alone: NumPy's for bytes is not there."""

    def missing(*_):
        raise AssertionError("the kernel does not run")

    monkeypatch.setattr(TextCounter, "of_bytes", missing)
    providers = [NumbaProvider(background=False), "numpy"]
    return lambda model, x: model.run({"x": x}, providers=providers)["y"]


def counts(pool, seed=0, **attributes):
    """A node that counts n-grams of a pool, with some attributes of its own."""
    op_type, domain, outputs, others = grams(np.random.default_rng(seed), pool)
    return op_type, domain, outputs, others | {"mode": "TF", "min_gram_length": 1} | attributes


def split_chain(rng):
    """A chain whose words the kernel finds, with any n-grams."""
    while True:
        chain = chain_of(rng)
        if splitting({op_type: attributes for op_type, _, _, attributes in chain}) is not None:
            return chain


@pytest.mark.parametrize("seed", range(80))
def test_counts_are_those_of_numpy(compiled, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = model_of(split_chain(rng))
    ours, plain = onnxlab.load(model), onnxlab.load(model)
    for count in (1, 6, 40, 1, 3):
        drawn = [rng.choice(PIECES if rng.integers(2) else PIECES[:5], rng.integers(0, 12)) for _ in range(count)]
        x = np.array(["".join(piece + rng.choice(SPACES) for piece in pieces) for pieces in drawn], object)
        np.testing.assert_array_equal(compiled(ours, x), plain.run({"x": x}, exact=True)["y"])


@pytest.mark.parametrize("delimiter", ["", " ", ",", ", ", ",,", "é", "aba"])
def test_delimiters(compiled, delimiter: str) -> None:
    pool = ["", "a", "b", ",", "é", "ab", "ba"]
    chain = [node("StringSplit", outputs=2, delimiter=delimiter), counts(pool)]
    ours = onnxlab.load(model_of(chain))
    written = ["", " ", ",", ",,", ",,,", "a, b", " a  b ", "a,,b", "éaéé", "ababab", "abaaba", "a", "\x1fa\x0bb\x85a"]
    for x in ([text] for text in [*written, "".join(written)]):
        x = np.array(x, object)
        np.testing.assert_array_equal(compiled(ours, x), ours.run({"x": x}, exact=True)["y"])
    x = np.array(written, object)
    np.testing.assert_array_equal(compiled(ours, x), ours.run({"x": x}, exact=True)["y"])


def test_words_have_some_characters_not_bytes(compiled) -> None:
    pool = ["é", "éé", "ab", "a", "𝒳"]
    tokens = node("Tokenizer", MICROSOFT, mark=0, mincharnum=2, pad_value="a", separators=[" "])
    ours = onnxlab.load(model_of([tokens, counts(pool)]))
    x = np.array(["é éé ab a 𝒳 𝒳𝒳", "é", "", "ab ab ab"], object)
    expected = ours.run({"x": x}, exact=True)["y"]
    assert expected.any()
    np.testing.assert_array_equal(compiled(ours, x), expected)


@pytest.mark.parametrize("how", [{"tokenexp": "."}, {"separators": [""]}], ids=["any", "all"])
@pytest.mark.parametrize("least", [1, 2])
def test_characters(compiled, how, least: int) -> None:
    pool = ["a", "é", "𝒳", "\n", " ", "\x00", "İ"]
    tokens = node("Tokenizer", MICROSOFT, mark=0, mincharnum=least, pad_value="#", **how)
    ours = onnxlab.load(model_of([tokens, counts(pool)]))
    for items in (["aé𝒳\nab  a", "", "\n\n", "é", "\x00\ud800a", "aaa"], ["ab a"], ["\n"]):
        x = np.array(items, object)
        np.testing.assert_array_equal(compiled(ours, x), ours.run({"x": x}, exact=True)["y"])


def test_a_large_vocabulary_and_long_texts(compiled) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(30_000)]
    pairs = [f"w{number}" for pair in np.unique(rng.integers(0, 200, (5_000, 2)), axis=0) for number in pair]
    pool, count = [*words, *pairs], len(words) + len(pairs) // 2
    grams_of = node("TfIdfVectorizer", mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
                  ngram_counts=[0, len(words)], ngram_indexes=[*range(count)], pool_strings=pool,
                  weights=rng.uniform(0.5, 2, count).astype(np.float32).tolist())  # fmt: skip
    ours = onnxlab.load(model_of([node("StringSplit", outputs=2, delimiter=" "), grams_of]))
    drawn = [" ".join(f"w{number}" for number in rng.integers(0, 300, length)) for length in (2_000, 1, 40)]
    x = np.array(drawn, object)
    (expected,) = new_session(ours.proto.SerializeToString(), None).run(None, {"x": x})
    np.testing.assert_allclose(compiled(ours, x), expected, 1e-6)
    np.testing.assert_array_equal(compiled(ours, x), ours.run({"x": x}, exact=True)["y"])


def test_names_that_a_model_has_are_not_used_again(compiled) -> None:
    """Values of the model may be called as the values between the two nodes would be."""
    rng = np.random.default_rng(3)
    chain = [node("StringSplit", outputs=2, delimiter=" "), counts(["a", "b", "graph"])]
    model = model_of(chain)
    model.graph.node.add(op_type="Identity", input=["y"], output=["bytes of y"])
    ours, x = onnxlab.load(model), texts(rng, 4)
    expected = ours.run({"x": x}, exact=True)["y"]
    np.testing.assert_array_equal(compiled(ours, x), expected)
    assert ours.run({"x": x}, outputs=["bytes of y"])["bytes of y"].shape == expected.shape


def test_other_objects_than_strings_and_no_texts(compiled) -> None:
    chain = [node("StringNormalizer", case_change_action="UPPER"), node("StringSplit", outputs=2, delimiter=" "),
             node("LabelEncoder", ML, keys_strings=["A", "5"], values_int64s=[0, 1], default_int64=-1),
             counts([0, 1, 2])]  # fmt: skip
    ours = onnxlab.load(model_of(chain))

    class Text(str):
        """A subclass of str."""

    for items in ([5, "a"], [Text("a 5"), "a"], []):
        x = np.array(items, object)
        expected = onnxlab.load(model_of(chain)).run({"x": x}, exact=True)["y"]
        np.testing.assert_array_equal(compiled(ours, x), expected)


def run(chain, items):
    """Results of kernels, and of NumPy node by node: y, or the type of the error."""
    ours = onnxlab.load(model_of(chain))
    results = []
    for arguments in ({"providers": [NumbaProvider(background=False), "numpy"]}, {"exact": True}):
        try:
            results.append(ours.run({"x": np.array(items, object)}, strict=False, **arguments)["y"])
        except onnxlab.errors.OnnxlabError as error:
            results.append(type(error))
    return results


@pytest.mark.parametrize(
    "changes",
    [
        {"ngram_indexes": [-1, 0, 1]}, {"ngram_indexes": [0, 0, 0]}, {"max_skip_count": 1 << 40},
        {"max_skip_count": -3},
        {"min_gram_length": 5}, {"max_gram_length": 0}, {"max_gram_length": -1}, {"weights": [np.inf, -np.inf, np.nan]},
        {"ngram_indexes": [7, 100, 3]}, {"ngram_counts": [0, 0]}, {"ngram_counts": [2, 0]}, {"ngram_counts": [0, 3]},
    ],
    ids=lambda changes: "-".join(f"{name}={value}" for name, value in changes.items()),
)  # fmt: skip
def test_odd_settings(changes) -> None:
    """Nothing is written beyond a row, and refused is what NumPy refuses."""
    settings = {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0],
                "ngram_indexes": [0, 1, 2], "pool_strings": ["a", "b", "c"], "weights": [1.0, 2.0, 3.0]}  # fmt: skip
    chain = [node("StringSplit", outputs=2, delimiter=" "), node("TfIdfVectorizer", **settings | changes)]
    for items in (["a b c a"], ["a", "c b a b", ""]):
        ours, expected = run(chain, items)
        if isinstance(expected, type):
            assert isinstance(ours, type)
        else:
            np.testing.assert_array_equal(ours, expected)


def test_texts_that_are_longer_than_a_float_counts() -> None:
    pool = ["a", "b"]
    chain = [node("StringSplit", outputs=2, delimiter=" "), counts(pool, max_gram_length=1, max_skip_count=0)]
    ours, expected = run(chain, ["a b " * (9 << 19)])
    np.testing.assert_array_equal(ours, expected)
    assert expected.max() > 1 << 22


def test_texts_with_a_say_of_their_own(compiled) -> None:
    class Text(str):
        """A string that prints as another one."""

        def __str__(self) -> str:
            return "b b"

    ours = onnxlab.load(model_of([node("StringSplit", outputs=2, delimiter=" "), counts(["é", "b"])]))
    x = np.array([Text("é é"), "b"], object)
    np.testing.assert_array_equal(compiled(ours, x), ours.run({"x": x}, exact=True)["y"])
