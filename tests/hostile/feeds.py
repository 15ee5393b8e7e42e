"""Inputs of wrong and odd kinds: refused in our words, or taken for what they are, and never written to."""

import numpy as np

import onnxlab
from tests.hostile.bases import plain_cases
from tests.hostile.divergence import close
from tests.hostile.trial import Broken, limits

WEIGHT = 12


def preload():
    plain_cases()


def trial(case):
    from tests.execution.support.regions import Eager

    base = case.pick(plain_cases())
    path = case.file(base.data)
    model = case.call(f"model = onnxlab.load('m.onnx')  # {base.name}", onnxlab.load, path)
    if model is None:
        return
    feeds = dict(base.feeds)
    name = case.pick(list(feeds))
    way = case.pick([*SAME, *OTHER])
    array_changed = (SAME.get(way) or OTHER[way])(case, feeds[name])
    changed = feeds | {name: array_changed}
    if way == "renamed":
        changed = feeds | {case.pick(("nope", "", 3, None, b"x", ("x",), name.upper())): array_changed}
    ours = case.chance(0.5)
    providers = [Eager(), "numpy"] if ours else None
    before = [bytes_of(array) for array in changed.values()]
    kind = f"{feeds[name].dtype}{list(feeds[name].shape)}"
    line = f"model.run(feeds | {{{name!r}: {way} of {kind}}})  # by {'numba' if ours else 'numpy'}"
    outputs = case.call(line, model.run, changed, providers=providers, limits=limits(), seed=1)
    if before != [bytes_of(array) for array in changed.values()]:
        raise Broken("lost", f"an input was written to by {'numba' if ours else 'numpy'}", way)
    if (
        outputs is None
        or way not in SAME
        or "random" in base.name
        or "bernoulli" in base.name
        or "dropout" in base.name
    ):
        return
    expected = model.run(feeds, limits=limits(), seed=1)
    for output, array in expected.items():
        if problem := close(outputs[output], array, output):
            raise Broken("number", f"{problem} for an input that is {way}", f"{base.name}, {output}")


def bytes_of(array):
    known = isinstance(array, np.ndarray) and array.dtype != object and array.nbytes < 1 << 24
    return array.tobytes() if known else None


def spaced(case, array):
    """Every second element of a larger array."""
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2) if array.ndim else (2,), array.dtype)
    if not array.ndim:
        wide[0] = array
        return wide[::2].reshape(())
    wide[..., ::2] = array
    return wide[..., ::2]


def turned(case, array):
    return np.asfortranarray(array)


def reversed_(case, array):
    return np.ascontiguousarray(array[::-1])[::-1] if array.ndim else array


def unaligned(case, array):
    room = np.zeros(array.nbytes + 1, np.uint8)
    copy = room[1:].view(array.dtype).reshape(array.shape) if array.nbytes else array.copy()
    copy[...] = array
    return copy


def frozen(case, array):
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def swapped(case, array):
    return array.astype(array.dtype.newbyteorder(">"))


class Lazy:
    """An object that is an array when it is asked."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class Raising:
    """An object that raises when it is asked for an array."""

    def __array__(self, dtype=None, copy=None):
        raise OSError("no array today")


class Recursive(list):
    """A list in itself."""

    def __init__(self):
        super().__init__([1, 2])
        self.append(self)


DTYPES = ("f4", "f8", "i8", "i4", "u1", "?", "f2", "c8", "U5", "S3", "O")


def retyped(array, dtype):
    """The array in another dtype, as objects where NumPy has no conversion (float8 to text)."""
    try:
        return array.astype(dtype)
    except TypeError:
        return array.astype(object)


# feeds that must be accepted as arrays
SAME = {
    "spaced": spaced,
    "Fortran": turned,
    "reversed": reversed_,
    "unaligned": unaligned,
    "read-only": frozen,
    "big-endian": swapped,
    "a copy": lambda case, array: array.copy(),
    "a subclass": lambda case, array: array.view(np.matrix) if array.ndim == 2 else array.view(np.recarray),
    "an object with __array__": lambda case, array: Lazy(array),
}

# feeds that may be refused
OTHER = {
    "another dtype": lambda case, array: retyped(array, case.pick(DTYPES)),
    "a rank more": lambda case, array: array[None],
    "a rank less": lambda case, array: array[0] if array.ndim and len(array) else array,
    "64 ranks": lambda case, array: array.reshape((1,) * (64 - array.ndim) + array.shape),
    "empty": lambda case, array: array[..., :0] if array.ndim else array,
    "longer": lambda case, array: np.concatenate([array, array], case.upto(array.ndim - 1)) if array.ndim else array,
    "shorter": lambda case, array: array[tuple(slice(0, max(size - 1, 0)) for size in array.shape)],
    "objects": lambda case, array: np.array([None, object(), {}, "a"], object)[: 1 + case.upto(3)],
    "masked": lambda case, array: np.ma.masked_array(
        array, np.zeros(array.shape, bool) | (case.rng.random(array.shape) < 0.3)
    ),
    "special": lambda case, array: special(case, array),
    "extreme": lambda case, array: extreme(case, array),
    "a list": lambda case, array: array.tolist(),
    "ragged": lambda case, array: [[1, 2], [3]],
    "a list in itself": lambda case, array: Recursive(),
    "raising": lambda case, array: Raising(),
    "structured": lambda case, array: np.zeros(3, [("a", "f4"), ("b", "i8")]),
    "dates": lambda case, array: np.zeros(array.shape, "M8[s]"),
    "a string": lambda case, array: case.pick(("text", b"bytes", "", "\ud800")),
    "strings": lambda case, array: np.full(array.shape, "\udcff", object),
    "none": lambda case, array: None,
    "a number": lambda case, array: case.pick((1, 1.5, True, 2**70, 1j, float("nan"))),
    "a function": lambda case, array: len,
    "a mapping": lambda case, array: {"a": 1},
    "memory": lambda case, array: memoryview(bytes(8)),
    "huge": lambda case, array: np.broadcast_to(np.zeros((), array.dtype), (2**20,) * 2 + array.shape[2:]),
    "a generator": lambda case, array: (number for number in range(3)),
    "tuples": lambda case, array: (array, array),
    "renamed": lambda case, array: array,
}


def special(case, array):
    """NaN, infinities, huge and subnormal numbers."""
    if array.dtype.kind != "f" or not array.size:
        return array
    changed = array.copy()
    places = case.rng.integers(array.size, size=3)
    with np.errstate(all="ignore"):
        changed.reshape(-1)[places] = np.array(case.rng.choice([np.nan, np.inf, -np.inf, 3e38, 1e-40, -0.0], 3)).astype(
            array.dtype
        )
    return changed


def extreme(case, array):
    """Integers at the ends of what their type holds, and just beyond usual indices."""
    if array.dtype.kind not in "iu" or not array.size:
        return array
    info, changed = np.iinfo(array.dtype), array.copy()
    choice = [info.min, info.max, 0, 1, info.max // 2, min(1000, info.max), max(-1, info.min)]
    for place in case.rng.integers(array.size, size=3):
        changed.reshape(-1)[place] = case.pick(choice)
    return changed
