"""Derivatives of a mutated model: files of other formats, other encodings, differences, rewrites, and scripts."""

import types

import numpy as np
import onnx

import onnxlab
from tests.hostile.bases import bases
from tests.hostile.mutants import messages, of_bytes, of_fields
from tests.hostile.trial import Broken, limits, parsed

WEIGHT = 12
FORMATS = (".ort", ".textproto", ".json", ".onnxtxt", ".safetensors", ".npz")
WEIGHT_FILES = (".safetensors", ".npz")


def preload():
    bases()


def trial(case):
    kind = case.pick((other_format, other_encoding, difference, rewrite, script))
    base = case.pick(bases())
    case.lines.append(f"# {kind.__name__} of {base.name}")
    kind(case, base)


def opened(case, data, name="m.onnx"):
    """A model of a file with these bytes, None where it is refused."""
    path = case.file(data, name)
    return case.call(f"model = onnxlab.load({name!r})", onnxlab.load, path)


def other_format(case, base):
    """A model or its weights in another format, with some bytes changed."""
    model = opened(case, of_fields(case, base.data) if case.chance(0.3) else base.data)
    suffix = case.pick(FORMATS)
    path = case.folder / f"other{suffix}"
    if model is None:
        return
    write = model.files.save_weights if suffix in WEIGHT_FILES else model.save
    if case.call(f"write {path.name!r}", write, path) is None or not path.exists():
        return
    path.write_bytes(of_bytes(case, path.read_bytes()))
    other = case.call(f"other = onnxlab.load({path.name!r})", onnxlab.load, path)
    if suffix in WEIGHT_FILES:
        case.call(f"model.files.load_weights({path.name!r})", model.files.load_weights, path, strict=False)
        looked_at(case, model)
    if other is not None:
        looked_at(case, other)
        again = case.folder / f"again{suffix}"
        case.call("save it again", other.save, again)


def looked_at(case, model):
    """Check, draw and run a model."""
    case.step("model.check(); model.to_svg()")
    for problem in model.check()[:50]:
        str(problem)
    model.to_svg()
    feeds = case.call("feeds = model.sample_inputs()", model.sample_inputs, limits=limits())
    if feeds is not None:
        case.call("model.run(feeds)", model.run, feeds, limits=limits())


def other_encoding(case, base):
    """The same message as no writer writes it: fields in another order, split, repeated, padded, among unknown ones."""
    proto = parsed(of_fields(case, base.data) if case.chance(0.3) else base.data)
    if proto is None:
        return
    if case.chance(0.6):
        lengthen(case, proto.graph)
    data = encoded(case, proto)
    if parsed(data) is None:
        return
    model = opened(case, data)
    if model is None:
        return
    looked_at(case, model)
    if case.chance(0.5):
        edit(case, model)
        case.call("model.undo(to=0)", model.undo, 0)
        if model.history.state:
            return
    case.step("model.save('out.onnx')")
    model.save(case.folder / "out.onnx")
    if (case.folder / "out.onnx").read_bytes() != data:
        raise Broken("lost", "a model in an odd encoding has other bytes after it was saved without an edit")


def lengthen(case, graph):
    """Add so many nodes that the index is read from bytes; some with long, absent, repeated or odd names."""
    names = [value.name for value in graph.input][:1] or [""]
    for number in range(220 + case.upto(40)):
        name = case.pick((f"é{number}", f"v{number}", f"v{number}", f"v{number}", "n" * 130 + str(number)))
        outputs = [name] if case.chance(0.95) else [name, "", case.pick(names), "later"][: 1 + case.upto(3)]
        inputs = [case.pick(names[-3:])] if case.chance(0.95) else [case.pick(names), "", "later", "never"]
        node = onnx.helper.make_node(case.pick(("Relu", "Neg", "Identity")), inputs, outputs, "/a/" * case.upto(1))
        graph.node.append(node)
        names.append(name)


def encoded(case, proto):
    """The bytes of a message, field by field, oddly."""
    parts = []
    for field, value in proto.ListFields():
        for item in value if field.is_repeated else [value]:
            alone = type(proto)()
            if field.message_type is not None:
                inner = encoded(case, item) if case.chance(0.7) else item.SerializePartialToString()
                parts.append(framed(case, field.number, inner))
            else:
                if field.is_repeated:
                    getattr(alone, field.name).append(item)
                else:
                    setattr(alone, field.name, item)
                parts.append(alone.SerializePartialToString())
    share = 0.02 if len(parts) > 50 else 0.2
    for _ in range(3):
        if parts and case.chance(share):
            place = case.upto(len(parts) - 1)
            parts.insert(
                place, case.pick((b"\xf8\x7f\x01", b"\xfb\x7f\x08\x01\xfc\x7f", b"\xfd\x7f1234", b"\xfa\x7f\x00"))
            )
    if case.chance(share):
        case.rng.shuffle(parts)
    return b"".join(parts)


