"""Texts whose n-grams are counted at once: what NumPy node by node and ONNX Runtime make, odd texts included."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab import ops, schemas
from onnxlab.errors import LimitError
from onnxlab.ops.onnx.tensor.ngrams import GramTree
from tests.support.oracle import new_session

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"
WORDS = ["a", "b", "graph", "Node", "#", "", "é", "𝒳", "İ", "ß", "unknown", "x_1", "-1"]
SPACES = [" ", "  ", ",", "\t", "\u00a0", "\n"]


def texts(rng, count, spaces=SPACES):
    """Texts of words, some of them empty, between what may be delimiters."""
    pieces = [[rng.choice(WORDS) + rng.choice(spaces) for _ in range(rng.integers(0, 9))] for _ in range(count)]
    return np.array(["".join(parts) for parts in pieces], object)


def node(op_type, domain="", outputs=1, **attributes):
    return op_type, domain, outputs, attributes


def grams(rng, pool, **attributes):
    """A TfIdfVectorizer with n-grams of one to three items of a pool."""
    lengths = [(item,) for item in pool]
    pairs = [tuple(rng.choice(len(pool), 2)) for _ in range(6)]
    triples = [tuple(rng.choice(len(pool), 3)) for _ in range(4)]
    pairs, triples = ([*dict.fromkeys(tuple(pool[i] for i in gram) for gram in some)] for some in (pairs, triples))
    every = [*lengths, *pairs, *triples]
    least = int(rng.integers(1, 4))
    name = "pool_strings" if isinstance(pool[0], str) else "pool_int64s"
    order = rng.permutation(len(every)).tolist()
    return node(
        "TfIdfVectorizer", mode=str(rng.choice(["TF", "IDF", "TFIDF"])), min_gram_length=least,
        max_gram_length=int(rng.integers(least, 4)), max_skip_count=int(rng.integers(0, 3)),
        ngram_counts=[0, len(lengths), len(lengths) + 2 * len(pairs)], ngram_indexes=order,
        weights=rng.uniform(0.5, 2, len(every)).astype(np.float32).tolist(),
        **{name: [item for gram in every for item in gram]} | attributes,
    )  # fmt: skip


def model_of(chain, shape=("n",), seen=(), functions=()):
    """A chain of nodes from "x" to "y"; values between them that are `seen` are outputs too."""
    nodes, name, kinds = [], "x", {"y": TensorProto.FLOAT}
    for number, (op_type, domain, outputs, attributes) in enumerate(chain):
        output = "y" if number == len(chain) - 1 else f"v{number}"
        kinds[output] = TensorProto.INT64 if op_type == "LabelEncoder" else kinds.get(output, TensorProto.STRING)
        names = [output, *(f"{output}_{other}" for other in range(1, outputs))]
        nodes.append(helper.make_node(op_type, [name], names, domain=domain, **attributes))
        name = output
    listed = [helper.make_tensor_value_info(name, kinds[name], None) for name in ("y", *seen)]
    graph = helper.make_graph(nodes, "texts", [helper.make_tensor_value_info("x", TensorProto.STRING, shape)], listed)
    imports = [helper.make_opsetid("", 20), helper.make_opsetid(ML, 3), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions)


def chain_of(rng):
    """A random chain, and the pool's items."""
    chain = []
    if rng.integers(2):
        chain.append(node("StringNormalizer", case_change_action=str(rng.choice(["LOWER", "UPPER", "NONE"])),
                          is_case_sensitive=int(rng.integers(2)), locale="C"))  # fmt: skip
    if rng.integers(2):
        limit = {"maxsplit": 2} if rng.integers(4) == 0 else {}
        chain.append(node("StringSplit", outputs=2, delimiter=str(rng.choice(["", " ", ",", "a"])), **limit))
    else:
        how = [{"tokenexp": "[a-zA-Z0-9_]+"}, {"tokenexp": "(a|b)[a-z]*"}, {"separators": [" "]}, {"separators": [""]},
               {"separators": ["[,\\s]", "a"]}][rng.integers(5)]  # fmt: skip
        least = 1 if how.get("separators") == [""] else int(rng.integers(1, 3))  # else ONNX Runtime refuses it
        chain.append(node("Tokenizer", MICROSOFT, mark=int(rng.integers(2)), mincharnum=least,
                          pad_value=str(rng.choice(["#", "~"])), **how))  # fmt: skip
    if rng.integers(2):
        chain.append(node("Flatten"))
    if rng.integers(2):
        keys = [str(word) for word in rng.permutation(WORDS)[:8]]
        values = [int(number) for number in rng.integers(-1, 6, len(keys))]
        chain.append(node("LabelEncoder", ML, keys_strings=keys, values_int64s=values,
                          default_int64=int(rng.integers(-1, 7))))  # fmt: skip
        return [*chain, grams(rng, [0, 1, 2, 3, 5])]
    return [*chain, grams(rng, [str(word) for word in rng.permutation(WORDS)[:6]])]


