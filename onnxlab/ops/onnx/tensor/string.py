"""Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer. Elements are Python str."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise, repeat
from operator import add
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.estimates import broadcast
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Fact, TensorFact


def strings(items: Sequence[str], shape: Sequence[int]) -> Array:
    """An object array of this shape."""
    result = np.array(items, object)
    return result if len(shape) == 1 else result.reshape(shape)


def texts(x: Array) -> list[str]:
    """The elements as a flat list; what is no string becomes one."""
    items: list[str] = (x if x.ndim == 1 else x.reshape(-1)).tolist()
    return items if _STRINGS.issuperset(map(type, items)) else [*map(str, items)]


_STRINGS = frozenset((str,))


@kernel("StringConcat", since=20)
def string_concat(x: Array, y: Array) -> Array:
    """X + Y, elementwise; the shapes broadcast."""
    if x.shape == y.shape:
        return strings([*map(add, texts(x), texts(y))], x.shape)
    if y.ndim == 0:  # a suffix
        return strings([*map(add, texts(x), repeat(str(y[()])))], x.shape)
    left, right = np.broadcast_arrays(x, y)
    return strings([*map(add, texts(left), texts(right))], left.shape)


@kernel("StringSplit", since=20)
def string_split(x: Array, delimiter: str = "", maxsplit: int | None = None) -> tuple[Array, Array]:
    """(parts of every string in a new last axis, "" behind the last; int64 numbers of parts).

    Without a delimiter, strings are split at runs of white space.
    """
    most = -1 if maxsplit is None else maxsplit
    separator = delimiter or None
    parts = [text.split(separator, most) if text else [] for text in texts(x)]
    lengths = [*map(len, parts)]
    width = max(lengths, default=0)
    for part, length in zip(parts, lengths, strict=True):
        if length < width:
            part += [""] * (width - length)
    counts = np.array(lengths, np.int64)
    return strings([*chain.from_iterable(parts)], (*x.shape, width)), counts.reshape(x.shape)


@kernel("RegexFullMatch", since=20)
def regex_full_match(x: Array, pattern: str) -> Array:
    """Whether the whole of every string matches a pattern in RE2's syntax, in time that grows with the string alone.

    Raises:
        ValueError: the pattern is no regular expression.
    """
    matches, known = _compiled(pattern)
    items = texts(x)
    answers = [*map(known.get, items)]
    if None in answers:
        answers = [matches(text) if answer is None else answer for text, answer in zip(items, answers, strict=True)]
    matched = np.array(answers, bool)
    return matched if x.ndim == 1 else matched.reshape(x.shape)


_SHORT, _MOST = 64, 4096
"""The most characters of a text whose answer is remembered, and the most answers."""


@lru_cache
def _compiled(pattern: str) -> tuple[Callable[[str], bool], Mapping[str, bool]]:
    """A function that tells whether a text matches, and its answers so far."""
    try:
        import re2
    except ImportError:  # as in a browser: Python's own may never end, except with the page
        return _whole(_by(re.compile, re.error, pattern))
    options = re2.Options()
    options.log_errors = False
    return _whole(_by(lambda text: re2.compile(text, options), re2.error, pattern))


def _by(compiler: Callable[[str], Any], refusal: type[Exception], pattern: str) -> Callable[[str], Any]:
    """A function that matches the whole of a string. Raises ValueError where the compiler refuses the pattern."""
    try:
        matches: Callable[[str], Any] = compiler(pattern).fullmatch
    except (refusal, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"pattern {pattern!r} is no regular expression: {text}") from None
    return matches


def _whole(matches: Callable[[str], Any]) -> tuple[Callable[[str], bool], Mapping[str, bool]]:
    known: dict[str, bool] = {}  # of short texts, which recur where they are words or categories

    def matched(text: str) -> bool:
        answer = known.get(text)
        if answer is None:
            try:
                answer = matches(text) is not None
            except UnicodeEncodeError:  # half of a surrogate pair, which no pattern matches
                answer = False
            if len(text) <= _SHORT:
                if len(known) >= _MOST:
                    known.clear()
                known[text] = answer
        return answer

    return matched, known


_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


@kernel("StringNormalizer", since=10)
def string_normalizer(
    x: Array,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] | None = None,
) -> Array:
    """[C] or [1, C] words without the stop words, in lower or upper case; one empty word where none is left."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ValueError(f"X has shape {x.shape}: expected [C] or [1, C]")
    words = texts(x)
    if stopwords and is_case_sensitive:
        stopped = set(stopwords)
        words = [word for word in words if word not in stopped]
    elif stopwords:
        stopped = {word.lower() for word in stopwords}
        words = [word for word in words if word.lower() not in stopped]
    if case_change_action not in _CASES:
        raise ValueError(f"case_change_action is {case_change_action!r}: expected NONE, LOWER or UPPER")
    words = [*map(_CASES[case_change_action], words)] or [""]
    return strings(words, (1, len(words)) if x.ndim == 2 else (len(words),))


