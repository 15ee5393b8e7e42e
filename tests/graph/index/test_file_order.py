"""A FileOrder is a list that also knows where a label stands."""

import random

import pytest

from onnxlab.graph.index import file_order
from onnxlab.graph.index.file_order import FileOrder


@pytest.mark.parametrize("seed", range(8))
def test_it_is_a_list_that_finds_positions(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(file_order, "BLOCK", 4)
    rng = random.Random(seed)
    ids = list(range(1, rng.randrange(2, 30)))
    order = FileOrder(ids)
    labels = dict(order.spread())
    for ident in range(100, 700):
        if ids and rng.random() < 0.45:
            victim = rng.choice(ids)
            order.remove(labels[victim])
            ids.remove(victim)
        else:
            # often the same place, until its gap is used up
            position = min(len(ids), 3) if rng.random() < 0.4 else rng.randint(0, len(ids))
            label = order.insert(position, ident)
            if not label:
                labels = dict(order.spread())
                label = order.insert(position, ident)
            labels[ident] = label
            ids.insert(position, ident)
        if rng.random() < 0.5:
            continue  # several nodes come and go between two reads
        assert [order.position(labels[placed]) for placed in ids] == list(range(len(ids)))
        assert (list(order), len(order), list(reversed(order))) == (ids, len(ids), ids[::-1])
    assert [order[at] for at in range(-len(ids), len(ids))] == ids + ids
    assert order[2:-1] == ids[2:-1]
    with pytest.raises(IndexError, match="no node at position"):
        order[len(ids)]
