"""A toy place, in one file: arrays of array_api_strict on the host.

The recipe is in CONTRIBUTING.md, "A new place".
"""

import array_api_strict as xp
import numpy as np

from bistochastic.neighbors.exact import squared_distances
from bistochastic.places import add_place
from bistochastic.places.host.dense import Dense
from bistochastic.places.host.host import Host
from bistochastic.places.tables import DenseCosts


class StrictCosts(DenseCosts):
    """Costs of all pairs in a strict array; infinite for what is no candidate."""

    @classmethod
    def of(cls, costs):
        """Take costs of the host."""
        M = np.full((costs.n, costs.n), np.inf)
        for rows, columns, values in costs.listed():
            columns = np.arange(costs.n)[None, :] if columns is None else columns
            M[rows[:, None], columns] = np.minimum(M[rows[:, None], columns], values)
        return cls(xp.asarray(M))

    def table(self, m):
        """Return a table, which needs more kinds of indices: that of the host."""
        return DenseCosts(np.asarray(self._M)).table(m)

    def beside(self, A):
        """Return the entries of a graph as costs."""
        return self.of(self.table(1).beside(A))


class StrictPlace(Host):
    """Searches by the host; costs and graphs in strict arrays."""

    def checked(self, X, check, metric):
        return check(np.asarray(X))

    def all_pairs(self, points, loops):
        D = squared_distances(points)
        np.fill_diagonal(D, 0.0 if loops else np.inf)
        return StrictCosts(xp.asarray(D))

    def candidates(self, points, m, loops, how, n_jobs):
        costs, recall = super().candidates(points, m, loops, how, n_jobs)
        return self.costs(costs), recall

    def costs(self, costs):
        return costs if isinstance(costs, StrictCosts) else StrictCosts.of(costs)

    def graph(self, S):
        return Dense(xp.asarray(S.entries(0.0).toarray()))

    def labels(self, labels):
        return xp.asarray(labels)


def is_strict(X):
    """Tell whether X is an array of this kind."""
    return type(X).__module__.startswith("array_api_strict")


def install():
    """Let strict arrays have this place."""
    add_place(is_strict, lambda X: StrictPlace())
