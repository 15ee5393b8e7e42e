"""Private attributes of runners and regions that tests read: the one place that knows them."""

from collections.abc import Iterable, Sequence
from typing import Any

from onnxlab.execution.numba.region.region import Region
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import Call
from onnxlab.execution.program.program import Program
from onnxlab.execution.run import value_computation
from onnxlab.execution.run.runner import Runner


class By:
    """A runner whose runs are by other providers than its own."""

    def __init__(self, runner: Runner, providers: Sequence[Any]) -> None:
        self.runner = runner
        self.programs = runner.by(providers)

    def run(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """`Runner.run` by these providers."""
        return self.runner.run(*arguments, **options, by=self.programs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runner, name)


def compiler_of(runner: Runner | By) -> Compiler:
    """The compiler of the last run."""
    compiler = runner.programs.compiled
    assert compiler is not None
    return compiler


def compilers_for_shapes(runner: Runner | By) -> list[Compiler]:
    """The compilers that the compiler of the last run has for feeds of certain shapes."""
    return [compiler for key, compiler in compiler_of(runner).others.items() if isinstance(key, tuple)]


def programs_of(runner: Runner | By) -> Iterable[Program]:
    """The programs of the last run's compiler."""
    return compiler_of(runner).programs.values()


def fallbacks_of(runner: Runner | By) -> Any:
    """The fallback programs used until those in the background are compiled."""
    return runner.programs.fallbacks


def specialized_of(runner: Runner | By) -> Any:
    """{key: specialization} of runs that were made before."""
    return runner.programs.specialized


def plans_of(region: Region) -> Any:
    """{shapes: plan or fallback} of a region."""
    return region._plans


def inner_values_of(runner: Runner | By) -> dict[str, Any]:
    """All values that the parts of the last run, which kept its border, can tell by themselves."""
    compiler, run = runner.programs.current(), runner.store.last_run()
    values: dict[str, Any] = {}
    for instruction in run.program.instructions if run is not None else ():
        dtypes = value_computation.places(run, instruction, compiler)
        if dtypes:
            values |= value_computation._read(run, instruction, dtypes, Call(None, None, None, 1))
    return values