def framed(case, number, inner):
    """A length-delimited field, its size now and then in more bytes than it needs."""
    size = varint(len(inner))
    if case.chance(0.1):
        size = size[:-1] + bytes([size[-1] | 0x80]) + b"\x80" * case.upto(1) + b"\0"
    return varint(number << 3 | 2) + size + inner


def varint(number):
    digits = []
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def edit(case, model):
    """Some edits at random."""
    from tests.graph.support.random_edits import EDITS, Draw

    for count in range(1 + case.upto(4)):
        name = case.pick(list(EDITS))
        numbers = tuple(int(number) for number in case.rng.integers(0, 1000, 3))
        if model.graph.values:
            line = f"random_edits.EDITS[{name!r}](Draw(model.graph, {numbers}, {count}))"
            case.call(line, EDITS[name], Draw(model.graph, numbers, count))


def difference(case, base):
    """Two mutants of one model compared; the difference makes the first the second."""
    models = [
        opened(case, case.pick((of_fields, of_fields, of_bytes))(case, base.data), f"{name}.onnx") for name in "ab"
    ]
    if None in models:
        return
    first, second = models
    if case.chance(0.3):
        edit(case, second)
    diff = case.call("diff = onnxlab.diff(a, b)", onnxlab.diff, first, second)
    if diff is None:
        return
    case.step("str(diff), diff.to_markdown(), diff.to_json(), diff.regions")
    str(diff), diff.to_markdown(), diff.to_json(), diff.regions
    target, before = second.to_bytes(), first.to_bytes()
    left = case.call("a.patch(diff)", first.patch, diff)
    if left is not None and known(first.to_bytes()) != known(target) and finite(target):
        raise Broken("lost", "a patched model is not the second one", f"{left}")
    if left is not None:
        case.call("a.undo()", first.undo)
        if first.history.state == 0 and first.to_bytes() != before:
            raise Broken("lost", "bytes differ after a patch was undone")


def known(data):
    """The message without fields that onnx does not know, which no difference tells."""
    proto = parsed(data)
    proto.DiscardUnknownFields()
    return proto


def finite(data):
    """Whether no float of a message is NaN, which is unlike itself."""
    for message in messages(parsed(data)):
        for field, value in message.ListFields():
            if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE) and np.isnan(value).any():
                return False
    return True


def rewrite(case, base):
    """A rewritten mutant gives the same numbers, and undo its bytes."""
    data = of_fields(case, base.data) if case.chance(0.6) else base.data
    model = opened(case, data)
    if model is None:
        return
    before = model.to_bytes()
    ways = {
        "simplify": lambda: model.simplify(verify=False), "fold": lambda: model.fold(verify=False),
        "optimize": lambda: model.optimize(verify=False),
        "convert_opset": lambda: model.convert_opset(case.pick((7, 13, 18, 21, 24, 99))),
        "declarations": lambda: model.declarations(case.pick(("refresh", "store", "drop"))),
    }  # fmt: skip
    way = case.pick(list(ways))
    feeds = base.feeds
    problems = model.check()
    ran = case.call("model.run(feeds)", model.run, feeds, limits=limits(), seed=0)
    if case.call(f"model.{way}(…)", ways[way]) is None:
        return
    again = case.call("model.run(feeds) again", model.run, feeds, limits=limits(), seed=0)
    if ran is not None and again is None and not problems:
        raise Broken("number", f"a model does not run after {way}")
    if ran is not None and again is not None and not problems:
        for name, array in ran.items():
            if not alike(array, again.get(name)):
                raise Broken("number", f"other numbers after {way}", name)
    case.call("model.undo(to=0)", model.undo, 0)
    if model.history.state == 0 and model.to_bytes() != before:
        raise Broken("lost", f"bytes differ after {way} was undone")


def alike(a, b):
    if not isinstance(a, np.ndarray) or a.dtype.kind not in "fiub":
        return True
    if not isinstance(b, np.ndarray) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    scale = np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)), initial=1.0)
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * scale, equal_nan=True))


def script(case, base):
    """The history as a script makes the same bytes on another copy."""
    data = of_fields(case, base.data) if case.chance(0.6) else base.data
    model, copy = opened(case, data), opened(case, data, "copy.onnx")
    if model is None or copy is None:
        return
    edit(case, model)
    if case.chance(0.3):
        case.call("model.undo()", model.undo)
        edit(case, model)
    names = [node.name for node in model.nodes if node.name]
    if len(set(names)) < len(names):
        return  # only a primitive change gives a name away twice: the statement of a script refuses to
    text = case.call("script = model.history.to_python()", model.history.to_python)
    if text is None:
        return
    case.step("exec(script); replay(copy)")
    module = types.ModuleType("script")
    exec(text, vars(module))
    module.replay(copy)
    if copy.to_bytes() != model.to_bytes():
        raise Broken("lost", "a script of the history makes other bytes")
    if [str(label) for label in copy.history.labels] != [str(label) for label in model.history.labels]:
        raise Broken("lost", "a script of the history gives its steps other labels")
