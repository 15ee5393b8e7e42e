"""Constants as kernels prepare them: packed, widened or transposed weights, tables of trees.

A kernel that asks for `prepared("what", make, array, …)` gets `make(array, …)`: computed anew for arrays of a run, once
for arrays that are marked as constants. Kernels stay stateless; a result is dropped when its constant is freed.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from onnxlab.forking import fork_safe

T = TypeVar("T")

_lock = fork_safe(threading.Lock())
_constants: dict[int, weakref.ref[Any]] = {}
_made: dict[int, dict[tuple[Any, ...], Any]] = {}  # by id of the first constant


def mark_constant(array: Any) -> None:
    """Mark an array as constant: its elements stay, and kernels get it again; sequences are not marked."""
    if isinstance(array, list):
        return
    key = id(array)
    reference = _constants.get(key)
    if reference is not None and reference() is array:
        return
    with _lock:
        _made.pop(key, None)
        _constants[key] = weakref.ref(array, lambda dead: _forget(key, dead))


def _forget(key: int, dead: weakref.ref[Any]) -> None:
    if _constants.get(key) is dead:  # else another array has the same id by now
        del _constants[key]
        _made.pop(key, None)


def is_constant(array: Any) -> bool:
    """Whether an array was marked. None counts as one."""
    reference = _constants.get(id(array))
    return array is None or (reference is not None and reference() is array)


_PLAIN = frozenset((int, str, bool, type(None)))
_LARGEST = 64  # entries that `remembered` keeps

_remembered: OrderedDict[tuple[Any, ...], tuple[list[Any], Any]] = OrderedDict()


def remembered(make: Callable[..., T], *attributes: Any) -> T:
    """`make(*attributes)`, kept for the same objects: what a kernel makes of a node's attributes, which never change.

    The last few dozen results are kept, as long as their large attributes are in use. Attributes other than integers,
    strings and booleans are told apart by identity, not by value.
    """
    key = (make, *[item if type(item) in _PLAIN else id(item) for item in attributes])
    entry = _remembered.get(key)
    if entry is None:
        held = [_held(item, key) for item in attributes]  # no other object gets their ids, or the entry is dropped
        entry = held, make(*attributes)
        with _lock:
            _remembered[key] = entry
            while len(_remembered) > _LARGEST:
                _remembered.popitem(last=False)
    value: T = entry[1]
    return value


def recalled(make: Callable[..., T], *attributes: Any) -> Callable[[], T]:
    """A function that returns `remembered(make, *attributes)`, and asks again only where that was dropped."""
    reference: Callable[[], T | None] = lambda: None  # noqa: E731

    def value() -> T:
        nonlocal reference
        result = reference()
        if result is None:
            result = remembered(make, *attributes)
            reference = weakref.ref(result)
        return result

    return value


def _held(item: Any, key: Any) -> Any:
    """An attribute; for one that has weak references, a reference that drops the result with the attribute."""
    forget = _remembered.pop  # the method itself: when Python ends, the name means nothing any more
    try:
        return weakref.ref(item, lambda dead: forget(key, None))
    except TypeError:  # a list, a tuple or a number
        return item


def prepared(label: Any, make: Callable[..., T], *arrays: Any) -> T:
    """`make(*arrays)`, which depends on `label` and the arrays alone; kept while the first lives if all are constant.

    Args:
        label: hashable; names what is prepared, and all that it depends on besides the arrays.
    """
    if not all(map(is_constant, arrays)):
        return make(*arrays)
    key = (label, *map(id, arrays[1:]))
    entries = _made.get(id(arrays[0]))
    entry = None if entries is None else entries.get(key)
    if entry is None or any(held is not array for held, array in zip(entry[0], arrays[1:], strict=True)):
        entry = (arrays[1:], make(*arrays))
        with _lock:
            if id(arrays[0]) in _constants:
                _made.setdefault(id(arrays[0]), {})[key] = entry
    value: T = entry[1]
    return value
