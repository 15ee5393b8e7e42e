"""Objects made while no garbage is collected end in the oldest generation, and are freed without references."""

import gc
import weakref

import pytest

from onnxlab import garbage_collection
from onnxlab.garbage_collection import about_to_hold, no_collection


class Knot:
    """Something that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.slow
def test_what_was_made_is_not_looked_through_at_once_and_goes_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "AGED", 5_000)
    monkeypatch.setattr(garbage_collection, "_aged", 0)
    seen: list[weakref.ref[Knot]] = []
    for _ in range(4):
        with no_collection():
            assert not gc.isenabled()
            knots = [Knot() for _ in range(2_000)]
        assert gc.isenabled()
        assert gc.get_count()[0] < 1_000, "they are among the old ones"
        seen.append(weakref.ref(knots[0]))
        del knots
    assert seen[0]() is None, "the whole collection of the fourth time took it"
    assert seen[-1]() is not None
    gc.collect()
    assert seen[-1]() is None


def test_objects_frozen_by_others_stay_frozen_and_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    count = gc.get_freeze_count
    monkeypatch.setattr(garbage_collection, "_foreign", False)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.append(count()) or counts[-1])
    gc.collect()
    gc.freeze()
    try:
        frozen = count()
        for _ in range(3):
            with no_collection():
                pass
        assert count() == frozen > 0
        assert len(counts) == 1, "Python counts them one by one"
    finally:
        gc.unfreeze()


def test_where_nothing_is_collected_that_stays_so() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_large_model_that_was_dropped_goes_before_another_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "HELD", 300)
    monkeypatch.setattr(garbage_collection, "_held", 0)
    seen: list[weakref.ref[Knot]] = []
    for _ in range(3):
        about_to_hold(200)
        seen.append(weakref.ref(Knot()))
    assert [knot() is None for knot in seen] == [True, True, False]
    gc.disable()
    try:
        about_to_hold(200)
        assert seen[-1]() is not None, "the caller that disabled the collector decides"
    finally:
        gc.enable()


def test_a_picture_waits_for_a_collection_only_after_much_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_aged", garbage_collection.AGED + 1)
    seen = weakref.ref(Knot())
    with no_collection(most=garbage_collection.PATIENCE * garbage_collection.AGED):
        assert seen() is not None
    with no_collection():
        assert seen() is None
