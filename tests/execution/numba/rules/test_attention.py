"""Attention: the operators and the pattern, against NumPy and ONNX Runtime."""

import numpy as np
import onnx
import pytest

from onnxlab.errors import RunError
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Recipe, assert_close, check


def heads(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def fusions(model, feeds):
    """The names of the fusions that a region of a model has."""
    both = Both(model)
    both.run(feeds)
    (region,) = both.regions()
    assert not region.reason
    return [step.fusion.name for step in region._fused if hasattr(step, "fusion")]


def decomposed(rng, shape, keys, scale="Mul", mask=None, guarded=False, opset=21):
    """Attention as exporters write it, of x [B, S, H·D] and what it looks at."""
    batch, count, _, depth = shape
    recipe = Recipe(opset)
    feeds = {"q": heads(rng, *shape)} | {name: heads(rng, batch, count, keys, depth) for name in "kv"}
    q, k, v = (recipe.input(name, array) for name, array in feeds.items())
    scores = recipe.node("MatMul", q, recipe.node("Transpose", k, perm=[0, 1, 3, 2]))
    if scale:
        factor = depth ** (-0.5 if scale == "Mul" else 0.5)
        scores = recipe.node(scale, scores, recipe.constant(np.float32(factor)))
    if mask is not None:
        feeds["mask"] = mask
        scores = recipe.node("Add", recipe.input("mask", mask), scores)
    weights = recipe.node("Softmax", scores, axis=-1)
    if guarded:
        weights = recipe.node("Where", recipe.node("IsNaN", weights), recipe.constant(np.float32(0)), weights)
    y = recipe.node("Transpose", recipe.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    return recipe.model(recipe.node("Reshape", y, recipe.constant(np.array([0, 0, -1])))), feeds


@pytest.mark.parametrize(("shape", "keys", "scale"), [
    ((1, 1, 1, 1), 1, "Mul"), ((2, 3, 5, 17), 33, "Div"), ((1, 2, 7, 33), 5, ""), ((3, 1, 50, 8), 31, "Mul"),
    ((1, 2, 3, 4), 9000, "Div"),
])  # fmt: skip
def test_the_pattern_is_one_step(shape, keys, scale):
    model, feeds = decomposed(np.random.default_rng(0), shape, keys, scale)
    assert fusions(model, feeds) == ["attention"]
    check(model, feeds, 1e-5)


@pytest.mark.parametrize("mask", [(2, 1, 1, 19), (1, 3, 9, 19), (9, 19), (2, 3, 9, 1)])
@pytest.mark.parametrize("guarded", [False, True])
def test_masks_broadcast_and_rows_may_be_empty(mask, guarded):
    rng = np.random.default_rng(1)
    numbers = np.where(rng.random(mask) < 0.4, -np.inf, rng.standard_normal(mask)).astype(np.float32)
    model, feeds = decomposed(rng, (2, 3, 9, 16), 19, mask=numbers, guarded=guarded)
    assert fusions(model, feeds) == ["attention"]
    check(model, feeds, 1e-5)


def test_what_is_not_finite_spreads_as_in_numpy():
    rng = np.random.default_rng(2)
    for place, value in (("q", np.nan), ("k", np.inf), ("v", -np.inf), ("v", np.nan)):
        model, feeds = decomposed(rng, (1, 2, 5, 8), 11)
        feeds[place][0, 1, 2, 3] = value
        check(model, feeds, 1e-5)


def test_a_softmax_along_queries_is_left_alone():
    rng = np.random.default_rng(3)
    recipe = Recipe()
    x = heads(rng, 4, 4)
    name = recipe.input("x", x)
    y = recipe.node("MatMul", recipe.node("Softmax", recipe.node("MatMul", name, name), axis=0), name)
    check(recipe.model(y), {"x": x}, 1e-5)


def test_scores_that_another_node_reads_are_made():
    rng = np.random.default_rng(4)
    recipe = Recipe()
    x = heads(rng, 3, 5, 5)
    name = recipe.input("x", x)
    weights = recipe.node("Softmax", recipe.node("MatMul", name, name))
    model = recipe.model(weights, recipe.node("MatMul", weights, name))
    assert fusions(model, {"x": x}) == []
    check(model, {"x": x}, 1e-5)


# -- operators -------------------------------------------------------------------------------------------------------


def build(op_type, feeds, outputs=1, opset=24, domain="", constants=(), **attributes):
    """A model of one node; `feeds` by the names of its inputs in order, "" for absent ones."""
    recipe = Recipe(opset)
    names = []
    for number, (name, array) in enumerate(feeds.items()):
        if array is None:
            names.append("")
        elif number in constants:
            names.append(recipe.constant(array))
        else:
            names.append(recipe.input(name, array))
    outputs_of_node = recipe.nodes_of(op_type, outputs, *names, domain=domain, **attributes)
    inputs = [value.name for value in recipe.inputs]
    return recipe.model(*outputs_of_node), {name: feeds[name] for name in inputs}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize("mask", [None, np.bool_, np.float32])
def test_attention_of_groups(causal, past, mask):
    rng = np.random.default_rng(5)
    feeds = {"Q": heads(rng, 2, 6, 5, 16), "K": heads(rng, 2, 2, 7, 16), "V": heads(rng, 2, 2, 7, 9)}
    total = 7 + past
    chosen = None if mask is None else rng.random((5, total)) < 0.7 if mask is np.bool_ else heads(rng, 2, 1, 5, total)
    feeds["mask"] = chosen
    feeds["past_key"], feeds["past_value"] = (heads(rng, 2, 2, past, size) if past else None for size in (16, 9))
    model, fed = build("Attention", feeds, 3, is_causal=causal, softcap=2.0)
    check(model, fed, 1e-5)


def test_attention_of_merged_heads_with_lengths_and_windows():
    rng = np.random.default_rng(6)
    feeds = {"Q": heads(rng, 2, 5, 24), "K": heads(rng, 2, 9, 12), "V": heads(rng, 2, 9, 12), "mask": None,
             "past_key": None, "past_value": None, "lengths": np.array([5, 8])}  # fmt: skip
    model, fed = build("Attention", feeds, q_num_heads=4, kv_num_heads=2, is_causal=1, scale=0.3)
    check(model, fed, 1e-5)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", [None, (2,), (2, 5), (2, 5, 5)])
def test_attention_of_microsoft(unidirectional, mask, ort_run):
    rng = np.random.default_rng(7)
    feeds = {"x": heads(rng, 2, 5, 12), "w": heads(rng, 12, 36) / 4, "b": heads(rng, 36)}
    feeds["mask"] = None if mask is None else (rng.random(mask) < 0.7).astype(np.int32)
    if mask == (2,):
        feeds["mask"] = np.array([3, 5], np.int32)
    model, fed = build("Attention", feeds, opset=21, domain="com.microsoft", constants=(1, 2), num_heads=3,
                        unidirectional=unidirectional)  # fmt: skip
    results = check(model, fed, 1e-5)
    for name, expected in ort_run(model.SerializeToString(), fed).items():
        assert_close(results[name], expected, 1e-5)


@pytest.mark.parametrize("kind", ["three", "packed", "pairs", "past"])
def test_multi_head_attention(kind, ort_run):
    rng = np.random.default_rng(8)
    feeds = {"q": heads(rng, 2, 5, 12), "k": heads(rng, 2, 7, 12), "v": heads(rng, 2, 7, 12), "b": None, "mask": None,
             "bias": heads(rng, 1, 3, 5, 7)}  # fmt: skip
    if kind == "packed":
        feeds = {"q": heads(rng, 2, 5, 3, 3, 4), "k": None, "v": None}
    elif kind == "pairs":
        feeds = {"q": heads(rng, 2, 5, 12), "k": heads(rng, 2, 7, 3, 2, 4), "v": None}
    elif kind == "past":
        feeds |= {"b": heads(rng, 36), "bias": None, "past_k": heads(rng, 2, 3, 2, 4), "past_v": heads(rng, 2, 3, 2, 4)}
    outputs = 3 if kind == "past" else 1
    model, fed = build("MultiHeadAttention", feeds, outputs, opset=21, domain="com.microsoft", num_heads=3)
    results = check(model, fed, 1e-5)
    if kind in ("three", "past"):  # ONNX Runtime has the others for GPUs only
        for name, expected in ort_run(model.SerializeToString(), fed).items():
            assert_close(results[name], expected, 1e-5)


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("past", [0, 3])
def test_group_query_attention(rotary, interleaved, past, ort_run):
    rng = np.random.default_rng(9)
    steps = 1 if past else 5
    cache = (heads(rng, 2, 2, past, 16) for _ in range(2))
    feeds = {"q": heads(rng, 2, steps, 64), "k": heads(rng, 2, steps, 32), "v": heads(rng, 2, steps, 32)}
    feeds |= dict(zip(("past_k", "past_v"), cache, strict=True)) if past else {"past_k": None, "past_v": None}
    feeds |= {"seqlens": np.full(2, past + steps - 1, np.int32), "total": np.array([past + steps], np.int32)}
    if rotary:
        feeds |= {"cos": np.cos(heads(rng, 16, 8)), "sin": np.sin(heads(rng, 16, 8))}
    model, fed = build("GroupQueryAttention", feeds, 3, opset=21, domain="com.microsoft", num_heads=4, kv_num_heads=2,
                        do_rotary=rotary, rotary_interleaved=interleaved)  # fmt: skip
    results = check(model, fed, 1e-5)
    if past:
        for name, expected in ort_run(model.SerializeToString(), fed).items():
            assert_close(results[name], expected, 1e-5)


@pytest.mark.parametrize("sinks", [None, np.array([0.5, -1.0, 2.0, 0.0], np.float32)])
@pytest.mark.parametrize("steps", [1, 5, 16])  # where keys fill whole vectors, a sink needs a vector of its own
def test_a_sink_takes_a_share_of_each_query(steps, sinks, ort_run):
    rng = np.random.default_rng(14)
    feeds = {"q": heads(rng, 2, steps, 64), "k": heads(rng, 2, steps, 32), "v": heads(rng, 2, steps, 32)}
    feeds |= {"past_k": None, "past_v": None, "seqlens": np.full(2, steps - 1, np.int32)}
    feeds |= {"total": np.array([steps], np.int32), "cos": None, "sin": None, "ids": None, "bias": None, "sinks": sinks}
    model, fed = build("GroupQueryAttention", feeds, 3, opset=21, domain="com.microsoft", num_heads=4, kv_num_heads=2,
                        **({"smooth_softmax": 1} if sinks is None else {}))  # fmt: skip
    results = check(model, fed, 1e-5)
    for name, expected in ort_run(model.SerializeToString(), fed).items():
        assert_close(results[name], expected, 1e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotary_embedding(interleaved, rank):
    rng = np.random.default_rng(10)
    x = heads(rng, 2, 5, 24) if rank == 3 else heads(rng, 2, 3, 5, 8)
    for ids in (None, rng.integers(0, 9, (2, 5))):
        caches = [heads(rng, *((2, 5, 3) if ids is None else (9, 3))) for _ in range(2)]
        feeds = {"x": x, "cos": caches[0], "sin": caches[1], "ids": ids}
        model, fed = build("RotaryEmbedding", feeds, opset=23, num_heads=3, interleaved=interleaved,
                            rotary_embedding_dim=6)  # fmt: skip
        check(model, fed, 1e-6)


@pytest.mark.parametrize("ids", [np.array([3]), np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]])])
def test_rotary_embedding_of_microsoft(ids, ort_run):
    rng = np.random.default_rng(11)
    feeds = {"x": heads(rng, 2, 5, 24), "ids": ids, "cos": heads(rng, 9, 4), "sin": heads(rng, 9, 4)}
    model, fed = build("RotaryEmbedding", feeds, opset=21, domain="com.microsoft", constants=(2, 3))
    results = check(model, fed, 1e-6)
    for name, expected in ort_run(model.SerializeToString(), fed).items():
        assert_close(results[name], expected, 1e-6)


