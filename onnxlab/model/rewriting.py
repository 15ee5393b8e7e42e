"""Rewriting a Model: fewer nodes that compute the same, tried before it stays."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.transforms import engine
from onnxlab.transforms.receipt import Receipt
from onnxlab.transforms.rewriting import BUDGET, Options
from onnxlab.transforms.rules import table
from onnxlab.transforms.verified import Rewrite, Trust


class Rewriting:
    """Rewrites of a Model, as members."""

    __slots__ = ()

    graph: ModelGraph
    inference: Inference
    runner: Runner

    def simplify(
        self,
        *,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        protect: Collection[str] = (),
        budget: int = BUDGET,
        finite_only: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Leave less of the model without changing what it computes, as one step of the history.

        What depends on no input is computed and stored, sizes that inference knows are stored, and nodes that do
        nothing, undo or repeat each other, or that nothing needs are taken out. Names of values that stay are kept.

        Args:
            verify: run the model before and after on inputs of several kinds; an application of a rule that changes
                an output is taken back, and the receipt says which.
            samples: inputs to verify with, in place of made-up ones.
            protect: names of nodes, values, graphs and functions that stay as they are, and prefixes of the names of
                nodes that end in "/".
            budget: bytes that stored results may add to the model.
            finite_only: accept what differs for NaN and infinities alone.
            dry_run: only say what would be done.

        Returns:
            Receipt: each application of a rule, what was lost, and what running both models said.

        Raises:
            EditError: the model must not be edited.

        Examples:
            >>> receipt = model.simplify()
            >>> receipt.nodes[1] <= receipt.nodes[0]
            True
        """
        plan = engine.standard(table.up_to("basic"))
        options = Options(frozenset(protect), budget)
        made = Rewrite(self.graph, self.inference, "simplify", plan, options, Trust(verify, samples, finite_only))
        return made.look() if dry_run else made.do()
