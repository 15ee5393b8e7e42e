"""What tests look at inside of runners and regions: the one place that knows their private attributes."""

from collections.abc import Iterable
from typing import Any

from onnxlab.execution.numba.region.region import Region
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import Call
from onnxlab.execution.program.program import Program
from onnxlab.execution.run import inner_values
from onnxlab.execution.run.runner import Runner


def current_programs(runner: Runner) -> tuple[Compiler, Any]:
    """The compiler of the model as it is now, and its programs."""
    return runner.programs.current()


def compiler_of(runner: Runner) -> Compiler:
    """The compiler of the last run."""
    return runner.programs.compiled[0]


def programs_of(runner: Runner) -> Iterable[Program]:
    """The programs of the last run's compiler."""
    return runner.programs.compiled[1].values()


def fallbacks_of(runner: Runner) -> Any:
    """The programs that stand in for those compiled in the background."""
    return runner.programs.fallbacks


def incremental_plans_of(runner: Runner) -> Any:
    """{key: plan} of the incremental runs."""
    return runner._kept.plans


def plans_of(region: Region) -> Any:
    """{shapes: plan or fallback} of a region."""
    return region._plans


def inner_values_of(runner: Runner) -> dict[str, Any]:
    """All values that the parts of the last run, which kept its border, can tell by themselves."""
    compiler, state = runner.programs.current()[0], runner.store.current()
    run = runner.store.recent(state)
    values: dict[int, Any] = {}
    for part in inner_values._insides(run, state, compiler) if run is not None else ():
        values |= inner_values._read(part, compiler, list(part.names), Call(None, None, None, 1))
    return {compiler.names[value]: array for value, array in values.items()}
