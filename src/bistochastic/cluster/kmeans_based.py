"""What clusterers share that embed the points and call k-means."""

import time
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from bistochastic.cluster.base import Clusterer
from bistochastic.cluster.fit_log import FitLog
from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, several
from bistochastic.core.parameters import PAIRS
from bistochastic.core.protocols import Place
from bistochastic.graph.components import numbered


class Embedded(Clusterer):
    """An embedding, then k-means.

    A method gives `_limits` and `_embedded`, which makes of the data an embedding and
    the other fitted attributes, and notes each stage.
    """

    def _learn(self, X: Any, place: Place) -> Any:
        c = int(self.n_clusters)
        if c > X.shape[0]:
            raise InputError(
                f"n_clusters={c} is larger than the number of points, "
                f"n_samples={X.shape[0]}."
            )
        if not (is_sparse(X) or self.metric in PAIRS):
            number = len(np.unique(X, axis=0))
            if c > number:
                raise InputError(
                    f"n_clusters={c}, but X has only "
                    f"{several(number, 'distinct row')}; points at distance 0 cannot "
                    "be told apart."
                )
        stages = Stages(self, X)
        embedding, learned, said = self._embedded(X, c, stages)
        seed = int(self._generator().integers(2**31 - 1))
        self._check_different(len(np.unique(embedding, axis=0)))
        found = KMeans(c, n_init=int(self.n_init), random_state=seed).fit(embedding)
        stages.note("k-means", inertia=found.inertia_, n_iter=found.n_iter_)
        labels = numbered(found.labels_)
        self._check_different(int(labels.max()) + 1)
        stages.end()
        learned |= {
            "labels_": labels,
            "embedding_": embedding,
            "inertia_": float(found.inertia_),
            "n_iter_": found.n_iter_,
            "n_clusters_": int(labels.max()) + 1,
            "history_": stages.history,
        }
        return learned, said

    def _check_different(self, number: Any) -> None:
        """Refuse more clusters than there are places in the embedding."""
        if number < self.n_clusters:
            raise InputError(
                f"n_clusters={self.n_clusters}, but X has only "
                f"{several(number, 'different point')}."
            )


class Stages:
    """Keeps the history of a fit by its stages, and prints them.

    Parameters
    ----------
    estimator : Embedded
        What is fitted.
    X : array
        The data, for callbacks.
    """

    def __init__(self, estimator: Any, X: Any) -> None:
        self.history: list[dict[str, Any]] = []
        self._estimator = estimator
        self._clock = time.perf_counter()
        self._watch = FitLog(estimator, X)
        self._watch.begin(estimator._stages)

    def note(self, stage: Any, **found: Any) -> None:
        """Record what a stage found and how long it took."""
        now = time.perf_counter()
        seconds, self._clock = now - self._clock, now
        self.history.append({"stage": stage, **found, "seconds": seconds})
        self._watch.stage()
        if self._estimator.verbose:
            said = ", ".join(f"{key} {value:.3g}" for key, value in found.items())
            name = type(self._estimator).__name__
            print(f"[{name}] {stage}: {said}, {seconds:.2f} s")

    def end(self) -> None:
        """Say that the fit is over."""
        self._watch.end()
