"""Operator documentation as text."""

import re

from onnxlab.notebook.panels.json_values import on_wire
from onnxlab.runtime_schemas import documented
from onnxlab.schemas import FormalParameter, Schema

_SENTENCE = re.compile(r"(.+?[.!?])(\s|$)", re.DOTALL)


def first_sentence(doc: str) -> str:
    """The first sentence of a documentation, on one line; at most 300 characters."""
    text = doc.strip()
    match = _SENTENCE.match(text)
    text = " ".join((match.group(1) if match else text.partition("\n\n")[0]).split())
    return text if len(text) <= 300 else text[:299] + "…"


def documentation(schema: Schema) -> str:
    """An operator's documentation with its inputs, outputs and attributes, as text."""
    schema = documented(schema)
    parts = [unwrapped(schema.doc.strip())]
    for title, formals in (("Inputs", schema.inputs), ("Outputs", schema.outputs)):
        if formals:
            parts.append("\n".join([title, *(_formal_line(formal, schema) for formal in formals)]))
    if schema.attributes:
        lines = []
        for spec in schema.attributes.values():
            note = "required" if spec.required else "" if spec.default is None else f"default {on_wire(spec.default)!r}"
            lines.append(f"  {spec.name} ({', '.join(filter(None, (spec.type, note)))}): {_one_line(spec.doc)}")
        parts.append("\n".join(["Attributes", *lines]))
    return "\n\n".join(part for part in parts if part)


_APART = re.compile(r"\s{4}|\s*([-*|#>=+]|\d+[.)]|`{3}|$)")
"""Lines that are not joined with the line before: code, list items, tables, headings, fences."""


def unwrapped(text: str) -> str:
    """A text with each paragraph on one line, so that the page wraps it; code, lists and tables stay."""
    lines: list[str] = []
    fenced = joins = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        apart = fenced or fence or _APART.match(line) is not None
        if joins and not apart:
            lines[-1] = f"{lines[-1].rstrip()} {line.strip()}"
        else:
            lines.append(line)
        fenced = fenced != fence
        joins = not fenced and not fence and bool(line.strip()) and not line.startswith("    ")
    return "\n".join(lines)


def _formal_line(formal: FormalParameter, schema: Schema) -> str:
    types = schema.type_constraints.get(formal.type_str, (formal.type_str,))
    kinds = ", ".join(name.removeprefix("tensor(").removesuffix(")") for name in types[:6])
    more = ", …" if len(types) > 6 else ""
    option = "" if formal.option == "single" else f", {formal.option}"
    return f"  {formal.name} ({kinds}{more}{option}): {_one_line(formal.doc)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
