"""The trials of ANCMM: runs of the loop for numbers of neighbors, and a choice."""

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bistochastic.cluster.base import kept
from bistochastic.cluster.coarse import LOOSE, few
from bistochastic.cluster.coarse_runs import CoarseRuns
from bistochastic.cluster.consensus import grid, medoid, rand_index, steady
from bistochastic.cluster.exact_count import rank, settled, singletons
from bistochastic.cluster.fit_warnings import remarks, uneven, unfound
from bistochastic.cluster.follow import followed
from bistochastic.cluster.graphs import GraphMaker
from bistochastic.cluster.loop import ancmm, penalized
from bistochastic.cluster.n_clusters import chosen, estimate_n_clusters
from bistochastic.cluster.penalty import Bracket, Penalty
from bistochastic.cluster.problem import Problem, at, of_data, of_graph
from bistochastic.cluster.refinements import refined
from bistochastic.cluster.shares import own_shares, row_sums, shared, shares
from bistochastic.cluster.step import (
    Step,
    labels_of,
    left_there,
    objective,
)
from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import DegenerateError, InputError
from bistochastic.core.parameters import PAIRS
from bistochastic.core.protocols import Place
from bistochastic.graph.components import components
from bistochastic.spectrum.ky_fan import ky_fan

UNIT_START, UNIT_GROWTH = 0.125, 1.4  # first lambda where F has unit rows, its growth
SINGLES = 1e-5  # error of row sums of singles
EXTREME = 1e24  # how far a given lambda may be from alpha, by a factor
DIGITS = {"double": 1e-6, "single": 1e-3}  # relative errors of alpha, done once more


