from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamfleet.task.binary_heap import BinaryHeap


def pop_all(heap: BinaryHeap[tuple[int, str]]) -> list[tuple[int, str]]:
    items = []
    while (item := heap.pop()) is not None:
        items.append(item)
    return items


@given(st.lists(st.integers(-5, 5)))
def test_items_come_out_by_key(keys):
    heap: BinaryHeap[int] = BinaryHeap(lambda item: item)
    for key in keys:
        heap.push(key)
    assert [heap.pop() for _ in keys] == sorted(keys)
    assert heap.pop() is None


@given(st.lists(st.one_of(st.integers(0, 3), st.none())))
def test_pushes_and_pops_may_be_mixed(steps):
    heap: BinaryHeap[int] = BinaryHeap(lambda item: item)
    model: list[int] = []
    for step in steps:
        if step is None:
            assert heap.pop() == (model.pop(0) if model else None)
        else:
            heap.push(step)
            model = sorted([*model, step])
        assert heap.peek() == (model[0] if model else None)
        assert len(heap) == len(model)


def test_ties_come_out_as_from_a_java_priority_queue():
    heap: BinaryHeap[tuple[int, str]] = BinaryHeap(lambda item: item[0])
    for name in "abcde":
        heap.push((0, name))
    # The last item takes the place of the root and stays there if nothing is smaller: a, then e, d, c, b.
    assert [name for _, name in pop_all(heap)] == ["a", "e", "d", "c", "b"]


def test_of_two_equal_items_the_first_pushed_comes_first():
    heap: BinaryHeap[tuple[int, str]] = BinaryHeap(lambda item: item[0])
    heap.push((15, "first"))
    heap.push((15, "second"))
    heap.push((5, "earlier"))
    assert [name for _, name in pop_all(heap)] == ["earlier", "first", "second"]
