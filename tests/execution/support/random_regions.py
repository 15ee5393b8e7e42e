"""Random regions: graphs of operators with rules, on sizes that no tile and no vector divides.

Each draw makes results that stay near 1, so that rounding does not grow from node to node and what differs is wrong.
"""

import numpy as np

from tests.execution.support.regions import Recipe

CHANNELS = (1, 3, 17, 31, 33)
SPATIAL = tuple(range(1, 10))
BATCHES = (1, 1, 3, 0)
UNARY = ("Tanh", "Sigmoid", "Erf", "Softsign", "Relu", "Neg", "Abs", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu",
         "Softplus", "Gelu", "Mish", "Floor", "Ceil", "Round", "Sign", "Identity", "Dropout")  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Max", "Min", "PRelu")
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")
STEPS = ("Floor", "Ceil", "Round", "Sign")
"""Functions with jumps: only of what is exact, or rounding would be seen."""


class Drawing:
    """A model of `nodes` operators, and feeds for it.

    Args:
        seed: of everything.
        special: put NaN, infinities, large and subnormal numbers into the inputs.
    """

    def __init__(self, seed, nodes=8, special=False):
        self.rng = np.random.default_rng(seed)
        self.recipe = Recipe()
        self.feeds = {}
        self.values = []  # (name, shape, whether it is exact)
        self.used = set()
        self.special = special
        batch = self.pick(BATCHES)
        rank = self.pick((2, 3, 4, 4))
        self.shape = (batch, self.pick(CHANNELS), *(self.pick(SPATIAL) for _ in range(rank - 2)))
        for number in range(self.pick((1, 2))):
            self.input(f"x{number}")
        steps = [self.unary, self.unary, self.binary, self.binary, self.convolution, self.pool, self.product,
                 self.rows, self.reduction, self.move, self.move, self.chosen, self.normalized, self.attention,
                 self.decomposed]  # fmt: skip
        for _ in range(nodes):
            self.pick(steps)()

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def normal(self, *shape):
        return self.rng.standard_normal(shape, dtype=np.float32)

    def constant(self, *shape, scale=1.0):
        return self.recipe.constant(self.normal(*shape) * np.float32(scale))

    def input(self, name):
        array = self.normal(*self.shape)
        if self.special and array.size:
            places = self.rng.integers(array.size, size=3)
            array.reshape(-1)[places] = self.rng.choice([np.nan, np.inf, -np.inf, 1e9, 1e-40, -0.0], 3)
        if self.rng.random() < 0.3 and array.ndim > 1:  # of another layout in memory
            array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
        dims = ["n" if axis == 0 else size for axis, size in enumerate(self.shape)]
        self.recipe.input(name, array, dims)
        self.feeds[name] = array
        self.values.append((name, self.shape, True))

    def take(self, at_least=0):
        """A value of at least this rank, the newest most often."""
        fit = [value for value in self.values if len(value[1]) >= at_least]
        if not fit:
            return None
        name, shape, exact = fit[-1] if self.rng.random() < 0.6 else self.pick(fit)
        self.used.add(name)
        return name, shape, exact

    def put(self, name, shape, exact=False):
        self.values.append((name, tuple(shape), exact))

    # -- operators --------------------------------------------------------------------------------------------------

    def unary(self):
        x, shape, exact = self.take()
        kinds = [name for name in UNARY if exact or name not in STEPS]
        op_type = self.pick(kinds)
        self.put(self.recipe.node(op_type, x), shape, exact and op_type in ("Neg", "Abs", "Relu", "Identity"))

    def binary(self):
        x, shape, _ = self.take()
        same = [value for value in self.values if value[1] == shape]
        op_type = self.pick(BINARY)
        other = self.pick(same)[0]
        if self.rng.random() < 0.6 or op_type == "PRelu":
            sizes = [size if self.rng.random() < 0.5 else 1 for size in shape]
            other = self.constant(*sizes[int(self.rng.integers(len(sizes) + 1)) :], scale=0.7)
        pair = (x, other) if op_type == "PRelu" or self.rng.random() < 0.7 else (other, x)
        self.put(self.recipe.node("Tanh", self.recipe.node(op_type, *pair)), shape)

    def convolution(self):
        operand = self.take(3)
        if operand is None:
            return
        x, shape, _ = operand
        channels, spatial = shape[1], shape[2:]
        group = self.pick([g for g in (1, 1, channels) if channels % g == 0])
        out_channels = group * self.pick((1, 2)) if group > 1 else self.pick((*CHANNELS, 48))
        kernel = [self.pick((1, 2, 3, 3)) for _ in spatial]
        strides, dilations = ([self.pick((1, 1, 2)) for _ in spatial] for _ in range(2))
        options = {"strides": strides, "dilations": dilations}
        reach = [(k - 1) * d for k, d in zip(kernel, options["dilations"], strict=True)]
        begin = [self.pick((0, 1, r)) for r in reach]
        end = [max(r + 1 - size - b, self.pick((0, 1))) for r, size, b in zip(reach, spatial, begin, strict=True)]
        fan_in = channels // group * int(np.prod(kernel))
        weights = self.constant(out_channels, channels // group, *kernel, scale=max(1, fan_in) ** -0.5)
        bias = [self.constant(out_channels)] if self.rng.random() < 0.5 else []
        y = self.recipe.node("Conv", x, weights, *bias, group=group, pads=[*begin, *end], **options)
        sizes = zip(spatial, begin, end, reach, options["strides"], strict=True)
        out = [(size + b + e - r - 1) // s + 1 for size, b, e, r, s in sizes]
        self.put(y, (shape[0], out_channels, *out))

    def normalized(self):
        operand = self.take(3)
        if operand is None:
            return
        x, shape, _ = operand
        parameters = [self.constant(shape[1]) for _ in range(3)]
        variance = self.recipe.constant(np.abs(self.normal(shape[1])) + np.float32(0.5))
        self.put(self.recipe.node("BatchNormalization", x, *parameters, variance), shape)

    def pool(self):
        operand = self.take(3)
        if operand is None:
            return
        x, shape, exact = operand
        op_type = self.pick(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
        if op_type.startswith("Global"):
            self.put(self.recipe.node(op_type, x), (*shape[:2], *[1] * (len(shape) - 2)), exact and "Max" in op_type)
            return
        kernel = [min(size, self.pick((1, 2, 3))) for size in shape[2:]]
        stride = [self.pick((1, 2)) for _ in kernel]
        y = self.recipe.node(op_type, x, kernel_shape=kernel, strides=stride)
        out = [(size - k) // s + 1 for size, k, s in zip(shape[2:], kernel, stride, strict=True)]
        self.put(y, (*shape[:2], *out), exact and op_type == "MaxPool")

    def product(self):
        x, shape, _ = self.take(1)
        columns, depth = self.pick((1, 5, 16, 33)), shape[-1]
        if self.rng.random() < 0.3 and len(shape) > 2:  # by what is known at run time only
            turned = self.recipe.node("Transpose", x, perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
            y = self.recipe.node("MatMul", x, turned)
            self.put(self.recipe.node("Tanh", y), (*shape[:-1], shape[-2]))
            return
        y = self.recipe.node("MatMul", x, self.constant(depth, columns, scale=max(1, depth) ** -0.5))
        if self.rng.random() < 0.5:
            y = self.recipe.node("Add", y, self.constant(columns))
        self.put(y, (*shape[:-1], columns))

    def rows(self):
        x, shape, _ = self.take(1)
        if self.rng.random() < 0.5:
            op_type = self.pick(("Softmax", "LogSoftmax"))
            self.put(self.recipe.node(op_type, x, axis=self.pick(range(-len(shape), len(shape)))), shape)
            return
        length = shape[-1]
        y = self.recipe.node("LayerNormalization", x, self.constant(length), self.constant(length), epsilon=0.1)
        self.put(y, shape)

    def attention(self):
        """A value looks at itself, scaled and masked or not."""
        operand = self.take(2)
        if operand is None or operand[1][-2] < 2:  # one alone is what it was, and less it only rounding would be left
            return
        x, shape, _ = operand
        turned = self.recipe.node("Transpose", x, perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
        scores = self.recipe.node("MatMul", x, turned)
        if self.rng.random() < 0.6:
            scores = self.recipe.node("Mul", scores, self.recipe.constant(np.float32(0.3)))
        if self.rng.random() < 0.6:
            scores = self.recipe.node("Add", scores, self.constant(self.pick((1, shape[-2])), shape[-2]))
        self.put(self.recipe.node("MatMul", self.recipe.node("Softmax", scores, axis=-1), x), shape)

    def decomposed(self):
        """A norm of the last axis as exporters write it."""
        x, shape, _ = self.take(1)
        axes, least = self.recipe.constant(np.array([-1])), self.recipe.constant(np.float32(0.1))
        make = self.recipe.node
        d = make("Sub", x, make("ReduceMean", x, axes))
        y = make("Div", d, make("Sqrt", make("Add", make("ReduceMean", make("Mul", d, d), axes), least)))
        y = make("Mul", y, self.constant(shape[-1])) if self.rng.random() < 0.7 else y
        self.put(make("Add", y, self.constant(shape[-1])), shape)

    def reduction(self):
        x, shape, exact = self.take(1)
        op_type, rank = self.pick(REDUCTIONS), len(shape)
        axes = sorted({int(axis) for axis in self.rng.integers(1, rank, size=2)}) if rank > 1 else [0]
        keep = int(self.rng.integers(2))
        y = self.recipe.node(op_type, x, self.recipe.constant(np.array(axes)), keepdims=keep)
        out = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
        if op_type in ("ReduceSum", "ReduceL2"):
            y = self.recipe.node("Tanh", y)
        self.put(y, out, exact and op_type in ("ReduceMax", "ReduceMin"))

    def move(self):
        x, shape, exact = self.take(2)[:3] if self.take(2) else (None, None, None)
        if x is None:
            return
        kind, rank = self.pick(("turn", "cut", "join", "split", "pad", "flat", "widen", "pick", "resize")), len(shape)
        make, integers = self.recipe.node, lambda *items: self.recipe.constant(np.array(items))
        axis = int(self.rng.integers(1, rank))
        if kind == "turn":
            perm = [0, *(1 + self.rng.permutation(rank - 1)).tolist()]
            self.put(make("Transpose", x, perm=perm), [shape[a] for a in perm], exact)
        elif kind == "cut":
            step = self.pick((1, 2))
            start = int(self.rng.integers(shape[axis]))
            y = make("Slice", x, integers(start), integers(1 << 40), integers(axis), integers(step))
            self.put(y, [len(range(start, n, step)) if a == axis else n for a, n in enumerate(shape)], exact)
        elif kind == "join":
            other, _, same = self.pick([value for value in self.values if value[1] == shape])
            self.used.add(other)
            out = [2 * n if a == axis else n for a, n in enumerate(shape)]
            self.put(make("Concat", x, other, axis=axis), out, exact and same)
        elif kind == "split" and shape[axis] > 1:
            sizes = (1, shape[axis] - 1)
            y, z = self.recipe.nodes_of("Split", 2, x, integers(*sizes), axis=axis)
            for name, size in ((y, 1), (z, shape[axis] - 1)):
                self.put(name, [size if a == axis else n for a, n in enumerate(shape)], exact)
        elif kind == "pad":
            amounts = [int(self.rng.integers(3)) if a % rank else 0 for a in range(2 * rank)]
            out = [n + amounts[a] + amounts[rank + a] for a, n in enumerate(shape)]
            mode = self.pick(("constant", "edge", "wrap"))
            self.put(make("Pad", x, integers(*amounts), mode=mode), out, exact)
        elif kind == "pick":
            indices = self.rng.integers(-shape[axis], shape[axis], self.pick((1, 5, 17)))
            y = make("Gather", x, self.recipe.constant(indices), axis=axis)
            self.put(y, [len(indices) if a == axis else n for a, n in enumerate(shape)], exact)
        elif kind == "resize" and rank > 2 and shape[0]:
            mode = self.pick(("nearest", "linear"))
            sizes = [self.pick((1, 4, 9)) if a > 1 else n for a, n in enumerate(shape)]
            y = make("Resize", x, "", "", integers(*sizes), mode=mode, coordinate_transformation_mode="asymmetric")
            self.put(y, sizes, exact and mode == "nearest")
        elif kind == "flat":
            self.put(make("Flatten", x, axis=1), (shape[0], int(np.prod(shape[1:]))), exact)
        elif kind == "widen" and rank < 4:
            y = make("Unsqueeze", x, integers(axis))
            y = make("Expand", y, integers(*[3 if a == axis else 1 for a in range(rank + 1)]))
            self.put(y, (*shape[:axis], 3, *shape[axis:]), exact)

    def chosen(self):
        x, shape, exact = self.take()
        if not exact:
            return
        test = self.recipe.node(self.pick(("Less", "GreaterOrEqual", "Equal")), x, self.constant())
        if self.rng.random() < 0.3:
            test = self.recipe.node("Not", test)
        self.put(self.recipe.node("Where", test, self.recipe.node("Sigmoid", x), self.constant()), shape)

    def model(self):
        """With what no node reads as outputs."""
        outputs = [name for name, _, _ in self.values if name not in self.used and name not in self.feeds]
        return self.recipe.model(*(outputs or [self.values[-1][0]]))
