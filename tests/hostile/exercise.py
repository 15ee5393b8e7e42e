"""The exercise of every model of a trial: load, check, draw, run, edit, save; then other libraries are asked."""

import contextlib

import onnxlab
from onnxlab.errors import OnnxlabError
from tests.hostile import judge
from tests.hostile.trial import Broken, limits, parsed


def exercise(case, path, feeds, compare=True):
    """Do to the model of a file what a user may; every refusal is an OnnxlabError."""
    model = case.call(f"model = onnxlab.load({path.name!r})", onnxlab.load, path)
    problems = None
    if model is not None:
        problems = look(case, model)
        ours = case.ran = run(case, model, feeds)
        for step in (compiled, drawn, asked, edited, saved):
            if case.chance(0.4):
                step(case, model, path)
        if compare and not problems:
            judge.numbers(case, path, model, ours)
    if model is None or not problems:
        judge.silence(case, path, model)


def look(case, model):
    """Every diagnostic; each has a text."""
    case.step("model.check()")
    problems = model.check()
    for item in problems[:50]:
        str(item)
    return problems


def given(case, model, feeds):
    """Inputs: those of the unchanged model, made-up ones where they do not fit."""
    names = {value.name for value in model.inputs}
    known = {name: array for name, array in feeds.items() if name in names}
    if case.chance(0.6) and known.keys() == names:
        return known
    case.step("feeds = model.sample_inputs()")
    with contextlib.suppress(OnnxlabError):
        return model.sample_inputs(known if case.chance(0.5) else None, seed=case.seed % 1000, limits=limits())
    return known


def run(case, model, feeds):
    """(inputs, outputs by NumPy) or None."""
    arrays = given(case, model, feeds)
    outputs = case.call("model.run(feeds)", model.run, arrays, limits=limits(), seed=0)
    return None if outputs is None else (arrays, outputs)


def compiled(case, model, path):
    """The same model by Numba's provider, compiled in the foreground; `judge.numbers` compares elsewhere."""
    from tests.execution.support.regions import Eager

    partition = case.call('model.partition(["numba", "numpy"])', model.partition, ["numba", "numpy"])
    if partition is not None:
        str(partition)
    feeds = case.call("feeds = model.sample_inputs()", model.sample_inputs, limits=limits())
    if feeds is not None:
        line = 'model.run(feeds, providers=[NumbaProvider(background=False, least=0), "numpy"])'
        case.call(line, model.run, feeds, providers=[Eager(), "numpy"], limits=limits())


def drawn(case, model, path):
    """Pictures and texts."""
    way = case.pick(("svg", "html", "text", "repr"))
    if way == "svg":
        text = case.call("model.to_svg()", model.to_svg, None, case.pick((5, 120)))
        if text is not None and "<script" in text.lower():
            raise Broken("raw", "a script in an SVG")
    elif way == "html":
        case.call("model.to_html('m.html')", model.to_html, case.folder / "m.html")
    elif way == "text":
        case.call("model.to_text(…)", model.to_text, case.pick((".onnxtxt", ".textproto", ".json")))
    else:
        case.step("repr(model), model.nodes, model.inputs, text.summary(model)")
        from onnxlab.render import text

        repr(model), text.summary(model)
        [repr(node) for node in list(model.nodes)[:20]]


def asked(case, model, path):
    """Questions about values and nodes."""
    values = list(model.graph.values)
    if not values:
        return
    value = case.pick(values)
    way = case.pick(("explain", "profile", "subgraph", "extract", "dims"))
    if way == "explain":
        explanation = case.call(f"str(model.explain({value}))", model.explain, value)
        str(explanation)
    elif way == "profile":
        if case.ran is not None and len(model.graph.nodes) < 5:  # the reader has no limits of its own
            case.call("model.profile(feeds, runs=1)", model.profile, case.ran[0], runs=1)
    elif way == "subgraph" and len(model.nodes):
        node = case.pick(list(model.nodes))
        part = case.call(f"model.subgraph([{node.id}])", model.subgraph, [node])
        if part is not None:
            case.call(f"model.subgraph([{node.id}]).run()", part.run, limits=limits())
    elif way == "extract":
        case.call(f"model.extract([{value}])", model.extract, [value])
    else:
        names = {dim.name for item in model.inputs for dim in model.fact(item).shape or () if hasattr(dim, "name")}
        sizes = {name: case.pick((0, 1, 3, 2**40)) for name in names}
        case.call(f"model.with_dims({sizes})", model.with_dims, sizes)


def edited(case, model, path):
    """Edits at random; undoing them gives back the bytes."""
    from tests.graph.support.random_edits import EDITS, Draw

    before = model.to_bytes()
    for count in range(1 + case.upto(3)):
        name = case.pick(list(EDITS))
        numbers = tuple(int(number) for number in case.rng.integers(0, 1000, 3))
        if not model.graph.values:
            return
        case.call(f"random_edits.EDITS[{name!r}](Draw(model.graph, {numbers}, {count}))", EDITS[name],
                  Draw(model.graph, numbers, count))  # fmt: skip
    if case.chance(0.3):
        case.call("model.check()", model.check)
        case.call("model.run(…)", model.run, None, limits=limits())
    case.call("model.undo(to=0)", model.undo, 0)
    if model.history.state == 0 and model.to_bytes() != before:
        raise Broken("lost", "bytes differ after all edits were undone")


def saved(case, model, path):
    """Without an edit the bytes are those that were loaded."""
    if model.dirty:
        return
    target = case.folder / case.pick(("out.onnx", "out.textproto", "out.json", "out.onnxtxt"))
    done = case.call(f"model.save({target.name!r})", model.save, target)
    if done is not None and target.suffix == ".onnx":
        ours, theirs = parsed(path.read_bytes()), parsed(target.read_bytes())
        external = ours is not None and any(tensor.data_location for tensor in ours.graph.initializer)
        if path.suffix == ".onnx" and not external and target.read_bytes() != path.read_bytes():
            raise Broken("lost", "a model saved without an edit has other bytes", f"{ours == theirs}")
    if done is not None:
        case.call(f"onnxlab.load({target.name!r})", onnxlab.load, target)
