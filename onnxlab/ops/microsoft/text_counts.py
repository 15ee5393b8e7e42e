"""Counts of n-grams in texts: TfIdfVectorizer and the nodes that make words for it, at once, without arrays of words.

The nodes are, in this order, StringNormalizer (or none), StringSplit or Tokenizer, and Flatten or LabelEncoder (or
neither, or both). A text is a row of what they make; the rest of the row is filled as they fill it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from onnxlab import dtypes
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.base.registry import find_kernel, kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.microsoft.general import SPECIAL, token_lists
from onnxlab.ops.ml import features
from onnxlab.ops.onnx.tensor.ngrams import GramCounter, GramTree, width_of
from onnxlab.ops.onnx.tensor.string import case_change, filled, splitter, texts
from onnxlab.shapes import TensorFact, symbol

OWN, TEXT_COUNTS = "onnxlab", "TextCounts"
"""Domain and name of the operator that does what such nodes do: no model has it, runs do."""
TEXT_BYTES, BYTE_COUNTS = "TextBytes", "ByteCounts"
"""The operators that do the same one after the other: the second runs compiled."""

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


_replaced: WeakKeyDictionary[Any, tuple[list[Any], Any, list[Any]]] = WeakKeyDictionary()
"""{node that counts: (nodes before it, TEXT_COUNTS in place of all or None, TEXT_BYTES and BYTE_COUNTS or nothing)}.

