"""ANCMM: doubly stochastic adaptive neighbors clustering, and its parameters."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from bistochastic.cluster.base import SAME, GraphClusterer, Later
from bistochastic.cluster.fit_log import FitLog
from bistochastic.cluster.graphs import LAZY
from bistochastic.cluster.loop import penalized
from bistochastic.cluster.shares import row_sums
from bistochastic.cluster.trials import Trials
from bistochastic.core.errors import InputError
from bistochastic.core.parameters import (
    PAIRS,
    Choice,
    Count,
    Fraction,
    Positive,
    check_device,
    check_jobs,
    check_metric,
    check_seed,
)
from bistochastic.core.protocols import Place
from bistochastic.core.quiet import quietly
from bistochastic.core.run import Status
from bistochastic.core.threads import one_blas_thread, safely
from bistochastic.graph.objective import approximation
from bistochastic.places import place_of
from bistochastic.places.host.host import Host
from bistochastic.scaling.marcus import LIMITS
from bistochastic.spectrum.ky_fan import Embedding


class ANCMM(GraphClusterer):
    r"""Cluster by a doubly stochastic graph that falls apart into the clusters.

    Learns a sparse, symmetric, doubly stochastic S with a small

    .. math:: \sum_{ij} \|x_i - x_j\|^2 s_{ij} + \alpha \|S\|_F^2
        \quad \text{with} \quad rank(L_S) = n - c ,

    Eq. (8) of "Doubly Stochastic Adaptive Neighbors Clustering via the Marcus Mapping",
    so that its connected components are the clusters (Theorem 3), exactly as many as
    asked for. No k-means. A penalty lambda on the c smallest eigenvalues of the
    Laplacian grows until the graph falls apart. `ANCMM.paper` runs the paper's
    Algorithm 2 as printed.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters c. "auto" asks `estimate_n_clusters`, of a sample of 5,000
        points at most; beyond those the memory for it grows by 4 bytes a point.
    n_neighbors : int or "auto", default="auto"
        Number of neighbors k of a point in the first graph, the point itself included
        if it counts as a neighbor. "auto" tries some of 5, 7, 10, 14, 20, 28, 40 and
        56, up to the mean size of a cluster, but at most twice the root of n (and 40
        from 50,000 points on), and down to a third of that, and keeps the partition
        that agrees most with the others. Of 1,500 points or more (30 a cluster) they
        are tried on aggregates of points, about a thousand, and only the one that is
        kept runs on all points.
        Where all candidates of all points are duplicates, k is doubled.
    min_cluster_size : int or "auto", default="auto"
        Smaller components are joined to others in every step, by the cheapest pair of
        points, and do not count. "auto" is a tenth of n / c, but at least 2 and at most
        10 and n / (2 c). The paper has 1.
    alpha : {"mean", "row"} or float, default="mean"
        Weight of the squared norm; the larger, the more neighbors get a weight. For
        each row Eq. (19) has the largest alpha that gives k neighbors: "mean" takes the
        mean of these, "row" lets each row have its own, so that points in sparse
        regions are not cut off. Or a number. It does not change while lambda does.
    candidates : int, "auto" or None, default="auto"
        Which points may become neighbors as lambda grows: that many nearest, the point
        itself included if it counts; "auto" the k nearest; None all, as in the paper.
        With None and more than 4,096 points, 4 k nearest stand for all, which gives the
        same graphs unless a warning says so.
    penalty : float, optional
        Lambda to start with; by default 1/8 with a refinement, alpha n / c without, and
        alpha by the paper's rule.
    refine : {"auto", "triangles", "local", "both", None}, default="auto"
        What the rows are made of. "triangles": they stay near the first graph, its
        edges weighed by the neighbors that their ends have in common. "local": of
        distances divided by those to the seventh neighbors. "auto": "triangles" where
        the neighbors of points fill at most three dimensions, wherever these lie, else
        "local". "both": whichever agrees more with all the others. All
        lean towards clusters of equal size. None: the paper's rows; only then `alpha`
        and `candidates` matter after the first graph.
    self_neighbor : bool or "lazy", default=True
        Whether a point is its own neighbor. With True the Marcus mapping exists for
        sure (Theorem 2). With False, I / k is added to a graph for which it does not,
        and a warning says so (the exact update raises a SupportError); with "lazy" it
        is added to every graph.
    graph_update : {"marcus", "exact"}, default="marcus"
        How a graph is made of the costs: row by row and then mapped, Eqs. (14)-(17), or
        by the exact solution of the problem that this stands for, Eq. (13).
    scaling : {"auto", "newton", "damped", "alternating", "fixed_point"}, default="auto"
        Method of `marcus_mapping`; "alternating" is Algorithm 1 of the paper. Where a
        published method does not get there in 1,000 passes, "auto" goes on: the mapping
        is unique.
    exact : bool, default=True
        Whether to end with exactly `n_clusters` components: lambda is bisected, and in
        the end components are joined by cheapest pairs, or the largest cut where its
        second eigenvector loses least. False: the paper's rule, which doubles or halves
        lambda, may end with another number, and then warns.
    metric : str or callable, default="euclidean"
        The distance; its square is the cost ("sqeuclidean" is the same as "euclidean").
        "cosine" has cost 2 (1 - cos). "precomputed": X holds distances, not squared; a
        sparse X lists the candidates of each point, as KNeighborsTransformer makes it:
        a stored zero is a duplicate, what is not stored is no candidate. "affinity": X
        is a graph of similarities; M(X) is the first graph and what the rows stay near
        to, and `n_neighbors` and `candidates` are not used.
    neighbors : {"auto", "exact"} or float, default="auto"
        How neighbors are searched for. A number between 0 and 1 is the wanted recall of
        an approximate search, reached on a sample of points (up to 200,000 points it is
        faster with faiss, ``pip install 'bistochastic[large]'``); "auto" is 0.99 from
        10,000 points in more than six dimensions on, 0.95 from 50,000 on or without
        faiss, else "exact".
    max_iter : int, default=50
        Most graphs to learn, the first one included.
    tol : float, default=1e-8
        Largest error of a row sum of the graph.
    n_jobs : int, optional
        Threads, as scikit-learn counts them; all by default.
    random_state : int, RandomState or None, default=None
        Starts the eigensolver; None is a fixed seed.
    device : str or torch.device, optional
        Where to run, such as "cuda" or "cuda:1"; needs ``pip install
        'bistochastic[gpu]'``. By default where X lies: tensors on a GPU are clustered
        there, all else on the CPU by compiled loops ("cpu" is torch on the CPU, to
        try what runs on a GPU). There "auto" `neighbors` are exact up to n^2 d = 1e14,
        and the graph, its scaling and the embedding stay on the device until they are
        asked for. With X in Dask every worker computes on its own device of that name.
    precision : {"double", "single"}, default="double"
        Numbers of the graph, with a device. In singles row sums are right to 1e-5, or
        `tol` if that is more, and points at the border of two clusters may change.
    verbose : int, default=0
        Whether to print a line for each step.

    Attributes
    ----------
    labels_ : array of int of shape (n_samples,)
        The cluster of each point, numbered by first appearance; a tensor on the device
        of X if X is a tensor, a Dask array in the chunks of X if X lies in Dask. All
        else is NumPy and SciPy.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The doubly stochastic graph: of all steps the first whose number of components
        is nearest to `n_clusters`.
    scaling_ : array of shape (n_samples,)
        The diagonal of D that made it doubly stochastic, Eq. (17); with
        ``graph_update="exact"`` the potential a of Eq. (13).
    embedding_ : array of shape (n_samples, n_clusters)
        The eigenvectors F that the graph was made with, Eq. (11); if it is the first
        graph, its own.
    n_components_ : int
        Number of connected components of the graph.
    n_clusters_ : int
        Number of different labels: `n_components_`, but 1 if one cluster was asked for.
    n_neighbors_ : int or None
        The k that was used; None for affinities.
    refine_ : str or None
        The refinement that was used.
    stability_ : float
        Mean adjusted Rand index of the partition to those with other numbers of
        neighbors, or refinements; 1 if there was only one.
    agreement_ : array of shape (n_samples,)
        For each point, the share of these other partitions in which its cluster is
        found again with the point in it; 1 if there was only one.
    trials_ : list of dict
        A record of each number of neighbors, or refinement, that was tried (of many
        points, on aggregates of them):
        "n_neighbors", "refine", "n_components", "sizes" of the clusters, "agreement"
        (the adjusted Rand index to the result), and "kept", whether it is the result.
    bridges_ : array of int of shape (n_bridges, 2)
        Pairs of points that were joined to keep components together.
    alpha_ : array of shape (n_samples,)
        The alpha of each row.
    penalty_ : float
        The lambda that the graph was made with; 0 for the first graph.
    history_ : list of dict
        A record of each step, to put into a data frame: "penalty" (lambda),
        "n_components", "sizes" of these, "objective" of Eq. (10) and its terms
        "objective_distance", "objective_norm" and "objective_penalty", "residual"
        (error of the row sums), "n_products" of the scaling, "embedding_products" and
        "embedding_converged" of the eigensolver, "epsilon" of Eq. (23) relative to the
        squared norm of the rows, "shift" (what was added to the diagonal),
        "open_rows" (rows to which a candidate that was left out could matter),
        "n_bridges", "action" ("lambda", "join" or "cut"), "recall" of the search for
        neighbors, "seconds", and "kept", whether the step is the result.
    n_iter_ : int
        Number of graphs learned, the first one included.
    converged_ : bool
        Whether the graph has `n_clusters` components and its row sums are right.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they are all strings.

    See Also
    --------
    marcus_mapping : The mapping alone.
    sklearn.cluster.SpectralClustering : An embedding of a fixed graph, and k-means.

    Notes
    -----
    The distances are those of X as it is: scale the columns first. A warning says if
    their spreads differ a hundredfold.

    Rows in another order give the same partition unless costs are tied, or `penalty` is
    a million times its default or more: rounding decides then.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from bistochastic import ANCMM
    >>> from bistochastic.metrics import clustering_accuracy
    >>> X, y = load_wine(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = ANCMM(n_clusters=3).fit(X)
    >>> model.n_components_
    3
    >>> paper = ANCMM.paper(n_clusters=3, n_neighbors=30).fit(X)
    >>> round(clustering_accuracy(y, paper.labels_), 3)
    0.983
    """

    _limits = {  # noqa: RUF012
        "n_clusters": Count(1, "auto"),
        "n_neighbors": Count(1, "auto"),
        "min_cluster_size": Count(1, "auto"),
        "alpha": Positive("mean", "row"),
        "candidates": Count(1, "auto", None),
        "penalty": Positive(None),
        "refine": Choice("auto", "triangles", "local", "both", None),
        "self_neighbor": Choice(True, False, LAZY),
        "graph_update": Choice("marcus", "exact"),
        "scaling": Choice(*LIMITS),
        "exact": Choice(True, False),
        "metric": check_metric,
        "neighbors": Fraction("auto", "exact"),
        "max_iter": Count(1),
        "tol": Fraction(),
        "n_jobs": check_jobs,
        "random_state": check_seed,
        "device": check_device,
        "precision": Choice("double", "single"),
        "verbose": Count(0, True, False),
    }

    singles = True
    scaling_, _memberships = Later(), Later()

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_neighbors: int | str = "auto",
        min_cluster_size: int | str = "auto",
        alpha: float | str = "mean",
        candidates: int | str | None = "auto",
        penalty: float | None = None,
        refine: str | None = "auto",
        self_neighbor: bool | str = True,
        graph_update: str = "marcus",
        scaling: str = "auto",
        exact: bool = True,
        metric: str | Callable[..., float] = "euclidean",
        neighbors: float | str = "auto",
        max_iter: int = 50,
        tol: float = 1e-08,
        n_jobs: int | None = None,
        random_state: Any = None,
        device: Any = None,
        precision: str = "double",
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.min_cluster_size = min_cluster_size
        self.alpha = alpha
        self.candidates = candidates
        self.penalty = penalty
        self.refine = refine
        self.self_neighbor = self_neighbor
        self.graph_update = graph_update
        self.scaling = scaling
        self.exact = exact
        self.metric = metric
        self.neighbors = neighbors
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.verbose = verbose

    @classmethod
    def paper(cls, n_clusters: int, n_neighbors: int, **options: Any) -> Any:
        """Make the estimator that runs Algorithm 2 as the paper prints it.

        All points are candidates, alpha is the mean of Eq. (19), lambda starts at
        alpha, and the mapping is Algorithm 1. Two liberties: where Algorithm 1 takes
        more than 1,000 passes, a faster method ends its work, and of more than 4,096
        points, 4 k candidates each stand for all; neither changes the graphs, or a
        warning says so.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        n_neighbors : int
            Number of neighbors, the point itself included.
        **options : object
            Other parameters, such as `verbose` or `metric`.

        Returns
        -------
        ANCMM
            The estimator, not fitted.
        """
        printed = {
            "candidates": None,
            "exact": False,
            "min_cluster_size": 1,
            "refine": None,
            "scaling": "alternating",
        }
        return cls(n_clusters, n_neighbors=n_neighbors, **printed | options)

    @quietly
    def approximation(self, X: Any) -> Any:
        """Measure how near the mapping comes to the exact solution, Eqs. (20)-(23).

        Both are made of the costs at `penalty_` and `embedding_`, whichever of the two
        the fitted graph is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of `fit`.

        Returns
        -------
        Approximation
            The epsilon of Eq. (23), what is left of the conditions of Karush, Kuhn and
            Tucker, and the gap to the exact solution of Eq. (13).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bistochastic import ANCMM
        >>> X = load_iris().data
        >>> found = ANCMM.paper(3, 15).fit(X).approximation(X)
        >>> bool(0 <= found.gap < 0.1 * found.exact)  # near the exact solution
        True
        """
        if self.alpha == "row":
            raise InputError(
                'alpha="row" has no symmetric problem to compare with: Eq. (13) has '
                "one alpha."
            )
        X = self._same(X)
        with safely(), one_blas_thread():
            return self._approximated(X)

    @quietly
    def memberships(self, X: Any) -> Any:
        """Tell how the weight of each point spread over the clusters before the cut.

        In the fitted graph all weight of a point lies in its own cluster. In the first
        graph, before lambda pulled the clusters apart, some of it lay in others: the
        less its own cluster has, the less sure is its assignment.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of `fit`.

        Returns
        -------
        csr_array of shape (n_samples, n_labels)
            Shares of the weight to other points; rows sum to one. A point without
            neighbors is all its own cluster's.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bistochastic import ANCMM
        >>> X = load_iris().data
        >>> model = ANCMM(3).fit(X)
        >>> shares = model.memberships(X).toarray()
        >>> sure = shares[range(150), model.labels_]
        >>> round(float(sure[:50].min()), 6)  # setosa, far from the others
        1.0
        """
        X = self._same(X)
        if self.metric in PAIRS:
            self._check_sums(X)
        with safely(), one_blas_thread():
            with suppress(AttributeError):
                return self._memberships.copy()  # kept by the fit, not by a file
            return Trials(self, self._again(X)).shares_again(X)

    def _approximated(self, X: Any) -> Any:
        trials = Trials(self, self._again(X))
        problem, _ = trials.again(X)
        F = self.embedding_ if problem.order is None else self.embedding_[problem.order]
        F = problem.costs.vector(F)
        found = Embedding(F, np.empty(0), Status.CONVERGED, 0)
        m = problem.costs.plus(self.penalty_, penalized(found, problem.unit))
        rows = problem.weights(m)
        made = trials.maker().mapped(problem, m, rows)
        if made.shift:
            raise InputError(
                "(1 / n_neighbors) I was added to the graph, where Eq. (13) allows no "
                "weight; self_neighbor=True makes the two comparable."
            )
        return approximation(m, problem.alpha, rows, made.u, made.S)

    def _again(self, X: Any) -> Any:
        """Return where the data of `fit` are looked at once more."""
        if self.metric in PAIRS:
            self._check_sums(X)
        with suppress(InputError):  # what was learned on a GPU is seen without one
            return place_of(X, self.device)
        return Host()

    def _check_sums(self, X: Any) -> None:
        if not np.allclose(row_sums(X), self._row_sums, rtol=SAME, atol=0.0):
            raise InputError("X is not the data of `fit`: its rows have other sums.")

    def _check_together(self) -> None:
        if self.graph_update == "exact" and self.alpha == "row":
            raise InputError(
                'graph_update="exact" solves the symmetric problem of Eq. (13), which '
                'has one alpha; alpha="row" goes with graph_update="marcus".'
            )
        if self.metric == "affinity" and self.alpha != "mean":
            raise InputError(
                f'alpha={self.alpha!r}: with metric="affinity" alpha is fixed, so that '
                "the graph itself solves Eq. (14); only lambda matters. Leave it out."
            )

    def _learn(self, X: Any, place: Place) -> Any:
        return Trials(self, place, FitLog(self, X)).learned(X)
