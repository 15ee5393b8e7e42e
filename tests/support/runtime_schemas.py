"""The table of the schemas that ONNX Runtime adds to ONNX's, made from what an installed onnxruntime says.

    python -m tests.support.runtime_schemas             writes onnxlab/data/runtime_schemas.txt
    python -m tests.support.runtime_schemas FILE        writes what the installed onnxruntime has into FILE

onnxruntime-training replaces onnxruntime, so its operators come from an environment of its own: write a FILE there, and
give it as `--training FILE` here. Without it the rows of training operators stay as they are in the table.
"""

import json
import sys
from pathlib import Path
from typing import Any

import onnx

TABLE = Path(__file__).parents[2] / "onnxlab" / "data" / "runtime_schemas.txt"
_MARKS = {"Single": "", "Optional": "?", "Variadic": "*"}
_MANY = (1 << 31) - 1

HALVES = TABLE.with_name("cpu_float16.txt")

Row = tuple[str, str, int, dict[str, Any]]
"""(domain, operator, since_version, entry), types as lists of names."""


def installed() -> list[Row]:
    """Rows of every schema of the installed onnxruntime that onnx does not have."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    standard = {(raw.domain, raw.name, raw.since_version) for raw in onnx.defs.get_all_schemas_with_history()}
    rows = [
        (raw.domain, raw.name, raw.since_version, entry(raw))
        for raw in state.get_all_operator_schema()
        if (raw.domain, raw.name, raw.since_version) not in standard
    ]
    return sorted(rows, key=lambda row: row[:3])


def entry(raw: Any) -> dict[str, Any]:
    """One of onnxruntime's schemas as a row says it."""
    counts = (raw.min_input, raw.max_input, raw.min_output, raw.max_output)
    row: dict[str, Any] = {
        "n": ["*" if count >= _MANY else count for count in counts],
        "i": [_formal(formal) for formal in raw.inputs],
        "o": [_formal(formal) for formal in raw.outputs],
    }
    if attributes := {name: _attribute(spec) for name, spec in sorted(raw.attributes.items())}:
        row["a"] = attributes
    if types := {entry.type_param_str: sorted(entry.allowed_type_strs) for entry in raw.type_constraints}:
        row["t"] = types
    if raw.deprecated:
        row["d"] = 1
    return row


def _formal(formal: Any) -> str:
    mark = _MARKS[formal.option.name]
    return f"{formal.name}:{formal.typeStr}{mark}{'' if formal.isHomogeneous or mark != '*' else '~'}"


def _attribute(spec: Any) -> list[Any]:
    kind = spec.type.name.lower()
    if spec.required:
        return [kind, None, "required"]
    proto = onnx.AttributeProto.FromString(spec._default_value)
    if not proto.type:
        return [kind]
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        value = value.decode()
    elif isinstance(value, (list, tuple)) or hasattr(value, "__iter__"):
        value = [item.decode() if isinstance(item, bytes) else item for item in value]
    return [kind, value]


def table(rows: list[Row]) -> str:
    """The text of the table: sets of types on its first line, then a line for each row."""
    sets: dict[tuple[str, ...], int] = {}
    lines = []
    for domain, op_type, since, fields in sorted(rows, key=lambda row: row[:3]):
        types = {name: sets.setdefault(tuple(names), len(sets)) for name, names in fields.get("t", {}).items()}
        numbered = {**fields, "t": types} if types else fields
        lines.append(f"{domain}\t{op_type}\t{since}\t{json.dumps(numbered, separators=(',', ':'))}\n")
    return json.dumps(list(sets), separators=(",", ":")) + "\n" + "".join(lines)


def read(text: str) -> list[Row]:
    """The rows of a table."""
    first, *lines = text.splitlines()
    sets, rows = json.loads(first), []
    for line in lines:
        domain, op_type, since, rest = line.split("\t", 3)
        fields = json.loads(rest)
        if "t" in fields:
            fields["t"] = {name: sets[number] for name, number in fields["t"].items()}
        rows.append((domain, op_type, int(since), fields))
    return rows


def training(rows: list[Row], known: list[Row]) -> list[Row]:
    """The rows of operators that only onnxruntime-training has, marked so."""
    standard = {row[:2] for row in known}
    return [(*row[:3], {**row[3], "r": "onnxruntime-training"}) for row in rows if row[:2] not in standard]


def mark_unchecked(rows: list[Row]) -> None:
    """Mark the operators of which onnxruntime takes attributes that their schemas lack.

    No schema says so, therefore it is asked with a model of each. The table must have the rows already.
    """
    from onnxlab import schemas
    from tests.support.one_operator import sound
    from tests.support.ort_judge import OrtJudge

    with OrtJudge() as judge:
        for domain, op_type, since, fields in rows:
            schema = schemas.find(domain, op_type, since)
            model = sound(schema) if schema is not None and domain not in schemas.OFFICIAL else None
            if model is None or judge.refusal(model.SerializeToString()) != "":
                continue
            model.graph.node[0].attribute.append(onnx.helper.make_attribute("no_such_attribute", 1))
            if judge.refusal(model.SerializeToString()) == "":
                fields["u"] = 1


def half_precision() -> str:
    """Operators of which the installed onnxruntime has a kernel for the processor that takes or makes float16."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = {
        f"{kernel.domain}:{kernel.op_name}"
        for kernel in state.get_all_opkernel_def()
        if kernel.provider == "CPUExecutionProvider"
        and any("float16" in name for types in kernel.type_constraints.values() for name in types)
    }
    return "".join(f"{name}\n" for name in sorted(names))


def main(arguments: list[str]) -> None:
    """Write the table."""
    rows = installed()
    HALVES.write_text(half_precision(), encoding="utf-8")
    if arguments and arguments[0] != "--training":
        Path(arguments[0]).write_text(table(rows), encoding="utf-8")
        return
    if arguments:
        more = training(read(Path(arguments[1]).read_text(encoding="utf-8")), rows)
    else:
        more = [row for row in read(TABLE.read_text(encoding="utf-8")) if row[3].get("r")]
    TABLE.write_text(table([*rows, *more]), encoding="utf-8")
    mark_unchecked(rows)
    TABLE.write_text(table([*rows, *more]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
