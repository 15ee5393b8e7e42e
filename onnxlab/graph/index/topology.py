"""Orders of small integers by their dependencies. Pure functions without recursion; they know nothing of ONNX."""

from collections.abc import Callable, Iterable, Mapping, Sequence


def topological_order(nodes: Sequence[int], producers: Callable[[int], Iterable[int]]) -> list[int]:
    """Return `nodes` with every producer before its consumers, otherwise as close to the given order as that allows.

    Nodes on a cycle, or downstream of one, come at the end in the given order. Time is linear in nodes and edges.

    The recursive equivalent, for a graph without cycles::

        def visit(node):
            for producer in producers(node): visit(producer)
            if node not in done: done.append(node)
    """
    missing: dict[int, int] = {}
    consumers: dict[int, list[int]] = {}
    for node in nodes:
        sources = set(producers(node))
        missing[node] = len(sources)
        for source in sources:
            consumers.setdefault(source, []).append(node)
    order: list[int] = []
    placed: set[int] = set()
    for start in nodes:
        if missing[start] or start in placed:
            continue
        stack = [start]
        while stack:
            node = stack.pop()
            order.append(node)
            placed.add(node)
            for consumer in reversed(consumers.get(node, ())):
                missing[consumer] -= 1
                if not missing[consumer] and consumer not in placed:
                    stack.append(consumer)
    order.extend(node for node in nodes if node not in placed)
    return order


def reachable(
    starts: Iterable[int], neighbors: Callable[[int], Iterable[int]], allowed: Callable[[int], bool]
) -> set[int]:
    """Everything that can be reached from `starts`, which count as reached, over nodes that are `allowed`."""
    reached = set(starts)
    stack = list(reached)
    while stack:
        for neighbor in neighbors(stack.pop()):
            if neighbor not in reached and allowed(neighbor):
                reached.add(neighbor)
                stack.append(neighbor)
    return reached


def is_acyclic(edges: Mapping[int, set[int]]) -> bool:
    """Whether edges, by where they come from, form no cycle."""
    boxes: set[int] = set(edges).union(*edges.values())
    waits = dict.fromkeys(boxes, 0)
    for targets in edges.values():
        for target in targets:
            waits[target] += 1
    ready = [box for box, count in waits.items() if not count]
    done = 0
    empty: Iterable[int] = ()
    while ready:
        done += 1
        for target in edges.get(ready.pop(), empty):
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return done == len(boxes)
