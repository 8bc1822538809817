"""Vectors in blocks of rows on Dask workers, and the functions that texts call on them.

An operation on rows is only noted. What is noted is done when a number is asked for or
a graph meets a vector: one task for each block then does all of it. Blocks are made by
tasks and never scattered, so that Dask makes again what a worker took with it.
"""

import operator
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError
from bistochastic.core.quiet import Quiet

NUMBERS = count()
DEEP = 60  # operations on vectors that may wait


class Layout:
    """Which rows lie in which block, and the client that runs tasks on them.

    Parameters
    ----------
    client : distributed.Client
        Runs the tasks.
    sizes : sequence of int
        Rows of each block; some may be 0.
    caller : bool, default=False
        Whether vectors are with the caller, in NumPy arrays, between two products.
    """

    def __init__(
        self, client: Any, sizes: Sequence[int], *, caller: bool = False
    ) -> None:
        self.client = client
        self.sizes = tuple(int(size) for size in sizes)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.n = int(self.starts[-1])
        self.caller = caller
        self.waiting: weakref.WeakSet[Noted] = weakref.WeakSet()
        self._name, self._number = uuid.uuid4().hex[:8], count()
        workers = sorted(client.nthreads())
        number = len(self.sizes)
        if not workers:
            raise InputError(
                "The Dask cluster has no workers, so that nothing would ever be done. "
                "Start some, as by client.cluster.scale(2)."
            )
        self._homes = [workers[k * len(workers) // number] for k in range(number)]

    def __len__(self) -> int:
        return len(self.sizes)

    def slices(self) -> Iterator[slice]:
        """Yield the rows of each block."""
        for a, b in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield slice(int(a), int(b))

    def submit(
        self, name: str, home: int, task: Callable[..., Any], *given: Any
    ) -> Any:
        """Start a task; it is called so on the dashboard.

        It runs where the block `home` is at home, or elsewhere if that worker is gone.
        """
        return self.client.submit(
            Quiet(task),
            *given,
            key=f"bistochastic-{name}-{self._name}-{next(self._number)}",
            workers=[self._homes[home]],
            allow_other_workers=True,
            pure=False,
        )

    def each(self, name: str, task: Callable[..., Any], *given: Any) -> list[Any]:
        """Start a task for each block; lists have an entry for each."""
        return [
            self.submit(
                name, k, task, *(x[k] if isinstance(x, list) else x for x in given)
            )
            for k in range(len(self))
        ]

    def gather(self, futures: Any) -> Any:
        """Return what tasks have made."""
        return self.client.gather(futures)

    def spread(self, values: Any) -> "Spread":
        """Return an array of n rows in blocks."""
        if isinstance(values, Spread):
            return values
        values = np.asarray(values)
        if values.ndim == 0:
            return self.full(float(values))
        blocks = [
            self.submit("sent", k, np.array, values[rows])
            for k, rows in enumerate(self.slices())
        ]
        return Spread.held(self, blocks, values.shape[1:], values.dtype)

    def full(self, value: float) -> "Spread":
        """Return a vector of the same numbers."""
        blocks = self.each("full", np.full, list(self.sizes), value)
        return Spread.held(self, blocks, (), np.dtype(float))

    def out(self, values: "Spread") -> Any:
        """Return a vector where vectors are: with the caller, or in blocks."""
        return np.asarray(values) if self.caller else values


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


class Noted:
    """What users hold: an array in blocks, or a small one made of all blocks."""

    layout: Layout

    def __init__(self, layout: Layout, node: Node) -> None:
        self.layout = layout
        self.node = node
        if node.blocks is None:
            layout.waiting.add(self)


class Spread(Noted):
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
    ) -> "Spread":
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

    def __invert__(self) -> "Spread":
        return noted(operator.invert, self)

    def __neg__(self) -> "Spread":
        return noted(operator.neg, self)

    def __matmul__(self, other: Any) -> "Spread":
        return noted(operator.matmul, self, np.asarray(other))


class Transposed:
    """The transpose of an array in blocks."""

    def __init__(self, of: Spread) -> None:
        self._of = of

    def __matmul__(self, other: Spread) -> "Small":
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
                self._value = np.asarray(op(*map(_known, args), **options))
        return self._value


def _on_rows(name: str) -> None:
    op = getattr(operator, name)

    def left(self: Spread, other: Any) -> Spread:
        return noted(op, self, other)

    def right(self: Spread, other: Any) -> Spread:
        return noted(op, other, self)

    def number(self: Figure, other: Any) -> Any:
        if isinstance(other, Spread):
            return noted(op, self, other)
        return Computed(op, (self, other))

    def other_number(self: Figure, other: Any) -> Any:
        return Computed(op, (other, self))

    method = f"__{name.strip('_')}__"
    setattr(Spread, method, left)
    setattr(Figure, method, number)
    if not method.startswith(("__l", "__g", "__e", "__n")):
        mirrored = f"__r{name.strip('_')}__"
        setattr(Spread, mirrored, right)
        setattr(Figure, mirrored, other_number)


for _name in ("add", "sub", "mul", "truediv", "pow", "and_", "or_"):
    _on_rows(_name)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _on_rows(_name)
Spread.__hash__ = Figure.__hash__ = object.__hash__  # type: ignore[method-assign]


def noted(op: Callable[..., Any], *args: Any, **options: Any) -> Spread:
    """Note an operation on rows; others than arrays in blocks are the same for all."""
    args = tuple(_known(x) for x in args)
    first = next(x for x in args if isinstance(x, Spread))
    layout = first.layout
    args = tuple(
        layout.spread(x)
        if isinstance(x, np.ndarray) and x.ndim and x.shape[0] == layout.n > 1
        and op is not operator.matmul
        else x
        for x in args
    )  # fmt: skip
    sample = [  # two rows tell shape and type
        np.ones((2, *x.tail), dtype=x.dtype) if isinstance(x, Spread) else x
        for x in args
    ]
    with np.errstate(all="ignore"):
        like = op(*sample, **options)
    given = tuple(x.node if isinstance(x, Spread) else x for x in args)
    if options:
        op = _With(op, options)
    return Spread(layout, Node(op, given), like.shape[1:], like.dtype)


class _With:
    """A function with options, compared by neither."""

    def __init__(self, op: Callable[..., Any], options: dict[str, Any]) -> None:
        self._op, self._options = op, options

    def __call__(self, *args: Any) -> Any:
        return self._op(*args, **self._options)


def look(layout: Layout) -> None:
    """Find all small arrays that are still held.

    Vectors on the way are made again when they are needed, as long as that is little
    work; blocks of columns are kept.
    """
    handles = [held for held in layout.waiting if held.node.blocks is None]
    smalls = [held for held in handles if isinstance(held, Small)]
    program = Program()
    asked = tuple(program.place(held.node) for held in smalls)
    wide = any(isinstance(held, Spread) and held.ndim > 1 for held in handles)
    if wide or len(program) > DEEP:
        settle(layout)
        return
    made = layout.each("sums", _several, program.steps(), asked, *program.given)
    parts = layout.gather(made)
    for at, small in enumerate(smalls):
        small.known([part[at] for part in parts])


def settle(layout: Layout) -> None:
    """Do all that is noted and still held: a task for each block.

    Blocks of columns have tasks of their own, so that each can be forgotten.
    """
    handles = [held for held in layout.waiting if held.node.blocks is None]
    layout.waiting.clear()
    arrays = {held.node.number: held for held in handles if isinstance(held, Spread)}
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
        made = layout.each("rows", _several, steps, wanted, *given)
        for at, held in enumerate(arrays.values()):
            held.node.settle(made, at)
    if asked:
        parts = layout.gather(layout.each("sums", _several, steps, asked, *given))
        for at, small in enumerate(smalls):
            small.known([part[at] for part in parts])


def _settle_one(layout: Layout, node: Node) -> None:
    program = Program()
    at = program.place(node)
    node.settle(layout.each("rows", one_of, program.steps(), at, *program.given))


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


def _several(steps: Steps, wanted: tuple[int, ...], *given: Any) -> list[Any]:
    leaves, made = steps.of(given)
    return [leaves[-1 - x] if x < 0 else made[x] for x in wanted]


def _sum_of(block: np.ndarray) -> Any:
    return block.sum(axis=0)


def _total(block: np.ndarray) -> Any:
    return block.sum()


def _max_of(block: np.ndarray) -> Any:
    return block.max(axis=0, initial=-np.inf)


def _largest(block: np.ndarray) -> Any:
    return block.max(initial=-np.inf)


def _least(block: np.ndarray) -> Any:
    return block.min(initial=np.inf)


def _all(block: np.ndarray) -> Any:
    return bool(block.all())


def _any(block: np.ndarray) -> Any:
    return bool(block.any())


def _squares(block: np.ndarray) -> Any:
    return np.einsum("ij,ij->j", block, block)


def _highest(parts: list[Any]) -> Any:
    return np.max(parts, axis=0)


def _lowest(parts: list[Any]) -> Any:
    return np.min(parts, axis=0)


class _Linalg:
    """The linear algebra that texts use: of small matrices, but for norms."""

    def vector_norm(self, x: Any, axis: int | None = None) -> Any:
        """Return the lengths of columns."""
        if isinstance(x, Spread):
            assert axis == 0
            return Small(x.layout, Node(_squares, (x.node,)), _length)
        return np.linalg.norm(_known(x), axis=axis)

    def eigh(self, x: Any) -> Any:
        """Return eigenvalues and eigenvectors of a small matrix."""
        return np.linalg.eigh(_known(x))

    def diagonal(self, x: Any) -> Any:
        """Return the diagonal of a small matrix."""
        return np.diagonal(_known(x))

    def qr(self, X: Spread) -> Any:
        """Return an orthonormal basis of the columns: of blocks, then of these."""
        layout = X.layout
        both = layout.each("qr", _qr, X.blocks())
        tops = layout.gather(layout.each("qr", operator.getitem, both, 1))
        Q, R = np.linalg.qr(np.concatenate(tops))
        ends = np.cumsum([0, *(len(top) for top in tops)])
        some = [Q[a:b] for a, b in pairwise(ends)]
        blocks = layout.each("qr", _first_times, both, some)
        return Spread.held(layout, blocks, X.tail, X.dtype), R


def _qr(block: np.ndarray) -> Any:
    return np.linalg.qr(block)


def _first_times(both: Any, part: np.ndarray) -> np.ndarray:
    return both[0] @ part


def _length(parts: list[Any]) -> Any:
    return np.sqrt(np.sum(parts, axis=0))


def _known(x: Any) -> Any:
    return x.value if isinstance(x, Figure) else x


class Namespace:
    """The functions of an array library that texts call on vectors.

    Arrays in blocks are answered here, small ones by NumPy.
    """

    linalg = _Linalg()
    inf, nan, newaxis = np.inf, np.nan, None
    float32, float64, int64, bool = np.float32, np.float64, np.int64, np.bool

    def __getattr__(self, name: str) -> Any:
        of_numpy = getattr(np, name)
        if not callable(of_numpy) or isinstance(of_numpy, type):
            return of_numpy

        def on_rows(*args: Any, **options: Any) -> Any:
            if any(isinstance(x, Spread) for x in args):
                return noted(of_numpy, *args, **options)
            if any(isinstance(x, Figure) for x in args):
                return Computed(of_numpy, args, options)
            return of_numpy(*args, **options)

        return on_rows

    def sum(self, x: Any, axis: int | None = None, keepdims: Any = False) -> Any:
        """Return the sum of all, of columns, or of each row."""
        return self._reduced(x, axis, keepdims, np.sum, _total, _sum_of, sum)

    def max(self, x: Any, axis: int | None = None, keepdims: Any = False) -> Any:
        """Return the largest of all, of columns, or of each row."""
        return self._reduced(x, axis, keepdims, np.max, _largest, _max_of, _highest)

    def min(self, x: Any, axis: int | None = None, keepdims: Any = False) -> Any:
        """Return the smallest of all, or of each row."""
        return self._reduced(x, axis, keepdims, np.min, _least, None, _lowest)

    def all(self, x: Any, axis: int | None = None) -> Any:
        """Tell whether all are true."""
        return self._reduced(x, axis, False, np.all, _all, None, np.all)

    def any(self, x: Any, axis: int | None = None) -> Any:
        """Tell whether one is true."""
        return self._reduced(x, axis, False, np.any, _any, None, np.any)

    def _reduced(
        self, x: Any, axis: Any, keepdims: Any, of_numpy: Any,
        whole: Any, columns: Any, joined: Any,
    ) -> Any:  # fmt: skip
        if not isinstance(x, Spread):
            options = {"axis": axis} | ({"keepdims": True} if keepdims else {})
            if isinstance(x, Figure):
                return Computed(of_numpy, (x,), options)
            return of_numpy(x, **options)
        if axis in (1, -1):
            return noted(
                of_numpy, x, axis=1, **({"keepdims": True} if keepdims else {})
            )
        op = whole if axis is None else columns
        return Small(x.layout, Node(op, (x.node,)), joined)

    def concat(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Put columns side by side."""
        if not any(isinstance(x, Spread) for x in arrays):
            return np.concatenate(arrays, axis=axis)
        assert axis == 1
        return noted(_beside, *arrays)

    def astype(self, x: Any, dtype: Any, copy: Any = True) -> Any:
        """Return the array with other numbers."""
        if isinstance(x, Spread):
            return noted(_as, x, dtype=dtype)
        return np.asarray(x).astype(dtype)

    def vecdot(self, x: Any, y: Any, axis: int = -1) -> Any:
        """Return the products of rows."""
        return noted(_row_products, x, y)

    def clip(self, x: Any, low: Any = None, high: Any = None, **ends: Any) -> Any:
        """Return numbers between two ends."""
        low, high = ends.get("min", low), ends.get("max", high)
        if isinstance(x, Spread):
            return noted(_clipped, x, low, high)
        return np.clip(_known(x), low, high)

    def asarray(self, x: Any, dtype: Any = None, device: Any = None) -> Any:
        """Return an array as it is, or by NumPy."""
        return x if isinstance(x, Spread) else np.asarray(_known(x), dtype=dtype)


def _beside(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=1)


def _as(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(dtype)


def _row_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", x, y)


def _clipped(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    return np.clip(x, low, high)


NAMESPACE = Namespace()