After other edits these nodes are as they were.
"""
_FIRST_ID = -1 << 41
"""From here on downward there are ids of added nodes."""


def counted(
    nodes: Sequence[Any], reads: Callable[[Any], Iterable[str]], seen: Collection[str],
    functions: Collection[tuple[str, str]], is_texts: Callable[[str], bool], fixed: Callable[[Any], Any],
    present: Collection[str] | None,
) -> tuple[dict[Any, list[Any]], dict[str, TensorFact]]:  # fmt: skip
    """{node that counts n-grams: nodes in place of it and those before it}; facts of the values between them.

    Args:
        reads: names of the values that a node reads.
        seen: names of values that others ask for.
        functions: operators of the model itself, with any names.
        is_texts: whether a value is a vector of strings.
        fixed: makes attributes of a mapping.
        present: names of the values that there are; None where BYTE_COUNTS would not run compiled.
    """
    last = [node for node in nodes if (node.domain, node.op_type) == ("", _LAST) and ("", _LAST) not in functions]
    replaced: dict[Any, list[Any]] = {}
    facts: dict[str, TensorFact] = {}
    if not last:
        return replaced, facts
    makers = {name: node for node in nodes if (node.domain, node.op_type) not in functions for name in node.outputs}
    readers = Counter([name for node in nodes for name in reads(node)] + 2 * [*seen])
    for node in last:
        before = _before(node, makers, readers)
        if _replaced.get(node, (None,))[0] != before:
            _replaced[node] = before, *_nodes(node, before, fixed)
        _, whole, pair = _replaced[node]
        if whole is not None and is_texts(before[-1].inputs[0]):
            names = pair[0].outputs if pair else ()
            is_free = bool(names) and present is not None and makers.keys().isdisjoint(names)
            is_free = is_free and not any(name in (present or ()) for name in names)
            replaced[node] = pair if is_free else [whole]
            if is_free:
                kinds = zip(pair[0].outputs, (dtypes.UINT8, dtypes.INT64), strict=True)
                facts |= {name: TensorFact(kind, (symbol(name, key=(BYTE_COUNTS, name)),)) for name, kind in kinds}
    return replaced, facts


def _nodes(last: Any, before: Sequence[Any], fixed: Callable[[Any], Any]) -> tuple[Any, list[Any]]:
    """TEXT_COUNTS in place of nodes, and TEXT_BYTES and BYTE_COUNTS; None and nothing where they do not fit."""
    stages: Stages = {node.op_type: dict(node.attributes) for node in reversed((last, *before))}
    if not _go_together(stages):
        return None, []
    attributes: dict[str, Any] = {f"{op_type}.{name}": value for op_type, listed in stages.items()
                                  for name, value in listed.items()}  # fmt: skip
    attributes["stages"], how = [*stages], splitting(stages)
    counts = {"domain": OWN, "since_version": 1}
    first = counts | {"inputs": (before[-1].inputs[0],), "input_ids": (0,)}
    whole = replace(last, **first, op_type=TEXT_COUNTS, attributes=fixed(attributes))
    if how is None:
        return whole, []
    names = tuple([f"{stem} of {last.outputs[0]}" for stem in ("bytes", "ends")])
    normalizer = stages.get("StringNormalizer")
    settings = {"case": "" if normalizer is None else normalizer.get("case_change_action", "NONE"),
                "spaced": int(how.expression == NO_SPACE)}  # fmt: skip
    return whole, [
        replace(last, **first, id=_FIRST_ID - last.id, op_type=TEXT_BYTES, outputs=names, output_ids=(0, 0),
                attributes=fixed(settings)),
        replace(last, **counts, op_type=BYTE_COUNTS, inputs=names, input_ids=(0, 0),
                attributes=fixed(attributes | how._asdict())),
    ]  # fmt: skip


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


class TextCounter:
    """A counter of n-grams, by the nodes `stages`, whose attributes have their names in front.

    Attributes:
        counter: of the n-grams.
        numbers, otherwise: the number of the item of each word in the tree of n-grams, and that of all other words.
        filling: the word that fills rows.
        lengths: items of the shortest and of the longest n-grams, and how many are skipped at the most.
    """

    def __init__(self, stages: Sequence[str], attributes: Mapping[str, Any]) -> None:
        by_stage = _by_stage(stages, attributes)
        grams, encoder, normalizer = by_stage[_LAST], by_stage.get("LabelEncoder"), by_stage.get("StringNormalizer")
        pool = grams.get("pool_strings") or grams.get("pool_int64s") or ()
        settings = (grams["ngram_counts"], grams["ngram_indexes"], grams["mode"], grams.get("weights"))
        # the same after edits of the nodes before it
        self.counter: GramCounter = remembered(GramCounter, pool, *settings)
        self.lengths = [grams[name] for name in ("min_gram_length", "max_gram_length", "max_skip_count")]
        self.numbers, self.otherwise = _numbers(encoder, self.counter.tree)
        self.filling = _filling(by_stage)
        self._lists_of = _lists(by_stage)
        self._change = None if normalizer is None else case_change(normalizer.get("case_change_action", "NONE"))

    def of_texts(self, x: Array) -> Array:
        """float32 [C, vocabulary] of texts [C]."""
        if x.ndim != 1:
            raise ValueError(f"X has shape {x.shape}: expected [C]")
        items = texts(x)
        return self._counted(items if self._change is None else [*map(self._change, items)] or [""])

    def of_bytes(self, memory: Array, ends: Array) -> Array:
        """float32 [C, vocabulary] of what TEXT_BYTES makes."""
        whole, places = memory.tobytes(), ends.tolist()
        pieces = (whole[begin:end] for begin, end in pairwise([0, *places]))
        return self._counted([piece.decode(*ENCODING) for piece in pieces])

    def _counted(self, items: list[str]) -> Array:
        lists = self._lists_of(items)
        width, _ = filled(lists, self.filling)
        words: Iterable[str] = lists[0] if len(lists) == 1 else chain.from_iterable(lists)
        numbers = np.fromiter(map(self.numbers.get, words, repeat(self.otherwise)), np.intp, len(lists) * width)
        columns = self.counter.tree.columns(numbers.reshape(len(lists), width), *self.lengths)
        return self.counter.counted(columns)


def _by_stage(stages: Sequence[str], attributes: Mapping[str, Any]) -> Stages:
    by_stage: Stages = {stage: {} for stage in stages}
    for name, value in attributes.items():
        stage, _, attribute = name.partition(".")
        by_stage[stage] = {**by_stage[stage], attribute: value}
    return by_stage


@kernel(TEXT_COUNTS, domain=OWN, bound=True)
def text_counts(stages: Sequence[str], **attributes: Any) -> Callable[[Array], Array]:
    """float32 [C, vocabulary] of texts [C]: by the nodes `stages`, whose attributes have their names in front."""
    return TextCounter(stages, attributes).of_texts


@kernel(BYTE_COUNTS, domain=OWN, bound=True)
def byte_counts(
    stages: Sequence[str], delimiter: str, expression: str, least: int, single: bool, **attributes: Any
) -> Callable[[Array, Array], Array]:
    """float32 [C, vocabulary] of what TEXT_BYTES makes, as by TEXT_COUNTS.

    The other attributes say how kernels find words, see `Splitting`.
    """
    return TextCounter(stages, attributes).of_bytes


class Splitting(NamedTuple):
    """A way in which words are found in UTF-8.

    Attributes:
        delimiter: what is between words; "" where they are runs of characters that match `expression`.
        least: characters that a word has at least.
        single: whether each such character is a word.
    """

    delimiter: str
    expression: str
    least: int
    single: bool = False


NO_SPACE = r"\S"
_RUNS = re.compile(r"\[(?!\^)(?:\w(?:-\w)?)+\]\+", re.ASCII)
"""An expression of runs of ASCII letters, digits and underscores."""


def splitting(stages: Stages) -> Splitting | None:
    """The way in which the words of texts are found in their UTF-8; None where only Python can tell."""
    split, tokenizer = stages.get("StringSplit"), stages.get("Tokenizer")
    if split is not None:
        delimiter = split.get("delimiter") or ""
        return None if split.get("maxsplit") is not None else Splitting(delimiter, "" if delimiter else NO_SPACE, 0)
    if tokenizer is None or tokenizer.get("mark"):
        return None
    least, expression = max(1, tokenizer.get("mincharnum", 1)), tokenizer.get("tokenexp") or ""
    separators = [*(tokenizer.get("separators") or ())]
    if expression == "." or (not expression and separators == [""]):
        return Splitting("", "." if expression else "(?s:.)", least, single=True)
    if expression:
        return Splitting("", expression[:-1], least) if _RUNS.fullmatch(expression) else None
    is_plain = len(separators) == 1 and separators[0] and not SPECIAL.intersection(separators[0])
    return Splitting(separators[0], "", least) if is_plain else None


ENCODING = "utf-8", "surrogatepass"
_LEAST_BYTES = 256


@kernel(TEXT_BYTES, domain=OWN, bound=True)
def text_bytes(case: str, spaced: int) -> Callable[[Array], tuple[Array, Array]]:
    """(uint8 of all texts [C] in UTF-8, filled up to a power of two so that few sizes come up; int64 ends of each).

    Args:
        case: of StringNormalizer, "" without one.
        spaced: whether words are what stands between white space, so that any may be replaced by blanks.
    """
    change = case_change(case or "NONE")

    def to_bytes(x: Array) -> tuple[Array, Array]:
        if x.ndim != 1:
            raise ValueError(f"X has shape {x.shape}: expected [C]")
        items = texts(x) or ([""] if case else [])
        joined = "".join(items)
        if joined.isascii():
            memory, lengths = change(joined).encode(), map(len, items)
        else:
            changed = map(change, items) if case else items
            pieces = [(" ".join(text.split()) if spaced else text).encode(*ENCODING) for text in changed]
            memory, lengths = b"".join(pieces), map(len, pieces)
        size = max(_LEAST_BYTES, 1 << (len(memory) - 1).bit_length())
        return np.frombuffer(memory.ljust(size, b"\0"), np.uint8), np.fromiter(
            accumulate(lengths), _NUMBERS, len(items)
        )

    return to_bytes


_NUMBERS = np.dtype(np.int64)


def _numbers(encoder: Mapping[str, Any] | None, tree: GramTree) -> tuple[Mapping[Any, int], int]:
    """The number of the item of each word in the tree of n-grams, and that of all other words."""
    if encoder is None:
        return tree.items, tree.number(None)
    table, default, _ = features.encoding(**encoder)
    return {word: tree.number(item) for word, item in table.items()}, tree.number(default)


def _bytes(attributes: Mapping[str, Any], *inputs: Any) -> int:
    return max(1, int(inputs[-1].size)) * remembered(width_of, attributes[f"{_LAST}.ngram_indexes"]) * 4


def _text_bytes(attributes: Mapping[str, Any], x: Any) -> int:
    return 2 * sum(map(len, map(str, x.reshape(-1)))) if x.size >= _MANY else 0


_MANY = 4096
"""Texts whose length is asked for before they are put together."""


traits(
    TEXT_COUNTS,
    OpTraits(category="text", shape="shapes", flops=1, out_bytes=_bytes, quiet=True, fresh=True),
    OWN,
)
traits(
    BYTE_COUNTS,
    OpTraits(category="text", shape="shapes", flops=1, out_bytes=_bytes, quiet=True, fresh=True),
    OWN,
)
traits(TEXT_BYTES, OpTraits(category="text", shape="data", flops=1, out_bytes=_text_bytes, quiet=True, fresh=True), OWN)