@kernel("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    x: Array,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Array:
    """Counts of n-grams in [C] or [N, C], with up to max_skip_count items skipped between two: float32[…, vocabulary].

    Mode TFIDF multiplies the counts by the weights; IDF takes the weight of each n-gram that occurs.
    """
    pool = pool_strings if pool_strings is not None else pool_int64s or ()
    columns, width = remembered(_columns, pool, ngram_counts, ngram_indexes)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    chosen = _chosen(rows, columns, width, range(min_gram_length, max_gram_length + 1), max_skip_count)
    counts: Array = np.bincount(chosen, minlength=len(rows) * (width + 1)).reshape(len(rows), width + 1)[:, :width]
    if mode != "TF":
        weight = remembered(_weights, width, ngram_indexes, weights)
        counts = np.multiply(counts > 0 if mode == "IDF" else counts.astype(np.float32), weight)
    return counts.astype(np.float32, copy=False).reshape(*x.shape[:-1], width)


def _columns(pool: Sequence[object], counts: Sequence[int], indexes: Sequence[int]) -> tuple[dict[object, int], int]:
    """({n-gram, or the item itself for one of length 1: its column}, number of columns)."""
    numbers: dict[object, int] = {}
    for length, (start, stop) in enumerate(pairwise([*counts, len(pool)]), 1):
        for place in range(start, stop, length):
            gram = pool[place] if length == 1 else tuple(pool[place : place + length])
            numbers.setdefault(gram, len(numbers))
    return {gram: indexes[number] for gram, number in numbers.items()}, max(indexes, default=-1) + 1


def _weights(width: int, indexes: Sequence[int], weights: Sequence[float] | None) -> Array:
    """The weight of each column."""
    weight = np.ones(width, np.float32)
    if weights is not None:
        weight[list(indexes)] = weights
    return weight


def _chosen(rows: Array, columns: Mapping[object, int], width: int, lengths: range, skip: int) -> Array:
    """The places of all n-grams in a matrix of rows × (width + 1), the last column for those that are not known.

    N-grams of a single item are counted once, since they have nothing to skip.
    """
    count, size = rows.shape
    items = rows.reshape(-1).tolist()
    grams: list[int] = []
    reaches: list[int] = []
    for distance in range(1, min(skip + 1, size) + 1):
        for length in lengths:
            if length > size or (length == 1 and distance > 1):
                continue
            parts = items if length == 1 else zip(*(items[part * distance :] for part in range(length)), strict=False)
            grams += map(columns.get, parts, repeat(width))
            reaches.append((length - 1) * distance)
            grams += repeat(width, len(reaches) * len(items) - len(grams))
    places = np.array(grams, np.int64).reshape(len(reaches), count, size)
    for number, reach in enumerate(reaches):
        if reach:  # n-grams that begin so near to the end of a row would go on in the next
            places[number, :, max(0, size - reach) :] = width
    places += np.arange(count)[:, None] * (width + 1)
    return places.reshape(-1)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("StringNormalizer", since=10)
def string_normalizer_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The strings of a vector, or of a row, without the stop words; all of them where no stop words are given."""
    if not attributes.get("stopwords"):
        return x.bare
    rank = len(x.shape) if x.shape is not None else None
    return TensorFact(dtypes.STRING, None if rank is None else (1,) * (rank - 1) + (ctx.symbol(0, rank - 1),))


# -- traits ------------------------------------------------------------------------------------------------------------


def _string_split_bytes(attributes: Mapping[str, Any], x: Any) -> int:
    """An upper bound: every string has as many parts as the longest one has characters, and one more."""
    return int(x.size * (max(map(len, map(str, x.reshape(-1))), default=0) + 1) * 8) if x.size >= 4096 else 0


def _tf_idf_bytes(attributes: Mapping[str, Any], x: Any) -> int:
    rows = len(x) if x.ndim > 1 else 1
    return int(rows * (max(attributes.get("ngram_indexes") or (0,)) + 1) * 4)


traits("RegexFullMatch", OpTraits(category="text", shape="shapes", flops=1, quiet=True))
traits("StringConcat", OpTraits(category="text", shape="shapes", flops=1, out_bytes=broadcast, quiet=True))
traits("StringNormalizer", OpTraits(category="text", shape="data", flops=1, quiet=True))
traits("StringSplit", OpTraits(category="text", shape="data", flops=1, out_bytes=_string_split_bytes, quiet=True))
traits("TfIdfVectorizer", OpTraits(category="text", shape="shapes", flops=1, out_bytes=_tf_idf_bytes))