def test_tokens_one_by_one_stay_compiled_and_values_that_always_change_do_not():
    rng = np.random.default_rng(12)

    def step(past, seen):
        cache = {name: heads(rng, 1, 1, past, 4) for name in ("past_k", "past_v")}
        feeds = {name: heads(rng, 1, 1, 4) for name in "qkv"} | cache
        return feeds | {"seqlens": np.array([seen], np.int32), "total": np.array([past + 1], np.int32)}

    recipe = Recipe(21)
    open_dims = [1, 1, "past", 4]
    names = [recipe.input(name, array, open_dims if "past" in name else None) for name, array in step(3, 3).items()]
    options = {"domain": "com.microsoft", "num_heads": 1, "kv_num_heads": 1}
    both = Both(recipe.model(*recipe.nodes_of("GroupQueryAttention", 3, *names, **options)))
    for past in range(1, 100):
        feeds = step(past, past)
        both.hot.run(feeds, keep=False)
    (region,) = both.regions()
    assert not region.reason
    ours, theirs = both.run(feeds)
    for name, expected in theirs.items():
        assert_close(ours[name], expected, 1e-5)
    for seen in range(70):
        both.hot.run(step(99, seen), keep=False)
    assert (
        type(plans_of(region)[region._key([step(99, 69)[name] for name in region.part.inputs])]).__name__
        == "NodeFallback"
    )


