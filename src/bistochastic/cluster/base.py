"""What all graph clusterers share: data in, a graph out, new points."""

import threading
import warnings
from functools import partial, wraps
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bistochastic.cluster.validation import validated
from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError, listed, several
from bistochastic.core.parameters import PAIRS
from bistochastic.core.protocols import Place
from bistochastic.core.quiet import quietly
from bistochastic.core.threads import one_blas_thread, safely
from bistochastic.graph.simplex import k_nearest
from bistochastic.neighbors.exact import nearest_to
from bistochastic.places import host_for, on_host, place_of
from bistochastic.places.given_pairs import squared
from bistochastic.places.host.csr import using
from bistochastic.places.parts import parts

LATER = threading.RLock()
SAME = 1e-6  # relative difference within which points, or rows, are the same

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin of newer versions."""

    def with_callbacks(method: Any) -> Any:
        """Leave the method as it is, but for a frame that the other one adds."""
        return wraps(method)(lambda self, *args, **kw: method(self, *args, **kw))


class Later:
    """A fitted attribute that may be made when it is first asked for.

    An estimator keeps what makes such attributes, by name, in ``_later``.
    """

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = name

    @quietly
    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self
        with LATER:  # another thread may have asked
            held, name = vars(model), self._name
            if name not in held:
                if name not in held.get("_later", {}):
                    kind = type(model).__name__
                    raise AttributeError(f"{kind!r} object has no attribute {name!r}")
                held[name] = held["_later"][name]()
                del held["_later"][name]
            return held[name]


class Clusterer(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """A clusterer that looks at its parameters and data before it starts.

    A method gives `_limits`, a check for each parameter, and `_learn`, which makes of
    the data the fitted attributes and a list of warnings.
    """

    singles = False  # whether very many points may stay singles

    @with_callbacks
    @quietly
    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Points, or a square matrix as `metric` says.
        y : None
            Ignored.

        Returns
        -------
        object
            The fitted estimator.
        """
        old = [name for name in vars(self) if name.endswith("_")]
        for name in (
            *old,
            "_later",
            "_memberships",
            "_points",
            "_n_others",
            "_row_sums",
        ):
            self.__dict__.pop(name, None)  # a fit that is broken off leaves no mixture
        self._check()
        place, names = self._place_of(X), getattr(X, "columns", None)
        data = place.checked(X, partial(validated, self, reset=True), self.metric)
        self._note_columns(data, names)
        jobs = getattr(self, "n_jobs", None)
        with safely(), one_blas_thread(), using(jobs, data.shape[0]):
            learned, remarks = place.guarded(partial(self._learn, data, place))
        learned["labels_"] = place.labels(learned["labels_"])
        self.__dict__.update(learned)
        for category, remark in remarks:
            warnings.warn(remark, category, stacklevel=4)  # past the decorators
        return self

    def _place_of(self, X: Any) -> Any:
        """Return the place of a fit: this machine."""
        return host_for(X, type(self).__name__)

    def _note_columns(self, data: Any, names: Any) -> None:
        """Keep what scikit-learn's own check keeps, of data that it has not seen."""
        self.n_features_in_ = data.shape[1]
        named = names is not None and all(isinstance(name, str) for name in names)
        if named and not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _check_all_pairs(self, X: Any) -> None:
        """Refuse a table of neighbors where all distances are needed."""
        if is_sparse(X) and self.metric == "precomputed":
            raise InputError(
                f"{type(self).__name__} needs the distances of all pairs, and a sparse "
                "X has only some. Pass a dense array."
            )

    def _check(self) -> None:
        """Look at each parameter on its own, then at all of them."""
        for name, check in self._limits.items():
            check(name, getattr(self, name))
        self._check_together()

    def _check_together(self) -> None:
        """Look at parameters that depend on one another."""

    def __getstate__(self) -> Any:
        """Return what is pickled or saved; what was left for later is made now."""
        for name in [*vars(self).get("_later", {})]:
            if name != "_memberships":  # found again if need be
                getattr(self, name)
        state = super().__getstate__()
        return {k: v for k, v in state.items() if k not in ("_later", "_memberships")}

    def _generator(self) -> Any:
        """Return the generator that starts the eigensolver; None is a fixed seed."""
        seed = self.random_state
        if not (seed is None or isinstance(seed, Integral)):
            seed = check_random_state(seed).randint(2**31 - 1)
        return np.random.default_rng(seed or 0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric in PAIRS
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.metric in PAIRS
        return tags


class GraphClusterer(Clusterer):
    """A clusterer that learns a graph whose components are the clusters."""

    precision = "double"
    affinity_matrix_, embedding_, _points = (Later() for _ in range(3))

    def _place_of(self, X: Any) -> Any:
        """Return the place of a fit: the device, or where X lies."""
        return place_of(X, self.device, single=self.precision == "single")

    def _validated(self, X: Any) -> Any:
        """Return other data than those of `fit`, stored as these are."""
        X = validated(self, on_host(X), reset=False)
        points = getattr(self, "_points", None)
        return X if points is None else points.stored(X)

    @quietly
    def predict(self, X: Any) -> Any:
        """Assign points to clusters: each to the one that most of its weight goes to.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            Points; with ``metric="precomputed"`` or ``"affinity"`` their distances or
            affinities to those of `fit`, of shape (n_new, n_samples).

        Returns
        -------
        array of int of shape (n_new,)
            Labels. A point at distance 0 from one of `fit` gets its label, from
            several that of the first.
        """
        return self.predict_proba(X).argmax(axis=1)

    @quietly
    def predict_proba(self, X: Any) -> Any:
        """Tell how the weight of each point spreads over the clusters.

        The weights are those of Eq. (18), or of the method's own rows, for its nearest
        points among those of `fit`, all of it the nearest's if that is the same point;
        of affinities, their shares.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            Points, as in `predict`.

        Returns
        -------
        array of shape (n_new, n_labels)
            Rows that sum to one.
        """
        check_is_fitted(self, "labels_")
        X = self._validated(X)
        if self.metric == "affinity":
            return self._shares(X)
        labels = on_cpu(self.labels_)
        k = max(1, min(self._n_others, labels.size - 1))
        if self.metric == "precomputed":
            tables = _tables(X, k)
        else:
            m = min(k + 1, labels.size)
            with safely(), one_blas_thread():
                found = nearest_to(self._points, self._placed(X), m, n_jobs=self.n_jobs)
            tables = [(np.arange(X.shape[0]), *found)]
        P = np.zeros((X.shape[0], int(labels.max()) + 1))
        for rows, columns, costs in tables:
            weights = self._weights(costs, k)
            for column, weight in zip(columns.T, weights.T, strict=True):
                P[rows, labels[column]] += weight
            same = costs[:, 0] == 0
            P[rows[same]] = 0.0
            P[rows[same], labels[columns[same, 0]]] = 1.0
        return P

    def _same(self, X: Any) -> Any:
        """Check and return the data of `fit`."""
        check_is_fitted(self, "labels_")
        X = self._validated(X)
        n = self.labels_.shape[0]
        if X.shape[0] != n:
            raise InputError(
                f"X has {X.shape[0]} rows, but `fit` saw {n}; this is about the data "
                "of `fit`."
            )
        points = getattr(self, "_points", None)
        if points is not None and _apart(points.X, self._placed(X)):
            raise InputError("X is not the data of `fit`: its points lie elsewhere.")
        return X

    def _placed(self, X: Any) -> Any:
        """Make new points ready as those of `fit` are."""
        return self._points.like(X)

    def _weights(self, costs: Any, k: int) -> Any:
        """Return the weights of rows of costs, the cheapest first."""
        return _weights(costs, k)

    def _shares(self, A: Any) -> Any:
        labels = on_cpu(self.labels_)
        indicator = np.eye(int(labels.max()) + 1)[labels]
        largest = (A.data if is_sparse(A) else A).max(initial=0.0)
        P = np.asarray((A / (largest or 1.0)) @ indicator)
        total = P.sum(axis=1)
        lost = np.flatnonzero(~(total > 0))
        if lost.size:
            raise InputError(
                f"{several(lost.size, 'row')} of X ({listed(lost)}) without an "
                "affinity to a fitted point; such a point cannot be assigned."
            )
        return P / total[:, None]


def kept(place: Place, made: Any, later: Any) -> dict[str, Any]:
    """Return fitted attributes, some to be made later where that spares a way.

    Parameters
    ----------
    place : Place
        Where the fit runs.
    made : dict
        Attributes.
    later : dict of callable
        What makes the others.

    Returns
    -------
    dict
        All of them, or those that are made and what makes the rest.
    """
    if place.lazy:
        return made | {"_later": later}
    return made | {name: make() for name, make in later.items()}


def _tables(D: Any, k: int) -> Any:
    """Return (rows, columns, squared distances) of the nearest in rows of distances."""
    if not is_sparse(D):
        order = np.argsort(D, axis=1, kind="stable")[:, : k + 1]
        costs = squared(np.take_along_axis(D, order, axis=1))
        return [(np.arange(D.shape[0]), order, costs)]
    D = csr_array(D)
    i = np.repeat(np.arange(D.shape[0]), np.diff(D.indptr))
    order = np.lexsort((D.indices, D.data, i))
    found = parts(i, D.indices[order], squared(D.data[order]), D.shape[0])
    return [
        (part.rows, np.where(np.isfinite(part.values), part.columns, 0), part.values)
        for part in found
    ]


def _weights(costs: Any, k: int) -> Any:
    """Return the weights of Eq. (18); rows with fewer than k + 1 costs use them all."""
    finite = np.isfinite(costs)
    farthest = np.where(finite, costs, 0.0).max(axis=1, keepdims=True)
    width = costs.shape[1]
    if width == 1:
        return np.ones_like(costs)
    weights = k_nearest(np.where(finite, costs, farthest), min(k, width - 1))
    weights = np.where(finite, weights, 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _apart(X: Any, other: Any) -> Any:
    """Tell whether two sets of points differ by more than rounding."""
    if X.dtype == bool:
        return bool(np.any(X != other))
    return bool(abs(X - other).max() > SAME * abs(X).max())
