"""How graphs are made of costs, as the parameters of an estimator say."""

from dataclasses import dataclass, replace
from functools import partial

from bistochastic.cluster.exact_count import mended
from bistochastic.cluster.steps import coupled, diagonal_of, mapped, unmapped
from bistochastic.graph.simplex import first_weights
from bistochastic.scaling.feasibility import support

LAZY = "lazy"


@dataclass(frozen=True)
class Making:
    """Makes graphs: line 1 and lines 4-6 of Algorithm 2.

    Attributes
    ----------
    self_neighbor, graph_update, scaling, tol
        As ANCMM takes them.
    affine : bool
        Whether the data are a graph, which need not have loops.
    floor : int
        Smallest size of a component.
    together : bool
        Whether components are joined in which duplicates of one another lie.
    mapping : bool
        Whether the graph is made doubly stochastic, line 6.
    """

    self_neighbor: bool | str
    graph_update: str
    scaling: str
    tol: float
    affine: bool
    floor: int = 1
    together: bool = False
    mapping: bool = True

    def scale(self, S, start=None):
        """Find the diagonal of D, Eq. (17)."""
        return diagonal_of(S, method=self.scaling, tol=self.tol, start=start)

    def first(self, problem):
        """Learn the first graph, line 1: Eq. (18), symmetrized and mapped."""
        if problem.given is not None:
            return problem.given
        rows = problem.all_costs.weigh(partial(first_weights, k=problem.k))
        return self.mapped(problem, problem.all_costs, rows)

    def mapped(self, problem, costs, rows, start=None):
        """Make a graph of rows of weights, lines 5 and 6."""
        if not self.mapping:
            return unmapped(costs, rows)
        scale = partial(self.scale, start=start)
        return mapped(costs, rows, mend=self._mend(problem), scale=scale)

    def update(self, problem):
        """Return the function that makes a graph of costs, lines 4-6."""
        exact = self.graph_update == "exact"
        last = None

        def update(m):
            nonlocal last
            if exact:
                made = coupled(
                    problem.costs,
                    m,
                    problem.alpha,
                    loops=self._loops(problem),
                    mend=self._mend(problem),
                    scale=self.scale,
                    tol=self.tol,
                )
            else:
                rows = problem.weights(m)
                if not problem.limited:
                    del m  # its memory is needed
                made = self.mapped(problem, problem.costs, rows, last)
                last = made.u
            if problem.limited:
                left_out = problem.open_rows(m, made.u if exact else None)
                made = replace(made, open_rows=left_out)
            return made

        return update

    def _mend(self, problem):
        """Return the function that adds what a graph lacks: loops, and bridges."""
        loops = self._loops(problem)

        def mend(S):
            lazy = self.self_neighbor == LAZY
            lost = lazy or (not loops and support(S).kind != "total")
            shift = 1.0 / problem.k if lost else 0.0
            S = S.shifted(shift) if shift else S
            pairs = ()
            if self.together or self.floor > 1:
                S, pairs = mended(S, problem.links, self.floor, self.together)
            return S, shift, pairs

        return mend

    def _loops(self, problem):
        """Tell whether every point is its own candidate, at cost 0."""
        return self.self_neighbor is True and not self.affine and problem.given is None
