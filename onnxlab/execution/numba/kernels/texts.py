"""Texts that are split into words, whose n-grams are counted: what TfIdfVectorizer makes of UTF-8.

A word is what lies between delimiters, or a run of bytes of a class, and has some characters at least; its number
stands in a hash table, open and at most half full. Rows are filled up to the longest with one more number. An n-gram
goes down a tree, whose keys are the sum of a node's first key and a number; places are the keys, or where these stand
in order.
A record:

    texts, ends, rows         the bytes of all texts, int64 [rows] where each ends, and how many there are
    delimiter, delimiter_bytes   bytes between words; none where words are runs of a class
    classes                   uint8 [256]: whether a byte is part of a word
    least                     characters that a word has at least
    slots, mask, letters      int64 [mask + 1][4]: hash, number, first letter and length of a word, -1 where there is
                              none; bytes of all words
    otherwise, filler, unknown   numbers of other words, of what fills up rows, and of what no n-gram has
    tree, levels              int64 [levels][4]: number of keys, 0 where places are keys, and where keys, first keys
                              of nodes and columns begin in the tree itself; one for each item of the longest n-grams
    shortest, skip            items of the shortest n-grams, and how many are skipped between two at the most
    numbers, counts           int32 and int64 [rows] to work with: of the words, and how many a row has
    y, width                  float32 [rows][width]: of columns; others are of what is no n-gram
    once                      1 where it only counts whether an n-gram is there
    weights                   float32 [width], 0 where there are none
    single                    1 where each character of the class is a word
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.memory import (
    clear_bytes,
    get_f32,
    get_i32,
    get_i64,
    get_u8,
    put_f32,
    put_i32,
    put_i64,
    word,
)
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_FIRST_HASH, _FACTOR = -3750763034362895579, 1099511628211
_SLOT = 32  # bytes
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@helper
def _equal(first, second, length):
    """Whether bytes are the same."""
    place = 0
    while place < length and get_u8(first + place) == get_u8(second + place):
        place += 1
    return place == length


@helper
def _number(record, begin, length):
    """The number of a word."""
    code = _FIRST_HASH
    for place in range(length):
        code = (code ^ get_u8(begin + place)) * _FACTOR
    slots, mask, letters = word(record, 9), word(record, 10), word(record, 11)
    place = (code ^ (code >> 32)) & mask
    while True:
        slot = slots + place * _SLOT
        size = get_i64(slot + 24)
        if size < 0:
            return word(record, 12)
        if size == length and get_i64(slot) == code and _equal(letters + get_i64(slot + 16), begin, length):
            return get_i64(slot + 8)
        place = (place + 1) & mask


@helper
def _enough(begin, length, least):
    """Whether a word has so many characters: bytes that do not continue one."""
    characters = length
    if least > 1:
        for place in range(length):
            characters -= np.int64(get_u8(begin + place) & 192 == 128)
    return characters >= least


@helper
def _put_word(record, begin, length, at):
    """Put the number of a word at a place; returns the place behind it."""
    if not _enough(begin, length, word(record, 8)):
        return at
    put_i32(at, _number(record, begin, length))
    return at + 4


@helper
def _between(record, begin, end, at):
    """Put the numbers of what lies between delimiters; returns the place behind them."""
    delimiter, size, place = word(record, 5), word(record, 6), begin
    while True:
        if place + size <= end and _equal(delimiter, place, size):
            at = _put_word(record, begin, place - begin, at)
            place += size
            begin = place
        elif place >= end:
            return _put_word(record, begin, end - begin, at)
        else:
            place += 1


@helper
def _runs(record, place, end, at):
    """Put the numbers of runs of a class of bytes, or of its characters; returns the place behind them."""
    classes, single = word(record, 7), word(record, 25)
    while place < end:
        begin = place
        while place < end and get_u8(classes + get_u8(place)) != 0:
            place += 1
            if single:
                while place < end and get_u8(place) & 192 == 128:
                    place += 1
                at = _put_word(record, begin, place - begin, at)
                begin = place
        if place > begin:
            at = _put_word(record, begin, place - begin, at)
        place += 1
    return at


@helper
def _place(tree, level, key):
    """The place of a key of a level; one behind the last key where it is none of them."""
    count = word(tree, level * 4)
    if count == 0:
        return key
    first, last = 0, count
    keys = word(tree, level * 4 + 1)
    while first < last:
        middle = (first + last) >> 1
        if word(tree, keys + middle) < key:
            first = middle + 1
        else:
            last = middle
    return first if first < count and word(tree, keys + first) == key else count


@helper
def _count(record, numbers, size, longest, y):
    """Count the n-grams of a row."""
    filler, tree, levels = word(record, 13), word(record, 15), word(record, 16)
    shortest, width = word(record, 17), word(record, 22)
    limit = size if filler == word(record, 14) else longest
    for distance in range(1, max(1, min(word(record, 18) + 1, longest)) + 1):
        for begin in range(limit):
            node = 0
            for level in range(levels):
                place = begin + level * distance
                if place >= limit:
                    break
                number = get_i32(numbers + place * 4) if place < size else filler
                place = _place(tree, level, node + number)
                column = word(tree, word(tree, level * 4 + 3) + place)
                if level + 1 >= shortest and (level > 0 or distance == 1) and column < width:
                    put_f32(y + column * 4, get_f32(y + column * 4) + _ONE)
                node = word(tree, word(tree, level * 4 + 2) + place)


@helper
def _weigh(record, y):
    """Weigh the counts of a row."""
    once, weights = word(record, 23), word(record, 24)
    for at in range(0, word(record, 22) * 4, 4):
        value = get_f32(y + at)
        if once:
            value = _ONE if value > _ZERO else _ZERO
        put_f32(y + at, value * get_f32(weights + at) if weights else value)


@kernel
def text_counts(record: Any, unit: Any, scratch: Any) -> None:
    """Count the n-grams of all texts."""
    rows, y, row_bytes = word(record, 4), word(record, 21), word(record, 22) * 4
    begin, longest, numbers = 0, 0, word(record, 19)
    for row in range(rows):
        end, first = word(word(record, 3), row), numbers
        if end > begin and word(record, 6) > 0:
            numbers = _between(record, word(record, 2) + begin, word(record, 2) + end, first)
        elif end > begin:
            numbers = _runs(record, word(record, 2) + begin, word(record, 2) + end, first)
        count = (numbers - first) >> 2
        put_i64(word(record, 20) + row * 8, count)
        begin, longest = end, max(longest, count)
    clear_bytes(y, rows * row_bytes)
    numbers = word(record, 19)
    for row in range(rows):
        count = word(word(record, 20), row)
        _count(record, numbers, count, longest, y)
        if word(record, 23) or word(record, 24):
            _weigh(record, y)
        numbers += count * 4
        y += row_bytes
