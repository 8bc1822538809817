"""Methods as published: the loop of Algorithm 2 with rows of their own, no mapping."""

from functools import partial
from typing import Any

import numpy as np

from bistochastic.cluster.base import GraphClusterer, kept
from bistochastic.cluster.fit_log import FitLog
from bistochastic.cluster.fit_warnings import limits, missed, uneven, unsolved
from bistochastic.cluster.follow import followed
from bistochastic.cluster.loop import ancmm
from bistochastic.cluster.penalty import Penalty
from bistochastic.cluster.step import labels_of, left_there
from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError, several
from bistochastic.core.protocols import Place
from bistochastic.graph.components import components
from bistochastic.spectrum.ky_fan import ky_fan


class RankConstrained(GraphClusterer):
    """A graph with the rank constraint, its penalty doubled or halved.

    A method gives `_limits`, `_problem`, which makes of the data what the loop needs,
    `_first`, which learns the first graph, and `_update`, which makes graphs of costs.
    """

    rate = 2.0  # by which lambda grows or shrinks
    exact = False
    _updates = False  # whether a first graph with c components is no result yet
    _connected = "raise n_neighbors"  # what joins components of the first graph

    def _learn(self, X: Any, place: Place) -> Any:
        n = X.shape[0]
        if n == 1:
            raise InputError("n_samples=1, but this method needs neighbors of a point.")
        c = self._number(X, place)
        if c > n:
            raise InputError(
                f"n_clusters={c} is larger than the number of points, n_samples={n}."
            )
        watch = FitLog(self, X)
        problem = self._problem(place, X, c)
        first = self._first(problem)
        number = components(first.S)[0]
        if self.strict and number > c:
            raise InputError(
                f"The first graph has {several(number, 'component')}, more than "
                f"n_clusters={c}: {self._connected}, or pass strict=False."
            )
        rule = Penalty(self._start(problem), float(self.rate))
        steps = ancmm(
            problem.costs,
            c,
            first,
            self._update(problem),
            alpha=problem.alpha,
            penalty=rule,
            rng=self._generator(),
        )
        if self._updates:  # the first graph is not the result, whatever it is
            steps = ((step, left if step.found else n) for step, left in steps)
        fitted = partial(self._fitted, place=place, problem=problem, c=c)
        watch.begin(int(self.max_iter))
        step, history = followed(watch, steps, fitted, int(self.max_iter))
        watch.end()
        learned = fitted(step) | {"history_": history, "n_iter_": len(history)}
        said = missed(self, c, step, history) + unsolved(history)
        said += limits(history, problem.limited) + uneven(self.metric, place.sample(X))
        return learned, said + self._remarks(problem)

    def _remarks(self, problem: Any) -> Any:
        """Return what else there is to say."""
        return []

    def _number(self, X: Any, place: Place) -> Any:
        """Return how many clusters are wanted."""
        return int(self.n_clusters)

    def _start(self, problem: Any) -> Any:
        """Return the first lambda."""
        return problem.mean_alpha if self.penalty is None else float(self.penalty)

    def _fitted(self, step: Any, place: Place, problem: Any, c: int) -> Any:
        """Return the attributes of an estimator that stops with this step."""
        found = step.found
        if found is None:
            found = ky_fan(step.graph.S, c, step.labels, rng=self._generator())
        labels = labels_of(step, problem.spot)
        made = {
            "labels_": labels,
            "n_components_": step.number,
            "n_clusters_": int(labels.max()) + 1,
            "n_neighbors_": problem.k,
            "alpha_": on_cpu(problem.alpha) * np.ones(labels.size),
            "penalty_": step.lam,
            "converged_": step.number == c,
            "_n_others": problem.k,
        }
        later = left_there(step.graph, found, problem.points, problem.spot)
        del later["scaling_"]
        return kept(place, made, later)
