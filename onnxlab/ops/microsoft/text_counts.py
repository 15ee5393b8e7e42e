"""Counts of n-grams in texts: TfIdfVectorizer and the nodes that make words for it, at once, without arrays of words.

The nodes are, in this order, StringNormalizer (or none), StringSplit or Tokenizer, and Flatten or LabelEncoder (or
neither, or both). A text is a row of what they make; the rest of the row is filled as they fill it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.base.registry import find_kernel, kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.microsoft.general import token_lists
from onnxlab.ops.ml import features
from onnxlab.ops.onnx.tensor.ngrams import GramCounter, GramTree, width_of
from onnxlab.ops.onnx.tensor.string import case_change, filled, splitter, texts

OWN, TEXT_COUNTS = "onnxlab", "TextCounts"
"""Domain and name of the operator that does what such nodes do: no model has it, runs do."""

_LAST = "TfIdfVectorizer"
_ORDER = {
    ("", "StringNormalizer"): 0,
    ("", "StringSplit"): 1,
    (DOMAIN, "Tokenizer"): 1,
    ("", "Flatten"): 2,
    (features.DOMAIN, "LabelEncoder"): 2,
    ("", _LAST): 3,
}
_PLAIN = (str, int, float, Sequence)

Stages = dict[str, Mapping[str, Any]]


_replaced: WeakKeyDictionary[Any, tuple[list[Any], Any]] = WeakKeyDictionary()
"""{node that counts: (nodes before it, what is in place of all, or None)}: after other edits it is as it was."""


def counted(
    nodes: Sequence[Any], reads: Callable[[Any], Iterable[str]], seen: Collection[str],
    functions: Collection[tuple[str, str]], is_texts: Callable[[str], bool],
    make: Callable[[Any, str, dict[str, Any]], Any],
) -> dict[Any, Any]:  # fmt: skip
    """{node that counts n-grams: the node in place of it and those before it}.

    Args:
        reads: names of the values that a node reads.
        seen: names of values that others ask for.
        functions: operators of the model itself, with any names.
        is_texts: whether a value is a vector of strings.
        make: makes a TEXT_COUNTS in place of a node, from the texts and attributes.
    """
    last = [node for node in nodes if (node.domain, node.op_type) == ("", _LAST) and ("", _LAST) not in functions]
    if not last:
        return {}
    makers = {name: node for node in nodes if (node.domain, node.op_type) not in functions for name in node.outputs}
    readers = Counter([name for node in nodes for name in reads(node)] + 2 * [*seen])
    for node in last:
        before = _before(node, makers, readers)
        if _replaced.get(node, (None,))[0] != before:
            attributes = _attributes([node, *before])
            _replaced[node] = before, None if attributes is None else make(node, before[-1].inputs[0], attributes)
    replaced = {node: _replaced[node] for node in last}
    return {node: new for node, (before, new) in replaced.items() if new is not None and is_texts(before[-1].inputs[0])}


def _before(last: Any, makers: Mapping[str, Any], readers: Mapping[str, int]) -> list[Any]:
    """The nodes that make words for a node that counts, the nearest first."""
    nodes = [last]
    while (
        _is_plain(first := nodes[-1]) and first.inputs and readers[first.inputs[0]] == 1 and first.inputs[0] in makers
    ):
        node, place = makers[first.inputs[0]], _place(first)
        if _place(node) > place or _place(node) == place != 2 or node.op_type in [other.op_type for other in nodes]:
            break
        if not _is_plain(node) or node.outputs[0] != first.inputs[0] or any(readers[name] for name in node.outputs[1:]):
            break
        nodes.append(node)
    return nodes[1:]


def _attributes(nodes: Sequence[Any]) -> dict[str, Any] | None:
    """The attributes of TEXT_COUNTS for nodes, the last first; None where they do not go together."""
    stages: Stages = {node.op_type: dict(node.attributes) for node in reversed(nodes)}
    if not _go_together(stages):
        return None
    attributes = {f"{op_type}.{name}": value for op_type, listed in stages.items() for name, value in listed.items()}
    return {"stages": [*stages]} | attributes


def _place(node: Any) -> int:
    return _ORDER.get((node.domain, node.op_type), len(_ORDER))


def _is_plain(node: Any) -> bool:
    """Whether a node is what its operator's name says, and its attributes are numbers and strings."""
    known = find_kernel(node.domain, node.op_type, node.since_version)
    return known is not None and not known.custom and all(isinstance(item, _PLAIN) for item in node.attributes.values())


