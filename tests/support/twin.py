"""The TypeScript that follows from Python's declarations: the messages of the protocol, and the table of edits.

python -m tests.support.twin     # writes what is out of date
"""

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, is_typeddict

from onnxlab.graph.edits import EDITS
from onnxlab.notebook.edits.edit_requests import LEFT_OUT, NOT_BY_HAND
from onnxlab.notebook.edits.kinds import KINDS, WORDS
from onnxlab.notebook.protocol import commands, events, pairs, questions, records, rewriting, runs, schema, watching
from onnxlab.notebook.protocol.messages import PROTOCOL
from onnxlab.notebook.protocol.schema import ALIASES, Method, Parameter, fields_of

SOURCES = Path(__file__).parents[2] / "widgets" / "src"
_HEAD = "// Written by `python -m tests.support.twin` from {}: change that, and run it again.\n"
_PLAIN = {int: "number", float: "number", str: "string", bool: "boolean", NoneType: "null", Any: "unknown"}
_WIDTH = 120


def _named() -> dict[str, Any]:
    """Every alias that has a name of its own in TypeScript."""
    aliases = {name: alias for name, (alias, _) in ALIASES.items()}
    for module in (records, questions, commands, rewriting, runs, pairs, watching):
        unions = {
            name: value for name, value in vars(module).items() if get_origin(value) in (Literal, Union, UnionType)
        }
        aliases |= {name: value for name, value in unions.items() if name not in aliases}
    return aliases


_NAMED = _named()


def typescript(kind: Any, *, skipped: str = "") -> str:
    """A type of Python in TypeScript; `own` is the alias that is being declared."""
    if kind in _PLAIN or kind is object:
        return _PLAIN.get(kind, "unknown")
    name = next((name for name, alias in _NAMED.items() if name != skipped and alias == kind), "")
    if name:
        return name
    if is_typeddict(kind):
        return str(kind.__name__)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        parts = [part for arg in args for part in typescript(arg).split(" | ")] if skipped else [*map(typescript, args)]
        return " | ".join(dict.fromkeys(parts))
    if origin not in _FORMS:
        raise TypeError(f"{kind!r} has no form in TypeScript; add one to tests/support/twin.py")
    return _FORMS[origin](args)


def _list(args: Sequence[Any]) -> str:
    inner = typescript(args[0])
    return f"({inner})[]" if " | " in inner else f"{inner}[]"


_FORMS: dict[Any, Callable[[Sequence[Any]], str]] = {
    Annotated: lambda args: typescript(args[0]),
    Literal: lambda args: " | ".join(map(json.dumps, args)),
    list: _list,
    dict: lambda args: f"Record<string, {typescript(args[1])}>",
    tuple: lambda args: f"[{', '.join(map(typescript, args))}]",
}


def _comment(text: str, indent: str = "") -> str:
    """A JSDoc comment, "" for no text."""
    if not text:
        return ""
    line = f"{indent}/** {text} */\n"
    if len(line) <= _WIDTH + 1:
        return line
    lines = textwrap.wrap(text, _WIDTH - len(indent) - 3)
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"


def _interface(record: Any) -> str:
    head = f"{_comment(inspect.getdoc(record) or '')}export interface {record.__name__} {{"
    lines = [
        f"{_comment(text, '  ')}  {name}{'' if needed else '?'}: {typescript(hint)};\n"
        for name, (hint, text, needed) in fields_of(record).items()
    ]
    if not lines:
        return f"{_comment(inspect.getdoc(record) or '')}export type {record.__name__} = Record<string, never>;\n"
    return f"{head}\n{''.join(lines)}}}\n"


def _declared(module: ModuleType) -> list[str]:
    """Types and interfaces of a module, in its order."""
    declarations = []
    for name, value in vars(module).items():
        if name in ALIASES:
            continue
        if is_typeddict(value) and value.__module__ == module.__name__:
            declarations.append(_interface(value))
        elif name in _NAMED and _NAMED[name] is value:
            declarations.append(f"export type {name} = {typescript(value, skipped=name)};\n")
    return declarations