@dataclass(frozen=True, eq=False)
class Trials:
    """The runs of one fit of ANCMM.

    Attributes
    ----------
    model : ANCMM
        The parameters.
    place : Place
        Where the data are.
    log : FitLog or None
        Follows the runs; None if there are none.
    """

    model: Any
    place: Place
    log: Any = None

    def learned(self, X: Any) -> tuple[Any, Any]:
        """Run all trials and choose one.

        Parameters
        ----------
        X : data of the place
            The data.

        Returns
        -------
        learned : dict
            The fitted attributes.
        said : list of (type, str)
            Warnings.
        """
        model, n, c = self.model, X.shape[0], self.number(X)
        if c > n:
            raise InputError(
                f"n_clusters={c} is larger than the number of points, n_samples={n}."
            )
        base, floor = self.problem(X, c), self.floor(n, c)
        if base.costs is not None and self._coarse(n, c):
            self.log.begin(int(model.max_iter))
            runs, best = CoarseRuns(self, base, c, floor).made()
        else:
            variants = [(base, None)] if c == n else self.variants(base, c)
            self.log.begin(int(model.max_iter) * len(variants), len(variants))
            runs = [self.run(problem, way, c, floor) for problem, way in variants]
            best, _ = medoid([learned["labels_"] for learned, *_ in runs])
        self.log.end()
        learned, said = self._chosen(runs, best)
        if model.metric in PAIRS:
            learned["_row_sums"] = row_sums(X)
        said += unfound(model.neighbors, base.recall)
        return learned, said + uneven(model.metric, self.place.sample(X))

    def _coarse(self, n: int, c: int) -> bool:
        """Tell whether the loop begins on aggregates of points."""
        model = self.model
        unit = model.refine is not None and model.graph_update == "marcus"
        return model.exact and unit and c > 1 and self.place.gathers and not few(n, c)

    def _chosen(self, runs: Any, best: Any) -> Any:
        """Return the attributes and warnings of the run that agrees most."""
        found = [learned["labels_"] for learned, *_ in runs]
        agreement = [
            1.0 if at == best else rand_index(found[best], other)
            for at, other in enumerate(found)
        ]
        learned, said, fitted = runs[best]
        learned |= fitted()
        others = np.delete(agreement, best)
        learned["stability_"] = float(others.mean()) if others.size else 1.0
        learned["agreement_"] = steady(found[best], found[:best] + found[best + 1 :])
        learned["trials_"] = [
            {
                "n_neighbors": run["n_neighbors_"],
                "refine": run["refine_"],
                "n_components": run["n_components_"],
                "sizes": np.bincount(run["labels_"]).tolist(),
                "agreement": float(agreement[at]),
                "kept": at == best,
            }
            for at, (run, *_) in enumerate(runs)
        ]
        return learned, said

    def number(self, X: Any) -> Any:
        """Return how many clusters are wanted."""
        model = self.model
        if not isinstance(model.n_clusters, str):
            return int(model.n_clusters)
        if model.metric not in ("euclidean", "l2", "sqeuclidean") or is_sparse(X):
            raise InputError(
                'n_clusters="auto" looks at points with metric="euclidean"; pass a '
                "number, or that of estimate_n_clusters."
            )
        some = self.place.rows(X, chosen(X.shape[0]))
        return estimate_n_clusters(some, random_state=model.random_state).n_clusters

    def floor(self, n: int, c: int) -> Any:
        """Return the smallest size of a cluster."""
        size = self.model.min_cluster_size
        if isinstance(size, str):
            return max(1, math.ceil(min(max(2, 0.1 * n / c), 10, n // (2 * c))))
        if c * int(size) > n:
            raise InputError(
                f"min_cluster_size={size} times n_clusters={c} is more than the number "
                f"of points, n_samples={n}."
            )
        return int(size)

    def problem(self, X: Any, c: int, k: Any = None) -> Any:
        """Return the problem for k neighbors, or the most that are tried."""
        model, n = self.model, X.shape[0]
        loops = model.self_neighbor is True
        if n == 1:
            given = model.metric in PAIRS
            points = None if given else self.place.points(X, model.metric)
            return Problem(None, None, 1, 1.0, points)
        if model.metric == "affinity":
            return of_graph(self.place, X, self.maker().scale, loops=loops)
        k = model.n_neighbors if k is None else k
        while True:
            try:
                return of_data(
                    self.place,
                    X,
                    c,
                    n_neighbors=k,
                    most=max(grid(n, c)),
                    candidates=model.candidates,
                    alpha=model.alpha,
                    metric=model.metric,
                    loops=loops,
                    n_jobs=model.n_jobs,
                    neighbors=model.neighbors,
                )
            except DegenerateError as error:
                if not model.exact or 2 * error.k > n - 1:
                    raise
                k = 2 * error.k

    def ways(self) -> Any:
        """Return the names of the refinements to choose from."""
        model = self.model
        ways = ("triangles", "local") if model.refine == "both" else (model.refine,)
        if model.metric == "affinity" and "local" in ways:
            raise InputError(
                f"refine={model.refine!r} measures distances, and "
                'metric="affinity" has none; use "auto", "triangles" or None.'
            )
        return ways

    def numbers(self, base: Any, c: int) -> list[int]:
        """Return the numbers of neighbors to choose from, the largest last."""
        model = self.model
        if model.metric == "affinity" or not isinstance(model.n_neighbors, str):
            return [base.k]
        return [k for k in grid(base.costs.n, c) if k < base.k] + [base.k]

    def variants(self, base: Any, c: int) -> Any:
        """Return the problems to choose from, with the names of their refinements."""
        problems = []
        for k in self.numbers(base, c)[:-1] if base.costs is not None else []:
            with suppress(DegenerateError):  # fewer than there are duplicates
                problems.append(at(base, k, self.model.alpha, c))
        problems.append(base)
        return [(problem, way) for way in self.ways() for problem in problems]

    def run(
        self, problem: Any, refine: Any, c: int, floor: int, begun: Any = None
    ) -> Any:
        """Run the loop on one problem, or go on with what was begun on aggregates.

        Return what is compared with other runs, warnings, and what makes the rest.
        """
        model = self.model
        maker = self.maker(floor)
        if begun is None:
            problem, refine = refined(problem, refine, maker)
        steps = self._steps(problem, maker, c, begun)
        fitted = partial(self.fitted, problem=problem, maker=maker, refine=refine, c=c)
        step, history = followed(self.log, steps, fitted, self.most(c))
        if model.exact and step.number != c:
            for graph in settled(step.graph, c, problem.links, floor, maker.scale):
                F = penalized(step.found, problem.unit)
                value = objective(graph, problem.alpha, step.lam, F)
                step = Step(graph, step.found, step.lam, *components(graph.S), value)
                self.log.note(step, history)
        for record in history:
            record["recall"] = problem.recall
        learned = {
            "labels_": labels_of(step, problem.spot, c),
            "n_neighbors_": self._k(problem),
            "refine_": refine,
            "n_components_": step.number,
            "history_": history,
            "n_iter_": len(history),
        }
        said = remarks(model, self.tol, c, step, history, problem.limited)
        return learned, said, partial(fitted, step)

    def most(self, c: int) -> int:
        """Return how many graphs a run may learn."""
        return 1 if self.model.exact and c == 1 else int(self.model.max_iter)

    def _steps(self, problem: Any, maker: Any, c: int, begun: Any = None) -> Any:
        """Return the steps of Algorithm 2, or the one of a fit of singletons."""
        n = problem.costs.n if problem.costs is not None else 1
        if c == n:
            return iter([(singletons(n, problem.alpha), 0)])
        first = maker.first(problem)
        rule, start = self.rule(problem, c, problem.unit), None
        if begun is not None:
            rule, start = begun(problem, first, maker)
        return ancmm(
            problem.costs,
            c,
            first,
            maker.update(problem),
            alpha=problem.alpha,
            penalty=rule,
            unit=problem.unit,
            start=start,
            tol=None if begun is None else LOOSE,
            rng=self.model._generator(),
            rank=partial(rank, c=c, n=n) if self.model.exact else None,
        )

    def rule(self, problem: Any, c: int, unit: bool) -> Any:
        """Return the rule for lambda."""
        if not self.model.exact:
            return Penalty(self._lambda(problem.mean_alpha, problem.mean_alpha))
        if unit:
            return Bracket(self._lambda(UNIT_START, 1.0), UNIT_GROWTH, fixed=True)
        alpha = problem.mean_alpha
        start = alpha * min(problem.costs.n / c, EXTREME / 2)
        return Bracket(self._lambda(start, alpha), 2.0)

    def _lambda(self, default: Any, unit: Any) -> Any:
        """Return the first lambda, if it is in proportion to the unit of lambda."""
        penalty = self.model.penalty
        start = default if penalty is None else float(penalty)
        if not 1 / EXTREME < start / unit < EXTREME:
            raise InputError(
                f"penalty={start:g} is out of all proportion to {unit:.3g}, the scale "
                "of lambda here."
            )
        return start

    def maker(self, floor: Any = None) -> Any:
        """Return what makes graphs; without a floor, nothing is joined."""
        model = self.model
        return GraphMaker(
            model.self_neighbor,
            model.graph_update,
            model.scaling,
            self.tol,
            affine=model.metric == "affinity",
            floor=floor or 1,
            together=model.exact and floor is not None,
        )

    @property
    def tol(self) -> Any:
        """The error of row sums that the numbers of the graph allow."""
        tol = self.model.tol
        return tol if self.model.precision == "double" else max(tol, SINGLES)

    def _k(self, problem: Any) -> Any:
        return None if self.model.metric == "affinity" else problem.k

    def fitted(self, step: Any, problem: Any, maker: Any, refine: Any, c: int) -> Any:
        """Return the attributes of an estimator that stops with this step."""
        model, graph, found, order = self.model, step.graph, step.found, problem.order
        if found is None:
            found = ky_fan(graph.S, c, step.labels, rng=model._generator())
        labels = labels_of(step, problem.spot, c)
        pairs = np.array(graph.bridges, dtype=np.int64).reshape(-1, 2)
        made = {
            "labels_": labels,
            "n_components_": step.number,
            "n_clusters_": int(labels.max()) + 1,
            "n_neighbors_": self._k(problem),
            "refine_": refine,
            "alpha_": _alphas(problem, labels.size),
            "penalty_": step.lam,
            "bridges_": pairs if order is None else order[pairs],
            "converged_": step.number == c and graph.residual <= self.tol,
            "_n_others": problem.k - (model.self_neighbor is True),
        }
        made = kept(
            self.place, made, left_there(graph, found, problem.points, problem.spot)
        )
        if self.place.lazy:  # nothing but results is left there
            return made
        return shared(made, problem, maker, labels)

    def again(self, X: Any) -> Any:
        """Return the problem of the fitted graph, and what makes graphs of it."""
        model, n = self.model, X.shape[0]
        auto = model.n_clusters == "auto"
        asked = model.n_clusters_ if auto else int(model.n_clusters)
        maker = self.maker(self.floor(n, asked))
        X = self.place.checked(X, lambda X: X, model.metric)
        base = self.problem(X, int(model.n_clusters_), model.n_neighbors_)
        problem, _ = refined(base, model.refine_, maker)
        # an approximate search may find others; that the points are the same is known
        known = min(problem.recall, model.history_[0].get("recall", 1.0)) == 1.0
        digits = DIGITS[model.precision]
        if known and not np.allclose(_alphas(problem, n), model.alpha_, digits, 0.0):
            raise InputError(
                "X is not the data of `fit`: Eq. (19) gives another alpha."
            )
        return problem, maker

    def shares_again(self, X: Any) -> Any:
        """Return the shares of clusters in the weights of the first graph."""
        labels = on_cpu(self.model.labels_)
        if self.model.n_clusters_ == 1:
            return own_shares(labels)
        problem, maker = self.again(X)
        return shares(problem, maker, labels)


def _alphas(problem: Any, n: int) -> Any:
    """Return the alpha of each row, in the order of the data."""
    alpha = on_cpu(problem.alpha)
    if not np.ndim(alpha):
        return np.full(n, alpha)
    return alpha if problem.spot is None else alpha[problem.spot]