@pytest.mark.parametrize(("operator", "attributes"), [
    ("Attention", {"q_num_heads": 2, "kv_num_heads": 2}),
    ("MultiHeadAttention", {"num_heads": 2, "domain": "com.microsoft"}),
])  # fmt: skip
def test_a_score_overflows_before_it_is_scaled(operator, attributes, ort_run):
    """The product overflows as in ONNX Runtime: 3e38 times 2 is infinite, 3e36 times 2 would not be."""
    rng = np.random.default_rng(3)
    feeds = {name: heads(rng, 1, 4, 16) for name in "qkv"}
    feeds["q"][0, 1, 0] = 3e38
    feeds["k"][0, 2, 0] = 2
    recipe = Recipe(23)
    names = [recipe.input(name, array) for name, array in feeds.items()]
    model = recipe.model(recipe.node(operator, *names, scale=0.01, **attributes))
    ((name, actual),) = check(model, feeds, 1e-5).items()
    assert np.isnan(actual[0, 1, :8]).all()
    assert_close(actual, ort_run(model.SerializeToString(), feeds)[name], 1e-5)


@pytest.mark.parametrize("other", ["past_key", "past_value"])
@pytest.mark.parametrize("shape", [(2, 4, 5, 8), (3, 3, 5, 8), (2, 3, 5, 16), (2, 2, 5, 8)])
def test_a_past_of_other_sizes_is_refused_and_writes_nowhere(other, shape):
    rng = np.random.default_rng(0)
    feeds = {"Q": heads(rng, 2, 3, 4, 8)} | {name: heads(rng, 2, 3, 6, 8) for name in "KV"}
    feeds |= {name: heads(rng, *(shape if name == other else (2, 3, 5, 8))) for name in ("past_key", "past_value")}
    shapes = [f"float{list(array.shape)} {name}" for name, array in feeds.items() if name != other]
    text = f"""<ir_version: 11, opset_import: ["" : 23]>
    g ({", ".join(shapes)}, float[a, b, c, d] {other}) => (y, present_key, present_value) {{
        y, present_key, present_value = Attention (Q, K, V, , past_key, past_value)
    }}"""
    both = Both(onnx.parser.parse_model(text))
    with pytest.raises(RunError):
        both.run(feeds)
