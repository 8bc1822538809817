"""Vectors in blocks of rows on Dask workers, and the functions that texts call on them.

An operation on rows is only noted. What is noted is done when a number is asked for or
a graph meets a vector: one task for each block then does all of it. Blocks are made by
tasks and never scattered, so that Dask makes again what a worker took with it.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.lazy import (
    Node,
    Program,
    With,
    one_of,
    several_of,
)

DEEP = 60  # operations on vectors that may wait


class Noted:
    """What users hold: an array in blocks, or a small one made of all blocks."""

    layout: Layout

    def __init__(self, layout: Layout, node: Node) -> None:
        self.layout = layout
        self.node = node
        if node.blocks is None:
            layout.waiting.add(self)


class BlockArray(Noted):
    """An array of n rows in blocks.

    Parameters
    ----------
    layout : Layout
        The blocks.
    node : Node
        The array.
    tail : tuple of int
        Its shape without the rows.
    dtype : numpy.dtype
        Its numbers.
    """

    __array_priority__ = 1000.0
    __array_ufunc__ = None  # so that NumPy leaves operators to this class

    def __init__(
        self, layout: Layout, node: Node, tail: tuple[int, ...], dtype: Any
    ) -> None:
        self.tail = tuple(tail)
        self.dtype = np.dtype(dtype)
        super().__init__(layout, node)

    @classmethod
    def held(
        cls, layout: Layout, blocks: list[Any], tail: Any = (), dtype: Any = float
    ) -> "BlockArray":
        """Hold blocks that tasks make."""
        node = Node()
        node.settle(blocks)
        return cls(layout, node, tail, dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and of columns if there are such."""
        return (self.layout.n, *self.tail)

    @property
    def ndim(self) -> int:
        """One, or two with columns."""
        return 1 + len(self.tail)

    @property
    def device(self) -> str:
        """Where it is."""
        return "cpu"

    @property
    def T(self) -> "Transposed":
        """The transpose, to multiply another array of n rows with."""
        return Transposed(self)

    def blocks(self) -> list[Any]:
        """Return futures of the blocks."""
        node = self.node
        if node.blocks is None:
            settle(self.layout)
        assert node.blocks is not None
        if node.at is not None:
            node.settle(self.layout.each("row", operator.getitem, node.blocks, node.at))
        return node.blocks

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        made = np.concatenate(self.layout.gather(self.blocks()))
        return made if dtype is None else made.astype(dtype)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        from bistochastic.places.dask_workers.namespace import NAMESPACE

        return NAMESPACE

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray):
            return self.fetched(key)
        keys = key if isinstance(key, tuple) else (key,)
        if keys[0] != slice(None):
            raise TypeError("rows on workers are picked by an array of their numbers")
        return noted(operator.getitem, self, key)

    def fetched(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows."""
        layout, blocks = self.layout, self.blocks()
        owner = np.searchsorted(layout.starts, rows, side="right") - 1
        out = np.empty((len(rows), *self.tail), dtype=self.dtype)
        places = {k: np.flatnonzero(owner == k) for k in np.unique(owner).tolist()}
        parts = [
            layout.submit(
                "fetched", k, np.take, blocks[k], rows[at] - layout.starts[k], 0
            )
            for k, at in places.items()
        ]
        for at, part in zip(places.values(), layout.gather(parts), strict=True):
            out[at] = part
        return out

    def __len__(self) -> int:
        return self.layout.n

    def __invert__(self) -> "BlockArray":
        return noted(operator.invert, self)

    def __neg__(self) -> "BlockArray":
        return noted(operator.neg, self)

    def __matmul__(self, other: Any) -> "BlockArray":
        return noted(operator.matmul, self, np.asarray(other))


class Transposed:
    """The transpose of an array in blocks."""

    def __init__(self, of: BlockArray) -> None:
        self._of = of

    def __matmul__(self, other: BlockArray) -> "Small":
        node = Node(_crossed, (self._of.node, other.node))
        return Small(self._of.layout, node, sum)


def _crossed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x.T @ y


class Figure(ABC):
    """A small array that is not known before somebody looks at it."""

    __array_priority__ = 1000.0
    __array_ufunc__ = None

    @property
    @abstractmethod
    def value(self) -> np.ndarray:
        """The array, which is waited for."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.value if dtype is None else self.value.astype(dtype)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    @property
    def dtype(self) -> Any:
        """Its numbers."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.value.shape

    @property
    def T(self) -> np.ndarray:
        """The transpose."""
        return self.value.T

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]

    def __matmul__(self, other: Any) -> "Figure":
        return Computed(operator.matmul, (self, other))

    def __rmatmul__(self, other: Any) -> "Figure":
        return Computed(operator.matmul, (other, self))

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        from bistochastic.places.dask_workers.namespace import NAMESPACE

        return NAMESPACE


class Small(Noted, Figure):
    """A number, or a small array, made of all blocks.

    Parameters
    ----------
    layout : Layout
        The blocks.
    node : Node
        What is made of each block.
    joined : callable
        Makes one of a list of these.
    """

    def __init__(self, layout: Layout, node: Node, joined: Callable[..., Any]) -> None:
        self._joined = joined
        self._value: Any = None
        super().__init__(layout, node)

    def known(self, parts: list[Any]) -> None:
        """Keep the value that blocks gave."""
        self._value = np.asarray(self._joined(parts))
        self.node.settle([])

    @property
    def value(self) -> np.ndarray:
        """The array, which is waited for."""
        if self._value is None:
            look(self.layout)
        return self._value


class Computed(Figure):
    """What a function makes of small arrays, when somebody looks at it."""

    def __init__(self, op: Callable[..., Any], args: Any, options: Any = None) -> None:
        self._made = op, args, options or {}
        self._value: Any = None

    @property
    def value(self) -> np.ndarray:
        """The array, which is waited for."""
        if self._value is None:
            op, args, options = self._made
            with np.errstate(all="ignore"):
                self._value = np.asarray(op(*map(known_value, args), **options))
        return self._value


def _on_rows(name: str) -> None:
    op = getattr(operator, name)

    def left(self: BlockArray, other: Any) -> BlockArray:
        return noted(op, self, other)

    def right(self: BlockArray, other: Any) -> BlockArray:
        return noted(op, other, self)

    def number(self: Figure, other: Any) -> Any:
        if isinstance(other, BlockArray):
            return noted(op, self, other)
        return Computed(op, (self, other))

    def other_number(self: Figure, other: Any) -> Any:
        return Computed(op, (other, self))

    method = f"__{name.strip('_')}__"
    setattr(BlockArray, method, left)
    setattr(Figure, method, number)
    if not method.startswith(("__l", "__g", "__e", "__n")):
        mirrored = f"__r{name.strip('_')}__"
        setattr(BlockArray, mirrored, right)
        setattr(Figure, mirrored, other_number)


for _name in ("add", "sub", "mul", "truediv", "pow", "and_", "or_"):
    _on_rows(_name)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _on_rows(_name)
BlockArray.__hash__ = Figure.__hash__ = object.__hash__  # type: ignore[method-assign]


def noted(op: Callable[..., Any], *args: Any, **options: Any) -> BlockArray:
    """Note an operation on rows; others than arrays in blocks are the same for all."""
    args = tuple(known_value(x) for x in args)
    first = next(x for x in args if isinstance(x, BlockArray))
    layout = first.layout
    args = tuple(
        layout.divided(x)
        if isinstance(x, np.ndarray) and x.ndim and x.shape[0] == layout.n > 1
        and op is not operator.matmul
        else x
        for x in args
    )  # fmt: skip
    sample = [  # two rows tell shape and type
        np.ones((2, *x.tail), dtype=x.dtype) if isinstance(x, BlockArray) else x
        for x in args
    ]
    with np.errstate(all="ignore"):
        like = op(*sample, **options)
    given = tuple(x.node if isinstance(x, BlockArray) else x for x in args)
    if options:
        op = With(op, options)
    return BlockArray(layout, Node(op, given), like.shape[1:], like.dtype)


def look(layout: Layout) -> None:
    """Find all small arrays that are still held.

    Vectors on the way are made again when they are needed, as long as that is little
    work; blocks of columns are kept.
    """
    handles = [held for held in layout.waiting if held.node.blocks is None]
    smalls = [held for held in handles if isinstance(held, Small)]
    program = Program()
    asked = tuple(program.place(held.node) for held in smalls)
    wide = any(isinstance(held, BlockArray) and held.ndim > 1 for held in handles)
    if wide or len(program) > DEEP:
        settle(layout)
        return
    made = layout.each("sums", several_of, program.steps(), asked, *program.given)
    parts = layout.gather(made)
    for at, small in enumerate(smalls):
        small.known([part[at] for part in parts])


def settle(layout: Layout) -> None:
    """Do all that is noted and still held: a task for each block.

    Blocks of columns have tasks of their own, so that each can be forgotten.
    """
    handles = [held for held in layout.waiting if held.node.blocks is None]
    layout.waiting.clear()
    arrays = {
        held.node.number: held for held in handles if isinstance(held, BlockArray)
    }
    for number in sorted(arrays):  # the older is needed for the younger
        if arrays[number].ndim > 1:
            _settle_one(layout, arrays.pop(number).node)
    smalls = [held for held in handles if isinstance(held, Small)]
    if len(arrays) == 1 and not smalls:
        _settle_one(layout, next(iter(arrays.values())).node)
        return
    program = Program()
    wanted = tuple(program.place(held.node) for held in arrays.values())
    asked = tuple(program.place(held.node) for held in smalls)
    steps, given = program.steps(), program.given
    if wanted:  # vectors stay together as long as one of them is needed
        made = layout.each("rows", several_of, steps, wanted, *given)
        for at, held in enumerate(arrays.values()):
            held.node.settle(made, at)
    if asked:
        parts = layout.gather(layout.each("sums", several_of, steps, asked, *given))
        for at, small in enumerate(smalls):
            small.known([part[at] for part in parts])


def _settle_one(layout: Layout, node: Node) -> None:
    program = Program()
    at = program.place(node)
    node.settle(layout.each("rows", one_of, program.steps(), at, *program.given))


def known_value(x: Any) -> Any:
    """Return the value of a small array; all else as it is."""
    return x.value if isinstance(x, Figure) else x