def _go_together(stages: Stages) -> bool:
    """Whether nodes make words and count them, and all of them would run one by one."""
    grams, encoder, normalizer = (stages.get(name) for name in (_LAST, "LabelEncoder", "StringNormalizer"))
    if grams is None or not {"Tokenizer", "StringSplit"} & {*stages} or stages.get("Flatten", {}).get("axis", 1) != 1:
        return False
    try:
        if normalizer is not None:
            case_change(normalizer.get("case_change_action", "NONE"))
        _lists(stages)
        _filling(stages)
        if encoder is not None:
            _check_numbers(*features.encoding(**encoder))
    except Exception:  # of faulty nodes, which run one by one and tell
        return False
    of_texts = grams.get("pool_strings") is not None
    return of_texts == (encoder is None) and not (normalizer or {}).get("stopwords")


def _check_numbers(table: Mapping[Any, Any], default: Any, dtype: np.dtype[Any]) -> None:
    if dtype != np.int64 or not all(type(key) is str for key in table):
        raise ValueError("a LabelEncoder that does not number words")


def _lists(stages: Stages) -> Callable[[list[str]], list[list[str]]]:
    """The function that gives the words of each text."""
    if "StringSplit" in stages:
        return splitter(**stages["StringSplit"])
    return token_lists(**{name: value for name, value in stages["Tokenizer"].items() if name != "pad_value"})


def _filling(stages: Stages) -> str:
    """The word that fills rows."""
    word: str = stages["Tokenizer"]["pad_value"] if "Tokenizer" in stages else ""
    return word


@kernel(TEXT_COUNTS, domain=OWN, bound=True)
def text_counts(stages: Sequence[str], **attributes: Any) -> Callable[[Array], Array]:
    """float32 [C, vocabulary] of texts [C]: by the nodes `stages`, whose attributes have their names in front."""
    by_stage: Stages = {stage: {} for stage in stages}
    for name, value in attributes.items():
        stage, _, attribute = name.partition(".")
        by_stage[stage] = {**by_stage[stage], attribute: value}
    grams, encoder, normalizer = by_stage[_LAST], by_stage.get("LabelEncoder"), by_stage.get("StringNormalizer")
    pool = grams.get("pool_strings") or grams.get("pool_int64s") or ()
    settings = (grams["ngram_counts"], grams["ngram_indexes"], grams["mode"], grams.get("weights"))
    counter = remembered(GramCounter, pool, *settings)  # the same after edits of the nodes before it
    lengths = [grams[name] for name in ("min_gram_length", "max_gram_length", "max_skip_count")]
    tree, lists_of = counter.tree, _lists(by_stage)
    change = case_change((normalizer or {}).get("case_change_action", "NONE"))
    (numbers, otherwise), filling = _numbers(encoder, tree), _filling(by_stage)

    def count(x: Array) -> Array:
        if x.ndim != 1:
            raise ValueError(f"X has shape {x.shape}: expected [C]")
        items = texts(x)
        if normalizer is not None:
            items = [*map(change, items)] or [""]
        lists = lists_of(items)
        width, _ = filled(lists, filling)
        words: Iterable[str] = lists[0] if len(lists) == 1 else chain.from_iterable(lists)
        items_of_words = np.fromiter(map(numbers.get, words, repeat(otherwise)), np.intp, len(lists) * width)
        return counter.counted(tree.columns(items_of_words.reshape(len(lists), width), *lengths))

    return count


def _numbers(encoder: Mapping[str, Any] | None, tree: GramTree) -> tuple[Mapping[Any, int], int]:
    """The number of the item of each word in the tree of n-grams, and that of all other words."""
    if encoder is None:
        return tree.items, tree.number(None)
    table, default, _ = features.encoding(**encoder)
    return {word: tree.number(item) for word, item in table.items()}, tree.number(default)


def _bytes(attributes: Mapping[str, Any], x: Any) -> int:
    return max(1, int(x.size)) * remembered(width_of, attributes[f"{_LAST}.ngram_indexes"]) * 4


traits(
    TEXT_COUNTS,
    OpTraits(category="text", shape="shapes", flops=1, out_bytes=_bytes, quiet=True, fresh=True),
    OWN,
)
