"""The seams: all that an algorithm may ask of a matrix, and of the place of the data.

Vectors are arrays of an array-API namespace (NumPy, torch, ...). Matrices are
*holders* that answer verbs; an algorithm never learns how they are stored. A *place*
makes holders of data, and brings results back; an estimator never learns which it is.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar

Text = TypeVar("Text", bound=Callable[..., Any])
Made = TypeVar("Made")


class Graph(Protocol):
    """A symmetric non-negative matrix S, the weights of an undirected graph."""

    n: int
    n_products: int  # how often S has met a vector
    fetched: bool  # whether a look at all entries is waited for, as on workers

    def ones(self) -> Any:
        """Return the vector of n ones, in the namespace of this holder's vectors."""

    def vector(self, values: Any) -> Any:
        """Return `values` as a vector of this holder's namespace, type and device."""

    def noise(self, rng: Any, columns: int) -> Any:
        """Return a block of n rows of normal numbers, seeded by a NumPy generator."""

    def apply(self, v: Any) -> Any:
        """Return the product S v; `v` may have several columns."""

    def diagonal(self) -> Any:
        """Return the diagonal of S as a vector."""

    def scaled(self, u: Any, *, reuse: bool = False) -> Self:
        """Return DSD with D = diag(u), symmetric to the bit.

        No entry is lost that a number of this type can hold: see `scaled_by`.
        """

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I; of a vector, S + diag(delta)."""

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return S without the entries whose labels rows[i], columns[j] differ."""

    def part(self, index: Any) -> Self:
        """Return the square submatrix of the rows and columns in `index`."""

    def joined(self, i: Any, j: Any, weights: Any) -> Self:
        """Return S with edges added: weights[k] at (i[k], j[k]) and its mirror."""

    def mates(self, sizes: Any, free: Any, cap: float) -> Any:
        """Return for each free node its heaviest free neighbor, -1 where none may be.

        An edge weighs s_ij (1 / sizes_i + 1 / sizes_j); together the two have at most
        `cap`. Of equal weights that with the lowest number.
        """

    def gathered(self, groups: Any, number: int) -> Self:
        """Return P' S P: the sums of entries between groups of nodes."""

    def parts(self) -> Any:
        """Return the entries as costs -s_ij in tables, for `Costs.beside`."""

    def recurrence(
        self, X: Any, Y: Any, center: float, terms: Sequence[Any], accuracy: float
    ) -> Any:
        """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2).

        Z_0 and Z_1 are X and Y, and `terms` has the a and c of each; Y may be
        overwritten. Relative errors below `accuracy` do not matter. A holder without a
        faster way takes `core.recurrence`.
        """

    def highest(self) -> Any:
        """Return the largest entry of each row."""

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij, on the pattern of S."""

    def pattern(self) -> Any:
        """Return the positive entries as a SciPy CSR array on the CPU."""

    def entries(self, least: float) -> Any:
        """Return the entries above `least` as a SciPy CSR array on the CPU."""

    def log(self) -> "Scores":
        """Return log S on the pattern of S."""

    def indicator(self) -> "Graph":
        """Return ones where S is positive."""

    def dot(self, P: Any) -> float:
        """Return the sum of s_ij p_ij over the positive entries of another graph P."""

    def sq_norm(self, weights: Any = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""

    def native(self) -> Any:
        """Return the matrix as its library knows it."""

    def fast(self, text: Text) -> Text:
        """Return this holder's own body of the function `text`, or `text` itself."""


class Scores(Protocol):
    """A symmetric real matrix K on a pattern; elsewhere it counts as -infinity."""

    n: int
    n_products: int  # how often K has met a vector

    def ones(self) -> Any:
        """Return the vector of n ones, in the namespace of this holder's vectors."""

    def vector(self, values: Any) -> Any:
        """Return `values` as a vector of this holder's namespace, type and device."""

    def apply(self, v: Any) -> Any:
        """Return the product K v over the pattern."""

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return K without the entries whose labels rows[i], columns[j] differ."""

    def part(self, index: Any) -> Self:
        """Return the square submatrix of the rows and columns in `index`."""

    def looped(self) -> bool:
        """Tell whether the whole diagonal is on the pattern."""

    def highest(self) -> Any:
        """Return the largest entry of each row; every row must have one."""

    def deviation(self) -> float:
        """Return the standard deviation of the entries on the pattern, roughly."""

    def dot(self, P: Any) -> float:
        """Return the sum of k_ij p_ij over the positive entries of a plan P."""

    def exponential(self, omega: float, a: Any) -> Graph:
        """Return exp(omega k_ij + a_i + a_j) on the pattern."""

    def clipped(self, omega: float, a: Any, least: float = 0.0) -> Graph:
        """Return omega k_ij + a_i + a_j where that is above `least`, at least 0."""

    def raised(self, a: Any) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros kept on the pattern."""

    def native(self) -> Any:
        """Return the matrix as its library knows it."""


