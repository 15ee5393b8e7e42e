"""Values of the last run, computed as far as they can be: where a node fails, those that do not depend on it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxlab.errors import LimitError, RunError, RunStopped
from onnxlab.limits import Limits

if TYPE_CHECKING:
    from onnxlab.execution.run.runner import Runner

_SHOWN = 3


def keep_computable(runner: "Runner", limits: Limits | None = None) -> dict[str, RunError]:
    """Compute and keep all values that can be computed from the inputs of the last run, as far as the budget allows.

    Returns:
        dict[str, RunError]: what failed, by the names of the values that cannot be computed for that.

    Raises:
        LimitError, RunStopped: as `Runner.run`.
    """
    try:
        runner.on_demand.keep_all(limits)
    except (LimitError, RunStopped):
        raise
    except RunError:
        return _one_by_one(runner, limits)
    return {}


def failure_text(failed: Mapping[str, RunError], total: int) -> str:
    """Text about values that cannot be computed, out of `total`: how many, the first ones, and one reason."""
    names, error = list(failed), next(iter(failed.values()))
    shown = ", ".join(map(repr, names[:_SHOWN])) + ", …" * (len(names) > _SHOWN)
    return f"{len(names)} of {total} values cannot be computed: {shown}: {error}"


def _one_by_one(runner: "Runner", limits: Limits | None) -> dict[str, RunError]:
    """Compute each value from those before it; those behind a node that failed are not tried."""
    compiler, names = runner.programs.current(), {*runner.on_demand.known_names()}
    failed = dict[str, RunError]()
    for node in compiler.main.scope.nodes:
        causes = [failed[read] for read in compiler.main.reads(node) if read in failed]
        for name in names.intersection(node.outputs):
            if causes:
                failed[name] = causes[0]
                continue
            try:
                runner.value(name, limits)
            except (LimitError, RunStopped):
                raise
            except RunError as error:
                failed[name] = error
    return failed
