"""Steps of a trace as a tree: children below their parents, in order of their numbers. Deep and long traces render without recursion."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator

from guardhook.store.model import Step
from guardhook.views.text import Paint, cells, one_line
from guardhook.views.timeline import head

DEEPEST = 40


class Shape:
    """Who is below whom, in three numbers a step."""

    def __init__(self, links: Iterable[tuple[int, int | None]]) -> None:
        self.numbers = array("q")
        parents = array("q")
        for number, parent in links:
            self.numbers.append(number)
            # Only an earlier step can be a parent; so there are no cycles, whatever the rows say.
            parents.append(parent if parent is not None and parent < number else 0)
        index = {number: place for place, number in enumerate(self.numbers)}
        size = len(self.numbers)
        self.first = array("q", [-1]) * size
        self.next = array("q", [-1]) * size
        self.roots: list[int] = []
        # From the end, so that each list of children comes out in order.
        for place in range(size - 1, -1, -1):
            above = index.get(parents[place])
            if above is None:
                self.roots.append(place)
            else:
                self.next[place], self.first[above] = self.first[above], place

    def walk(self) -> Iterator[tuple[int, int]]:
        """Step numbers with their depth, parents first."""
        stack = [(place, 0) for place in self.roots]
        while stack:
            place, depth = stack.pop()
            yield self.numbers[place], depth
            below = self.first[place]
            children = []
            while below >= 0:
                children.append((below, depth + 1))
                below = self.next[below]
            stack.extend(reversed(children))


def lines(shape: Shape, get: Callable[[int], Step | None], width: int, paint: Paint) -> Iterator[str]:
    """The tree's lines. get gives a step by number."""
    for number, depth in shape.walk():
        step = get(number)
        if step is None:
            continue
        shown = min(depth, DEEPEST)
        # Deep levels keep a third of the width for what is said.
        before = "  " * min(shown, max(0, width // 3)) + ("└─ " if depth else "")
        if depth > DEEPEST:
            before += f"[depth {depth}] "
        yield head(step, width, paint, before=before)
        inner = " " * min(cells(before) + 2, max(0, width - 20))
        room = max(10, width - len(inner))
        if step.caused_by_step_number is not None:
            yield inner + paint.dim(f"⟵ caused by #{step.caused_by_step_number}")
        if step.chosen is not None:
            yield inner + paint.dim("chose ") + one_line(step.chosen, room - 6)
        if step.error is not None:
            yield inner + paint.red("error ") + one_line(step.error, room - 6)