class Costs(Protocol):
    """The costs m_ij of the candidates of each point; infinite for all others.

    Row by row: the candidates of i need not have i among theirs.
    """

    n: int

    def vector(self, values: Any) -> Any:
        """Return `values` as a vector of this holder's namespace, type and device."""

    def plus(self, lam: float, F: Any) -> Self:
        """Return m_ij + lam |f_i - f_j|^2, with the rows f_i of F."""

    def closest(self, m: int) -> Self:
        """Return the m cheapest candidates of each row; ties go to the first."""

    def table(self, m: int) -> Any:
        """Return the m cheapest candidates of each row as a `Table`, itself first."""

    def listed(self) -> list[tuple[Any, Any, Any]]:
        """Return rows, candidates (None for all in order) and costs, part by part."""

    def beside(self, A: Graph) -> Any:
        """Return the entries of a graph of the same points as costs -a_ij."""

    def weigh(
        self, rule: Callable[..., Any], *aligned: Any, beside: Sequence[Any] = ()
    ) -> "Rows":
        """Return the weights that `rule` gives the rows, by any blocks of them.

        `rule` gets an array of costs, a row for each point, those entries of the
        vectors `aligned` that belong to these rows, and the same places of the costs
        or rows `beside`, which are for the same candidates.
        """

    def reduce(self, rule: Callable[..., Any], *aligned: Any) -> Any:
        """Return the vector of what `rule` makes of each row."""

    def dot(self, rows: Any, u: Any = None) -> float:
        """Return the sum of m_ij s_ij, or m_ij u_i s_ij u_j, where s_ij > 0."""

    def scores(self, alpha: float) -> Scores:
        """Return -m_ij / (2 alpha), for candidates of either of the two points."""


class Table(Costs, Protocol):
    """Costs of a few candidates of each point, the cheapest first."""

    def remade(self, rule: Callable[..., Any], along: Any) -> Self:
        """Return what `rule` makes of rows, candidates and costs of a table.

        It returns candidates and costs, and may pick from the vector `along` by rows
        and candidates.
        """


class Rows(Costs, Protocol):
    """The weights s_ij that each row gives its candidates, held as costs are.

    They are not symmetric.
    """

    def symmetrized(self) -> Graph:
        """Return (S + S') / 2 of the positive weights, Eq. (16)."""

    def moved(self, u: Any) -> float:
        """Return the squared norm of DSD - S with D = diag(u)."""

    def sq_norm(self) -> float:
        """Return the sum of the squared weights."""


class Points(Protocol):
    """Points made ready for distances, wherever they are."""

    metric: Any

    def at(self, rows: Any) -> "Points":
        """Return some of the points, by their numbers on the host."""

    def host(self) -> Any:
        """Return the points as `neighbors.points.Points` on the host."""


class Links(Protocol):
    """Finds the cheapest pairs of points between parts."""

    @property
    def twins(self) -> Any:
        """The group of each point if points at cost 0 form groups; None if none do."""

    def within(self, index: Any) -> "Links":
        """Return the links among some of the points only.

        They are on the host, and have `ranks`, the rank of each point by its costs.
        """

    def leaving(self, labels: Any, wanted: Any) -> tuple[Any, Any, Any]:
        """Return cost, inner and outer end of the cheapest pair that leaves each part.

        Infinite costs for parts that are not `wanted`, or that nothing links.
        """


class Place(Protocol):
    """Where the data of a fit lie and its work is done.

    Data are what `checked` returns; they have a `shape` and are passed back to the
    other verbs. What is not said to be on the host is in the place: `Points`, `Costs`,
    `Graph` and `Links` of its own kinds, which no other place has to know.
    """

    lazy: bool  # whether fitted attributes stay here until they are asked for
    gathers: bool  # whether graphs here answer `mates` and `gathered`

    def checked(self, X: Any, check: Callable[[Any], Any], metric: Any) -> Any:
        """Return the data, looked at; `check` looks at those that are on the host."""

    def rows(self, data: Any, index: Any) -> Any:
        """Return some rows of the data as an array on the host."""

    def sample(self, data: Any) -> Any:
        """Return rows that tell what all are like: all of them where that is cheap."""

    def ordered(self, data: Any, metric: Any) -> tuple[Any, Any]:
        """Return the data with neighbors mostly close by, and their order.

        The order is an array on the host, or None if the data stay as they are.
        """

    def points(self, data: Any, metric: Any) -> Any:
        """Make `Points` of data, ready for distances."""

    def vectors(self, data: Any) -> Any:
        """Return the data as a block of columns, in the namespace of vectors here."""

    def of_vectors(self, V: Any) -> Any:
        """Return a block of columns as data."""

    def all_pairs(self, points: Any, loops: bool) -> Any:
        """Return the squared distances of all pairs as `Costs`."""

    def candidates(
        self, points: Any, m: int, loops: bool, how: Any, n_jobs: int | None
    ) -> tuple[Any, float]:
        """Find the m nearest other points of every point, or most of them.

        Return their costs, the point itself first if it counts, and the recall.
        """

    def norm_of_costs(self, points: Any) -> float:
        """Return the Frobenius norm of the squared distances of all pairs."""

    def costs(self, costs: Any) -> Any:
        """Bring costs that are on the host, or here, to this place."""

    def graph(self, S: Any) -> Any:
        """Bring a graph that is on the host, or here, to this place."""

    def links(self, costs: Any, points: Any) -> Any:
        """Return the `Links` by costs and, where these end, among all points if any."""

    def guarded(self, made: Callable[[], Made]) -> Made:
        """Return what a function makes, minding what can go wrong here."""

    def labels(self, labels: Any) -> Any:
        """Return labels, an array on the host, in the kind of X."""