def fused(ours, **arguments):
    """The operators of the plan, TextCounts where two do the same one after the other."""
    operators = [node.op_type for part in ours.partition(**arguments).parts for node in part.nodes]
    return ["TextCounts", *operators[2:]] if operators[:2] == ["TextBytes", "ByteCounts"] else operators


def onnxruntimes(model, x):
    return new_session(model.SerializeToString(), None).run(None, {"x": x})


@pytest.mark.parametrize("seed", range(60))
def test_counts_are_those_of_the_nodes_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = model_of(chain_of(rng))
    ours, plain = onnxlab.load(model), onnxlab.load(model)
    for count in (1, 5, 40, 2, 1):
        x = texts(rng, count)
        expected = plain.run({"x": x}, exact=True)["y"]
        for _ in range(3):
            np.testing.assert_array_equal(ours.run({"x": x})["y"], expected)
    nothing = np.zeros(0, object)
    assert ours.run({"x": nothing})["y"].shape == plain.run({"x": nothing}, exact=True)["y"].shape


@pytest.mark.parametrize("seed", range(40))
def test_counts_are_those_of_onnxruntime(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    model = model_of(chain_of(rng))
    ours = onnxlab.load(model)
    for count in (1, 7):
        # without a delimiter ONNX Runtime splits at blanks, not, as ONNX says, at white space
        written = [text.encode("ascii", "ignore").decode() for text in texts(rng, count, SPACES[:3])]
        x = np.array([text or "a a" for text in written], object)
        (expected,) = onnxruntimes(model, x)
        for _ in range(3):
            np.testing.assert_allclose(ours.run({"x": x})["y"], expected, 1e-6)


def test_most_chains_are_one_node() -> None:
    plans = [fused(onnxlab.load(model_of(chain_of(np.random.default_rng(seed))))) for seed in range(60)]
    assert sum(plan == ["TextCounts"] for plan in plans) >= 30


def chain(**attributes):
    tokens = node("Tokenizer", MICROSOFT, mark=0, mincharnum=1, pad_value="#", tokenexp="[a-z]+")
    return [node("StringNormalizer", case_change_action="LOWER", **attributes), tokens,
            grams(np.random.default_rng(0), ["a", "b", "graph"])]  # fmt: skip


def test_the_words_are_made_where_they_are_asked_for() -> None:
    x = np.array(["a b Graph", "b"], object)
    ours = onnxlab.load(model_of(chain()))
    for _ in range(3):
        ours.run({"x": x})
    assert fused(ours) == ["TextCounts"]
    assert ours.values["v1"].tolist() == [["a", "b", "graph"], ["b", "#", "#"]]
    assert ours.values["v0"].tolist() == ["a b graph", "b"]
    assert ours.run({"x": x}, outputs=["v1"])["v1"].shape == (2, 3)
    both = onnxlab.load(model_of(chain(), seen=["v1"]))
    assert "TextCounts" not in fused(both)
    assert both.run({"x": x})["v1"].tolist() == ours.values["v1"].tolist()
    fed = ours.run({"v1": np.array([["graph", "graph"]], object)})["y"]
    assert fed.shape[0] == 1
    np.testing.assert_array_equal(fed, both.run({"x": np.array(["graph graph"], object)})["y"])


def changed(number, **attributes):
    nodes = chain()
    op_type, domain, outputs, settings = nodes[number]
    nodes[number] = op_type, domain, outputs, settings | attributes
    return nodes


@pytest.mark.parametrize(
    "nodes", [
        chain(stopwords=["a"]),  # the number of words depends on them
        changed(1, tokenexp="("),
        chain()[::2],  # nothing makes words
    ], ids=["stop words", "expression", "no words"],
)  # fmt: skip
def test_what_does_not_go_together_stays(nodes) -> None:
    ours = onnxlab.load(model_of(nodes))
    assert "TextCounts" not in fused(ours)


def test_a_matrix_of_texts_stays() -> None:
    tokens = node("Tokenizer", MICROSOFT, mark=0, mincharnum=1, pad_value="#", tokenexp="[a-z]+")
    words = [tokens, node("Flatten"), grams(np.random.default_rng(0), ["a", "b", "graph"])]
    ours = onnxlab.load(model_of(words, shape=("n", 2)))
    assert "TextCounts" not in fused(ours)
    x = np.array([["a b", "b"], ["graph", "a"]], object)
    np.testing.assert_array_equal(ours.run({"x": x})["y"], ours.run({"x": x}, exact=True)["y"])


def test_operators_of_others_stay() -> None:
    """A function of the model, and a kernel that was registered, are no Tokenizer as we know it."""
    body = [helper.make_node("Unsqueeze", ["x", "axis"], ["y"])]
    constant = helper.make_node("Constant", [], ["axis"], value_ints=[1])
    attributes = ["mark", "mincharnum", "pad_value", "tokenexp"]
    function = helper.make_function(MICROSOFT, "Tokenizer", ["x"], ["y"], [constant, *body],
                                    [helper.make_opsetid("", 20)], attributes)  # fmt: skip
    assert "TextCounts" not in fused(onnxlab.load(model_of(chain(), functions=[function])))
    schema = schemas.find(MICROSOFT, "Tokenizer", 1)
    assert schema is not None
    ours = onnxlab.load(model_of(chain()))
    assert fused(ours) == ["TextCounts"]
    ops.register(onnx.defs.OpSchema(
        "Tokenizer", MICROSOFT, 1, inputs=[onnx.defs.OpSchema.FormalParameter("x", "T")],
        outputs=[onnx.defs.OpSchema.FormalParameter("y", "T")], type_constraints=[("T", ["tensor(string)"], "")],
        attributes=[onnx.defs.OpSchema.Attribute(name, kind, "", required=False) for name, kind in (
            ("mark", onnx.defs.OpSchema.AttrType.INT), ("mincharnum", onnx.defs.OpSchema.AttrType.INT),
            ("pad_value", onnx.defs.OpSchema.AttrType.STRING), ("tokenexp", onnx.defs.OpSchema.AttrType.STRING))],
    ), kernel=lambda x, **attributes: np.full((len(x), 1), "graph", object))  # fmt: skip
    try:
        assert "TextCounts" not in fused(ours)
    finally:
        ops.unregister(MICROSOFT, "Tokenizer")


def test_an_edit_of_the_words_counts() -> None:
    ours, x = onnxlab.load(model_of(chain())), np.array(["a;b a"], object)
    before = ours.run({"x": x})["y"]
    ours.nodes["StringNormalizer#0"].attributes["case_change_action"] = "UPPER"
    after = ours.run({"x": x})["y"]
    assert before.any()
    assert not after.any()
    ours.undo()
    np.testing.assert_array_equal(ours.run({"x": x})["y"], before)


def test_a_large_pool_is_read_once_whatever_else_is_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"w{number}" for number in range(40_000)]
    counts = node("TfIdfVectorizer", mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
                  ngram_counts=[0], ngram_indexes=[*range(len(words))], pool_strings=words)  # fmt: skip
    ours, x = onnxlab.load(model_of([*chain()[:1], changed(1, tokenexp="[a-z0-9]+")[1], counts])), ["W7 w39999 w7 zzz"]
    builds = []
    original = GramTree.__init__

    def counting(self, *arguments):
        builds.append(1)
        original(self, *arguments)

    monkeypatch.setattr(GramTree, "__init__", counting)
    for case in ("LOWER", "UPPER", "LOWER"):
        ours.nodes["StringNormalizer#0"].attributes["case_change_action"] = case
        result = ours.run({"x": np.array(x, object)})["y"][0]
        assert np.flatnonzero(result).tolist() == ([7, 39_999] if case == "LOWER" else [])
    assert fused(ours) == ["TextCounts"]
    assert builds == [1]


def test_a_large_result_is_refused_by_its_size() -> None:
    count = len(chain()[2][3]["ngram_indexes"])
    model = model_of(changed(2, ngram_indexes=[*range(10**6, 10**6 + count)]))
    ours = onnxlab.load(model)
    with pytest.raises(LimitError):
        ours.run({"x": np.array(["a"] * 300, object)}, limits=onnxlab.Limits(bytes=1 << 28))