def _imports(body: str, sources: dict[str, list[str]]) -> str:
    """The imports that a body needs, of the names that other files export."""
    words = set("".join(letter if letter.isalnum() or letter == "_" else " " for letter in body).split())
    return "".join(
        f'import type {{ {", ".join(used)} }} from "{path}";\n'
        for path, names in sources.items()
        if (used := sorted(words.intersection(names)))
    )


def _names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if (is_typeddict(value) and value.__module__ == module.__name__)
        or (name in _NAMED and name not in ALIASES and _NAMED[name] is value)
    ]


def _module(module: ModuleType, others: dict[str, list[str]], more: str = "") -> str:
    body = "\n".join([*_declared(module), *([more] if more else [])])
    head = _HEAD.format(f"onnxlab/{module.__name__.removeprefix('onnxlab.').replace('.', '/')}.py")
    text = f"/** {(inspect.getdoc(module) or '').splitlines()[0]} */\n"
    imports = _imports(body, others)
    return "\n".join(filter(None, [head + text, imports, body]))


def _parameters(parameters: dict[str, Parameter]) -> str:
    if not parameters:
        return "Record<string, never>"
    listed = (
        f"{name}{'' if spec.required else '?'}: {typescript(spec.type)}{'' if spec.required else ' | null'}"
        for name, spec in parameters.items()
    )
    return f"{{ {'; '.join(listed)} }}"


def _traits(method: Method) -> str:
    flags = {name: True for name in ("repeatable", "long", "edits") if getattr(method, name)}
    recorded = {} if method.recorded is None else {"recorded": method.recorded}
    listed = ", ".join(f"{name}: {json.dumps(value)}" for name, value in {**flags, **recorded}.items())
    return f"{{ {listed} }}" if listed else "{}"


def _methods(name: str, table: Mapping[str, Method]) -> str:
    """The interface of a table of methods, and what is known of each."""
    rows = "".join(_comment(spec.text, "  ") + _row(method, spec) for method, spec in table.items())
    known = "".join(f"  {method}: {_traits(spec)},\n" for method, spec in table.items())
    kind = name.capitalize()
    edits = " | ".join(f'"{method}"' for method, spec in table.items() if spec.edits)
    text = "Methods that change the model, and say which version of it they are made on."
    return (
        (f"{_comment(text)}export type Edit{kind} = {edits};\n\n" if edits else "")
        + f"{_comment('Parameters and answer of each method.')}export interface {kind} {{\n{rows}}}\n\n"
        f"export const {name}: Record<keyof {kind}, MethodTraits> = {{\n{known}}};\n"
    )


def _row(name: str, spec: Method) -> str:
    """The parameters and the answer of a method, one a line where they are long."""
    parts = _parameters(dict(spec.parameters)), typescript(spec.answer)
    line = f"  {name}: [{', '.join(parts)}];\n"
    return line if len(line) <= _WIDTH + 1 else f"  {name}: [\n    {parts[0]},\n    {parts[1]},\n  ];\n"


def words() -> str:
    """kernel/protocol/words.ts."""
    traits = (
        ("recorded", "string", 'The parameter by which a page without a kernel holds the answers, "": it holds one.'),
        ("edits", "true", "Whether it changes the model."),
        ("long", "true", "Whether it may take long."),
        ("repeatable", "true", "Asking twice does no harm."),
    )
    fields = "".join(f"{_comment(text, '  ')}  {name}?: {kind};\n" for name, kind, text in reversed(traits))
    parts = [
        f"export const PROTOCOL = {PROTOCOL};\n",
        *(
            f"{_comment(text)}export type {name} = {typescript(alias, skipped=name)};\n"
            for name, (alias, text) in ALIASES.items()
        ),
        _interface(schema.Nothing),
        f"{_comment('The traits of a method.')}export interface MethodTraits {{\n{fields}}}\n",
    ]
    return "\n".join([_HEAD.format("onnxlab/notebook/protocol/schema.py"), *parts])


