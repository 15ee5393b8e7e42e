"""Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer. Elements are Python str."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
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
from onnxlab.ops.onnx.tensor.ngrams import GramCounter, width_of
from onnxlab.shapes import Fact, TensorFact


def strings(items: Sequence[str], shape: Sequence[int]) -> Array:
    """An object array of this shape."""
    result = np.array(items, object)
    return result if len(shape) == 1 else result.reshape(shape)


def texts(x: Array) -> list[str]:
    """The elements as a flat list; what is no string becomes one."""
    items: list[str] = (x if x.ndim == 1 else x.ravel()).tolist()
    return items if _are_strings(items) else [*map(str, items)]


_STRINGS = frozenset((str,))
_JOINED = 1 << 12
"""The most items that are joined to see whether all are strings, which takes a third of looking at their types."""


def _are_strings(items: list[Any]) -> bool:
    if len(items) > _JOINED:
        return _STRINGS.issuperset(map(type, items))
    try:
        "".join(items)
    except TypeError:
        return False
    return True


@kernel("StringConcat", since=20)
def string_concat(x: Array, y: Array) -> Array:
    """X + Y, elementwise; the shapes broadcast."""
    if x.ndim and y.dtype == x.dtype == object:
        try:
            joined = x + y
        except TypeError:  # of a string and another object
            joined = x
        if joined is not x and _are_strings((joined if joined.ndim == 1 else joined.ravel()).tolist()):
            return joined
    left, right = np.broadcast_arrays(x, y)
    return strings([*map(add, texts(left), texts(right))], left.shape)


@kernel("StringSplit", since=20)
def string_split(x: Array, delimiter: str = "", maxsplit: int | None = None) -> tuple[Array, Array]:
    """(parts of every string in a new last axis, "" behind the last; int64 numbers of parts).

    Without a delimiter, strings are split at runs of white space.
    """
    parts = splitter(delimiter, maxsplit)(texts(x))
    width, lengths = filled(parts, "")
    words = np.fromiter(chain.from_iterable(parts), object, width * len(parts))
    return words.reshape(*x.shape, width), np.array(lengths, np.int64).reshape(x.shape)


def splitter(delimiter: str = "", maxsplit: int | None = None) -> Callable[[list[str]], list[list[str]]]:
    """A function that gives the parts of each text, none of an empty one."""
    most, separator = -1 if maxsplit is None else maxsplit, delimiter or None
    return lambda items: [text.split(separator, most) if text else [] for text in items]


def filled(lists: Sequence[list[Any]], item: Any) -> tuple[int, list[int]]:
    """(length of the longest list, which all have afterwards, with `item` behind the last; lengths before)."""
    lengths = [*map(len, lists)]
    width = max(lengths, default=0)
    if width > min(lengths, default=0):
        for part, length in zip(lists, lengths, strict=True):
            part += [item] * (width - length)
    return width, lengths


@kernel("RegexFullMatch", since=20, bound=True)
def regex_full_match(pattern: str) -> Callable[[Array], Array]:
    """Whether the whole of every string matches a pattern in RE2's syntax, in time that grows with the string alone.

    Raises:
        ValueError: the pattern is no regular expression.
    """
    matches, known = _compiled(pattern)
    get = known.get

    def match(x: Array) -> Array:
        items: list[Any] = (x if x.ndim == 1 else x.ravel()).tolist()
        try:
            answers = bytearray(map(get, items))  # type: ignore[arg-type]
        except TypeError:  # of an answer that is not known, or an item that cannot be a key
            answers = bytearray([matches(text) for text in texts(x)])
        return np.ndarray(x.shape, np.bool_, answers)  # in half of the time of frombuffer and reshape

    return match


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


def case_change(action: str) -> Callable[[str], str]:
    """The function of a string. Raises ValueError for an action that is not known."""
    if action not in _CASES:
        raise ValueError(f"case_change_action is {action!r}: expected NONE, LOWER or UPPER")
    return _CASES[action]


@kernel("StringNormalizer", since=10, bound=True)
def string_normalizer(
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] | None = None,
) -> Callable[[Array], Array]:
    """[C] or [1, C] words without the stop words, in lower or upper case; one empty word where none is left."""
    change, fold = case_change(case_change_action), str if is_case_sensitive else str.lower
    stopped = {fold(word) for word in stopwords or ()}

    def normalize(x: Array) -> Array:
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
            raise ValueError(f"X has shape {x.shape}: expected [C] or [1, C]")
        words = texts(x)
        if stopped:
            words = [word for word in words if fold(word) not in stopped]
        words = [*map(change, words)] or [""]
        return strings(words, (1, len(words)) if x.ndim == 2 else (len(words),))

    return normalize


@kernel("TfIdfVectorizer", since=9, bound=True)
def tf_idf_vectorizer(
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Callable[[Array], Array]:
    """Counts of n-grams in [C] or [N, C], with up to max_skip_count items skipped between two: float32[…, vocabulary].

    Mode TFIDF multiplies the counts by the weights; IDF takes the weight of each n-gram that occurs.
    """
    pool = pool_strings if pool_strings is not None else pool_int64s or ()
    counter = GramCounter(pool, ngram_counts, ngram_indexes, mode, weights)
    lengths, tree = (min_gram_length, max_gram_length, max_skip_count), counter.tree

    def vectorize(x: Array) -> Array:
        rows = x.reshape(1, -1) if x.ndim < 2 else x
        counts = counter.counted(tree.columns(tree.numbered(rows), *lengths))
        return counts.reshape(*x.shape[:-1], counter.width)

    return vectorize


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
    return rows * remembered(width_of, attributes.get("ngram_indexes")) * 4


traits("RegexFullMatch", OpTraits(category="text", shape="shapes", flops=1, quiet=True, fresh=True))
traits("StringConcat", OpTraits(category="text", shape="shapes", flops=1, out_bytes=broadcast, quiet=True, fresh=True))
traits("StringNormalizer", OpTraits(category="text", shape="data", flops=1, quiet=True, fresh=True))
traits(
    "StringSplit",
    OpTraits(category="text", shape="data", flops=1, out_bytes=_string_split_bytes, quiet=True, fresh=True),
)
traits(
    "TfIdfVectorizer",
    OpTraits(category="text", shape="shapes", flops=1, out_bytes=_tf_idf_bytes, quiet=True, fresh=True),
)
