"""Tables of weak references, from several threads."""

import gc
import threading

from onnxlab.shapes import TensorFact, symbol
from onnxlab.shapes.facts import _interned


def test_expressions_without_references_are_forgotten() -> None:
    fact = TensorFact(1, (symbol("forgotten"), 12345))
    key = (1, fact.shape, None)
    assert _interned[key]() is fact
    del fact
    gc.collect()
    assert key not in _interned


def test_threads_get_the_same_object_while_others_let_go_of_it() -> None:
    stop = threading.Event()
    wrong: list[object] = []

    def make() -> None:
        while not stop.is_set():
            first, second = TensorFact(1, (987654,)), TensorFact(1, (987654,))
            if first is not second:
                wrong.append(first)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    stop.wait(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
