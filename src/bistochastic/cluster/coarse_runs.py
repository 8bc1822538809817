"""A fit that begins on aggregates: all k are tried there, one runs on the points."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bistochastic.cluster.coarse import (
    gathered_graph,
    gathered_points,
    narrowed,
    of_aggregates,
    tried,
)
from bistochastic.cluster.consensus import medoid
from bistochastic.cluster.exact_count import rank
from bistochastic.cluster.problem import at
from bistochastic.cluster.refinements import fitting, refined
from bistochastic.cluster.sampled_rows import SampledRows
from bistochastic.core.errors import DegenerateError
from bistochastic.graph.components import numbered

RARE = 20  # times smaller than the mean: the smallest cluster of aggregates
ROUGH = 1e-5  # errors of row sums of graphs of aggregates


@dataclass(frozen=True, eq=False)
class CoarseRuns:
    """The runs of a fit that begins on aggregates.

    Attributes
    ----------
    trials : Trials
        The parameters, the place, the log, and the run on the points.
    base : Problem
        That with the most neighbors.
    c : int
        Number of clusters.
    floor : int
        Smallest size of a cluster.
    """

    trials: Any
    base: Any
    c: int
    floor: int

    def made(self) -> tuple[Any, Any]:
        """Try all numbers of neighbors on aggregates, choose one, run it on the points.

        Returns
        -------
        runs : list of tuple
            What `Trials.run` returns; of those on aggregates only what is compared.
        best : int
            Which one ran on the points.
        """
        maker = self.trials.maker(self.floor)
        ways = [fitting(self.base, way, maker) for way in self.trials.ways()]
        ks = self._ks()
        fewest = narrowed(_located(self._at(ks[0]), ways[0], maker))
        first = maker.first(fewest)
        held = gathered_points(first, self.c)
        tries = [(k, way) for way in ways for k in ks]
        if len(tries) == 1:
            graphs = iter([gathered_graph(first, held[-1])])
        else:
            sampled = SampledRows.of(self.base.all_costs, held[-1], ks[-1] + 1, maker)
            graphs = (sampled.gathered(k, way == "local") for k, way in tries)
        runs, trials = list[Any](), list[Any]()
        for (k, way), graph in zip(tries, graphs, strict=True):
            problem = of_aggregates(*graph, held[-1], k, maker)
            guess = trials[-1].step.found if trials else None
            trial = tried(problem, held[-1], self.c, guess=guess, **self._how(maker))
            self.trials.log.tried(k, way, trial)
            trials.append(trial)
            runs.append((self._summary(k, way, trial), [], None))
        best, _ = medoid([trial.step.labels for trial in trials], held[-1].sizes)
        k, way = tries[best]
        if best == 0:
            problem = replace(fewest, given=first)
        else:
            del first, fewest  # their memory is needed
            problem = narrowed(_located(self._at(k), way, maker))
        if way == "triangles":
            problem, _ = refined(problem, way, maker)
        start = partial(self._resumed, trial=trials[best], finer=held[:-1])
        runs[best] = self.trials.run(problem, way, self.c, self.floor, start)
        return runs, best

    def _ks(self) -> Any:
        """Return the numbers of neighbors to try: more than there are duplicates."""
        ks = self.trials.numbers(self.base, self.c)
        for at_first, k in enumerate(ks):
            with suppress(DegenerateError):
                self._at(k)
                return ks[at_first:]
        raise AssertionError  # the base has been looked at

    def _at(self, k: int) -> Any:
        if k == self.base.k:
            return self.base
        return at(self.base, k, self.trials.model.alpha, self.c)

    def _summary(self, k: int, way: Any, trial: Any) -> Any:
        """Return what is compared with other runs."""
        groups, spot = trial.held.groups, self.base.spot
        groups = groups if spot is None else groups[spot]
        return {
            "labels_": numbered(trial.step.labels[groups]),
            "n_neighbors_": None if self.trials.model.metric == "affinity" else k,
            "refine_": way,
            "n_components_": trial.step.number,
        }

    def _how(self, maker: Any) -> Any:
        """Return how the loop runs on aggregates.

        A few of them may fall off where no few points would: the floor is higher there.
        A component of the first graph counts in any case.
        """
        model, n = self.trials.model, self.base.costs.n
        if isinstance(model.min_cluster_size, str):
            maker = replace(maker, floor=max(maker.floor, n // (RARE * self.c)))
        maker = replace(maker, tol=max(maker.tol, ROUGH))
        return {
            "maker": maker,
            "rule": self.trials.rule(self.base, self.c, unit=True),
            "rng": model._generator(),
            "rank": partial(rank, c=self.c, n=n),
            "max_iter": self.trials.most(self.c),
        }

    def _resumed(
        self, problem: Any, first: Any, maker: Any, trial: Any, finer: Any
    ) -> Any:
        """Return lambda's rule and F to go on with from a trial on aggregates."""
        how = self._how(maker)
        rule = how["rule"]
        for held in finer:
            coarse = of_aggregates(*gathered_graph(first, held), held, problem.k, maker)
            trial = tried(coarse, held, self.c, coarser=trial, **how)
        if finer and trial.step.number == self.c and trial.step.found is not None:
            return replace(rule, start=trial.step.lam), trial.indicated(first.S)
        return rule.resumed(trial.step.lam), trial.smoothed(first.S)


def _located(problem: Any, way: Any, maker: Any) -> Any:
    """Return the problem by local scales, if these are wanted."""
    return refined(problem, way, maker)[0] if way == "local" else problem
