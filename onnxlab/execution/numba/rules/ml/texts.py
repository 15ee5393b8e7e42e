"""Counts of n-grams in texts, which the kernel splits into words itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.views import Array
from onnxlab.execution.numba.rules.registry import StaticFacts, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.microsoft.text_counts import BYTE_COUNTS, ENCODING, OWN, TextCounter
from onnxlab.ops.onnx.tensor.ngrams import GramTree, width_of

_FIRST_HASH, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(1099511628211)
_MOST = 1 << 24
"""The most words that a float32 counts."""
_SKIP = 16
"""The most items that are skipped: the kernel cannot be stopped."""


class _Tables(NamedTuple):
    """Tables that the kernel reads besides texts, and the words of its record that are numbers."""

    slots: Array
    letters: Array
    tree: Array
    classes: Array
    delimiter: Array
    weights: Array | None
    words: Mapping[str, Word]


def _hashes(words: list[bytes], letters: Array, starts: Array) -> Array:
    """The hash of each word."""
    lengths = np.array([*map(len, words)], np.int64)
    codes = np.full(len(words), _FIRST_HASH)
    for place in range(int(lengths.max(initial=0))):
        (longer,) = np.nonzero(lengths > place)
        codes[longer] = (codes[longer] ^ letters[starts[longer] + place]) * _FACTOR
    return codes


def _slots(numbers: Mapping[bytes, int]) -> tuple[Array, Array]:
    """The hash table of words, and their letters."""
    words = [*numbers]
    letters = np.frombuffer(b"".join(words) or b"\0", np.uint8)
    starts = np.cumsum([0, *map(len, words)], dtype=np.int64)
    mask = (2 << len(words).bit_length()) - 1
    codes = _hashes(words, letters, starts)
    occupied, places = bytearray(mask + 1), list[int]()
    for place in ((codes ^ (codes >> np.uint64(32))) & np.uint64(mask)).tolist():
        while occupied[place]:
            place = (place + 1) & mask
        occupied[place] = 1
        places.append(place)
    slots = np.full((mask + 1, 4), -1, np.int64)
    slots[places] = np.stack([codes.view(np.int64), [*numbers.values()], starts[:-1], np.diff(starts)], 1)
    return slots, letters


def _tree(tree: GramTree, most: int) -> Array:
    """The levels of a tree, one behind the other; in front, where each begins."""
    levels = tree.levels[:most]
    parts = [np.zeros(4 * len(levels), np.int64)]
    size = parts[0].size
    for number, level in enumerate(levels):
        keys = np.zeros(0, np.int64) if level.keys is None else level.keys[:-1]
        begins = [size, size + keys.size, size + keys.size + level.nodes.size]
        parts[0][4 * number : 4 * number + 4] = len(keys), *begins
        parts += [keys, level.nodes, level.columns]
        size = begins[-1] + level.columns.size
    return np.concatenate(parts, dtype=np.int64)


def _tables(attributes: Mapping[str, Any]) -> _Tables:
    """The tables of a BYTE_COUNTS."""
    settings = {name: attributes[name] for name in attributes if "." in name}
    texts = TextCounter(attributes["stages"], settings)
    counter, expression = texts.counter, attributes["expression"]
    shortest, longest, skip = texts.lengths
    tree, delimiter = counter.tree, attributes["delimiter"].encode(*ENCODING)
    numbers = {word.encode(*ENCODING): number for word, number in texts.numbers.items() if number != texts.otherwise}
    slots, letters = _slots(numbers)
    beyond = not expression.startswith("[")  # letters that are not ASCII's
    inside = [bool(re.fullmatch(expression, chr(code))) if code < 128 else beyond for code in range(256)]
    words: dict[str, Word] = {
        "delimiter_bytes": len(delimiter), "least": attributes["least"], "mask": len(slots) - 1,
        "single": int(attributes["single"]),
        "otherwise": texts.otherwise, "filler": texts.numbers.get(texts.filling, texts.otherwise),
        "unknown": tree.unknown, "levels": len(tree.levels[:longest]), "shortest": shortest, "skip": skip,
        "width": counter.width, "once": int(counter.once),
    }  # fmt: skip
    return _Tables(slots, letters, _tree(tree, longest), np.array(inside, np.uint8),
                   np.frombuffer(delimiter or b"\0", np.uint8), counter.weight, words)  # fmt: skip


def _accept(node: NodeView, view: StaticFacts) -> str:
    attributes = node.attributes
    indexes = attributes["TfIdfVectorizer.ngram_indexes"]
    if not remembered(width_of, indexes) or min(indexes) < 0:
        return "no n-gram is counted, or one in no column"
    skip = attributes["TfIdfVectorizer.max_skip_count"]
    return f"{skip} items are skipped" if not 0 <= skip <= _SKIP else ""


@rule(BYTE_COUNTS, domain=OWN, accept=_accept, weight=8, reads=(1,))
def byte_counts(binder: Binder, node: NodeView) -> None:
    """Lower ByteCounts."""
    tables = remembered(_tables, node.attributes)
    memory, ends = (binder.view(name) for name in node.inputs)
    if memory.size > _MOST:
        raise UnbindableError(f"{memory.size} bytes of text")
    (rows,), keep, words = ends.shape, binder.builder.keep, tables.words
    width, levels = words["width"], words["levels"]
    assert isinstance(width, int)
    assert isinstance(levels, int)
    y = binder.allocate(node.outputs[0], (rows, width), np.float32)
    numbers = binder.builder.allocate((memory.size + rows,), np.int32)
    counts = binder.builder.allocate((rows,), np.int64)
    values: dict[str, Word] = {
        **words, "texts": memory.where, "ends": ends.where, "rows": rows, "numbers": numbers.where,
        "counts": counts.where, "y": y.where, "slots": keep(tables.slots), "letters": keep(tables.letters),
        "tree": keep(tables.tree), "classes": keep(tables.classes), "delimiter": keep(tables.delimiter),
        "weights": 0 if tables.weights is None else keep(tables.weights),
    }  # fmt: skip
    work = memory.size * (1.5 + 2 * levels) + rows * width * 0.5
    binder.builder.emit("text_counts", 1, values, [memory, ends], [y, numbers, counts], work=work)
    binder.put(node.outputs[0], y)