_BY_HAND = {name: spec for name, spec in EDITS.items() if name not in NOT_BY_HAND}
_TABLE = _HEAD.format("onnxlab/graph/edits/table.py")


def edits() -> str:
    """edit/edits.ts."""
    types = []
    for name, spec in _BY_HAND.items():
        optional = LEFT_OUT.get(name, set())
        listed = "".join(
            f"    {key}{'' if parameter.required and key not in optional else '?'}: {KINDS[parameter.kind].wire};\n"
            for key, parameter in spec.parameters.items()
        )
        types.append(f"{_comment(spec.summary, '  ')}  {name}: {{\n{listed}  }};\n" if listed else
                     f"{_comment(spec.summary, '  ')}  {name}: Record<string, never>;\n")  # fmt: skip
    return "\n".join(
        [
            _TABLE,
            *(f"{_comment(text)}export type {word} = {kind};\n" for word, (kind, text) in WORDS.items()),
            _comment("The parameters of every edit, as a request has them.")
            + f"export interface Edits {{\n{''.join(types)}}}\n",
            "export type EditName = keyof Edits;\n\n"
            'export type Subject = "model" | "graph" | "node" | "nodes" | "value";\n',
        ]
    )


def edit_fields() -> str:
    """edit/edit_fields.ts."""
    rows = []
    for name, spec in _BY_HAND.items():
        fields = "".join(
            f"      {key}: {_object(kind=parameter.kind, label=parameter.title, hint=parameter.hint)},\n"
            for key, parameter in spec.parameters.items()
            if parameter.title
        )
        on = ", ".join(f'"{subject}"' for subject in spec.subjects)
        inner = f"\n    on: [{on}],\n    fields: {{\n{fields}    }},\n  " if fields else f" on: [{on}], fields: {{}} "
        rows.append(f"  {name}: {{{inner}}},\n")
    return "\n".join(
        [
            _TABLE,
            'import type { EditName, Subject } from "./edits.ts";\n',
            "/** The name of a parameter in a form. */\n"
            "export interface EditField {\n  kind: string;\n  label: string;\n  hint?: string;\n}\n",
            "/** The subjects of each edit, and the parameters that forms ask for. */\n"
            "export const EDITS: Record<EditName, { on: readonly Subject[]; fields: Record<string, EditField> }> = {\n"
            f"{''.join(rows)}}};\n",
        ]
    )


def _object(**fields: str) -> str:
    listed = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items() if value)
    return f"{{ {', '.join(listed)} }}"


def files() -> dict[Path, str]:
    """Everything that is written, by its path."""
    folder = SOURCES / "kernel" / "protocol"
    union = "export type KernelEvent = " + " | ".join(event.__name__ for event in events.EVENTS) + ";\n"
    aliases = {"./words.ts": [*ALIASES, "Nothing", "MethodTraits"]}
    shared = {"./records.ts": _names(records)}
    of_runs = {"./runs.ts": _names(runs)}
    flags = "/** Bits of ValueRecord.flags. */\n" + "".join(
        f"export const {name} = {bit};\n" for name, bit in records.FLAGS.items()
    )
    return {
        folder / "words.ts": words(),
        folder / "records.ts": _module(records, aliases, flags),
        **{
            folder / f"{name.lower()}.ts": _module(
                module,
                {**shared, **(of_runs if module is pairs else {}), **aliases},
                _methods(name, getattr(module, name)),
            )
            for name, module in (
                ("QUESTIONS", questions),
                ("COMMANDS", commands),
                ("REWRITING", rewriting),
                ("RUNS", runs),
                ("PAIRS", pairs),
                ("WATCHING", watching),
            )
        },
        folder / "events.ts": _module(events, {**shared, **aliases}, union),
        SOURCES / "edit" / "edits.ts": edits(),
        SOURCES / "edit" / "edit_fields.ts": edit_fields(),
    }


if __name__ == "__main__":
    for path, text in files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
