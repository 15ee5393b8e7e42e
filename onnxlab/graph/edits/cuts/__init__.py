"""Cuts of a model in place.

Files:
    cutting  Cut a model in place: end it at some of its values, or let it start at others.
"""

from onnxlab.graph.edits.cuts.cutting import Cut, cut, label_of, plan_behind, plan_cut, remove_behind

__all__ = ["Cut", "cut", "label_of", "plan_behind", "plan_cut", "remove_behind"]
