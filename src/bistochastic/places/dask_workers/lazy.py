"""Operations on blocks that are noted first and done later, many in one task."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

NUMBERS = count()


class Node:
    """An array that is known, or how it is made of others.

    Attributes
    ----------
    number : int
        The older, the lower.
    op, args : callable and tuple
        How it is made.
    blocks : list of Future, or None
        What tasks make, once that is known.
    at : int or None
        Which of several things that these make.
    """

    def __init__(self, op: Any = None, args: tuple[Any, ...] = ()) -> None:
        self.number = next(NUMBERS)
        self.op = op
        self.args = args
        self.blocks: list[Any] | None = None
        self.at: int | None = None

    def settle(self, blocks: list[Any], at: int | None = None) -> None:
        """Keep the blocks, and forget how they came about."""
        self.op, self.args, self.blocks, self.at = None, (), blocks, at


class With:
    """A function with options, compared by neither."""

    def __init__(self, op: Callable[..., Any], options: dict[str, Any]) -> None:
        self._op, self._options = op, options

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        return self._op(*args, **self._options)


class Steps:
    """Operations one after the other, for a block."""

    def __init__(self, steps: Any, leaves: Any) -> None:
        self._steps, self._leaves = steps, leaves

    def of(self, given: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the arrays that are given, and those that are made of them."""
        leaves = [
            given[which] if at is None else given[which][at]
            for which, at in self._leaves
        ]
        made: list[Any] = []
        with np.errstate(all="ignore"):  # what is not finite is judged by the caller
            for op, args in self._steps:
                made.append(
                    op(*((leaves[-1 - x] if x < 0 else made[x]) if known else x
                         for known, x in args))
                )  # fmt: skip
        return leaves, made


class Program:
    """Puts what is noted in order.

    Attributes
    ----------
    given : list of list of Future
        The blocks that it begins with.
    """

    def __init__(self) -> None:
        self.given: list[list[Any]] = []
        self._steps: list[Any] = []
        self._leaves: list[Any] = []
        self._places: dict[int, int] = {}
        self._known: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def steps(self) -> Steps:
        """Return what tasks need."""
        return Steps(tuple(self._steps), tuple(self._leaves))

    def place(self, node: Node) -> int:
        """Return the step that makes an array; below 0, which one is given."""
        stack = [node]
        while stack:
            top = stack[-1]
            if id(top) in self._places:
                stack.pop()
            elif top.blocks is not None:
                self._places[id(top)] = -1 - len(self._leaves)
                which = self._known.setdefault(id(top.blocks), len(self.given))
                if which == len(self.given):
                    self.given.append(top.blocks)
                self._leaves.append((which, top.at))
            else:
                nodes = [x for x in top.args if isinstance(x, Node)]
                missing = [x for x in nodes if id(x) not in self._places]
                stack.extend(missing)
                if not missing:
                    self._places[id(top)] = len(self._steps)
                    self._steps.append(
                        (
                            top.op,
                            tuple(
                                (True, self._places[id(x)])
                                if isinstance(x, Node)
                                else (False, x)
                                for x in top.args
                            ),
                        )
                    )
        return self._places[id(node)]


def one_of(steps: Steps, wanted: int, *given: Any) -> Any:
    """Return one array that the steps make."""
    leaves, made = steps.of(given)
    return leaves[-1 - wanted] if wanted < 0 else made[wanted]


def several_of(steps: Steps, wanted: tuple[int, ...], *given: Any) -> list[Any]:
    """Return several arrays that the steps make."""
    leaves, made = steps.of(given)
    return [leaves[-1 - x] if x < 0 else made[x] for x in wanted]
