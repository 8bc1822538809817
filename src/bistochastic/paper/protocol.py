"""How the experiments are run: what is prepared, what is tried, what is reported.

Two protocols, which never mix. *paper*: the best accuracy over ways to prepare the
data, numbers of neighbors, alpha and 30 starts, found with the labels, as the paper
reports it. *label-free*: each method with its defaults, on data prepared by one rule
for each kind that was fixed in advance.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from bistochastic import ANCMM, CAN, CLR, DSDC, ERCAN
from bistochastic.core.errors import InputError, check_choice
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)

Record = dict[str, Any]  # what is kept of a run: cell, scores, seconds, versions
VERSION = 1  # version of the protocol; raised when older records no longer count
KS = (5, 7, 10, 15, 20, 30, 40, 60)
STARTS = 30
SCORES = {
    "ACC": clustering_accuracy,
    "NMI": normalized_mutual_information,  # by the larger entropy, as the paper's code
    "PUR": purity,
}
DEFAULT = "ANCMM (default)"  # "ANCMM" is Algorithm 2 as it is printed
METHODS = ("K-Means", "SC", "DSDC", "CAN", "ERCAN", "CLR", "ANCMM", DEFAULT)
FIXED = {"table": "zscore", "faces": "255", "text": "tfidf", "shapes": "raw"}
TOYS = tuple(f"moons:{seed}" for seed in range(1, 51))  # the paper's is the first
PROTOCOLS = ("paper", "label-free")


@dataclass(frozen=True)
class Cell:
    """One thing to run: a method with its options on a set prepared in one way.

    Attributes
    ----------
    protocol, set, method, preparation : str
        What it is part of.
    options : dict
        Parameters of the method.
    starts : int
        How many seeds, from 0 on.
    """

    protocol: str
    set: str
    method: str
    preparation: str
    options: dict[str, Any] = field(default_factory=dict)
    starts: int = 1

    @property
    def key(self) -> str:
        """What tells it from others, the version of the protocol included."""
        options = ",".join(
            f"{name}={self.options[name]}" for name in sorted(self.options)
        )
        parts = (VERSION, self.protocol, self.set, self.method, self.preparation)
        return "|".join(map(str, (*parts, options, self.starts)))


def cells(
    protocol: str, name: str, kind: str, methods: Iterable[str] = METHODS
) -> list[Cell]:
    """List what has to be run for a set.

    Parameters
    ----------
    protocol : {"paper", "label-free"}
        Which of the two.
    name : str
        The set.
    kind : {"table", "faces", "text", "shapes"}
        What it is.
    methods : sequence of str
        Which methods.

    Returns
    -------
    list of Cell
        In the order in which they are run.
    """
    check_choice("protocol", protocol, PROTOCOLS)
    made = []
    for method in methods:
        if protocol == "label-free":
            made.append(Cell(protocol, name, method, FIXED[kind]))
            continue
        options, starts = _tried(method)
        for way, chosen in product(_ways(kind), options):
            made.append(Cell(protocol, name, method, way, chosen, starts))
    return made


def _ways(kind: str) -> tuple[str, ...]:
    """Return the ways to prepare a set among which the labels choose."""
    if kind == "shapes":
        return ("raw",)
    ways = ("raw", "minmax", "zscore", "unit")
    return (*ways, "tfidf") if kind == "text" else ways


def _tried(method: str) -> tuple[list[dict[str, Any]], int]:
    """Return the options among which the labels choose, and the number of starts."""
    if method in ("K-Means", "DSDC"):
        return [{}], STARTS
    if method == "SC":
        return [{"n_neighbors": k} for k in KS], STARTS
    grids: dict[str, dict[str, tuple[Any, ...]]] = {
        "CAN": {"n_neighbors": KS, "candidates": ("local", "global")},
        "ERCAN": {"n_neighbors": (3, *KS), "eta": (0.05, 1.05, 10.0)},
        "CLR": {"n_neighbors": KS, "norm": ("l2", "l1")},
        "ANCMM": {"n_neighbors": KS, "alpha": ("mean", "row")},
        DEFAULT: {"n_neighbors": ("auto", *KS)},
    }
    grid = grids[method]
    return [
        dict(zip(grid, values, strict=True)) for values in product(*grid.values())
    ], 1


def prepared(way: str, X: Any) -> Any:
    """Prepare points in one way, and turn them so that no more columns than rows stay.

    Parameters
    ----------
    way : str
        "raw"; "255": divided by it; "minmax" and "zscore": columns; "unit": rows;
        "tfidf": (1 + ln tf) ln(n / df) with unit rows.
    X : array of shape (n, d)
        Points.

    Returns
    -------
    array of shape (n, at most n)
        Points with the same distances.
    """
    from sklearn.preprocessing import StandardScaler, minmax_scale, normalize

    X = np.asarray(X, dtype=np.float64)
    if way == "255":
        X = X / 255
    elif way == "minmax":
        X = minmax_scale(X)
    elif way == "zscore":
        X = StandardScaler().fit_transform(X)
    elif way == "unit":
        X = normalize(X)
    elif way == "tfidf":
        X = X[:, (X > 0).any(axis=0)]
        idf = np.log(X.shape[0] / (X > 0).sum(axis=0))
        X = normalize(np.where(X > 0, 1 + np.log(np.maximum(X, 1)), 0) * idf)
    elif way != "raw":
        raise InputError(f"There is no way {way!r} to prepare a set.")
    if X.shape[1] > X.shape[0]:  # a rotation keeps all distances
        U, s, _ = np.linalg.svd(X, full_matrices=False)
        X = U * s
    return X


def partitions(cell: Cell, X: Any, c: int) -> Iterator[tuple[Any, int]]:
    """Run a method, and yield its partitions, one for each start.

    Parameters
    ----------
    cell : Cell
        What to run.
    X : array of shape (n, d)
        Points, prepared.
    c : int
        Number of clusters.

    Yields
    ------
    labels : array of int of shape (n,)
        Clusters.
    components : int
        How many there are.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # records have the number of components
        if cell.method == "SC":
            found = _spectral(cell, X, c)
        elif cell.method == "K-Means":
            found = _k_means(cell, X, c)
        else:
            found = (
                _model(cell, c, seed).fit(X).labels_ for seed in range(cell.starts)
            )
        for labels in found:
            yield labels, int(labels.max()) + 1


def _model(cell: Cell, c: int, seed: int) -> Any:
    """Return the estimator of a cell."""
    options = cell.options
    if cell.method == DEFAULT:
        return ANCMM(c, **options)
    if cell.method == "ANCMM":
        return ANCMM.paper(c, **{"n_neighbors": 15} | options)
    made = {"DSDC": DSDC, "CAN": CAN, "ERCAN": ERCAN, "CLR": CLR}[cell.method]
    return made(c, random_state=seed, **options)


def _k_means(cell: Cell, X: Any, c: int) -> Iterator[Any]:
    """Yield partitions by k-means: of each start, or of the best inertia of 30."""
    from sklearn.cluster import KMeans

    if cell.protocol == "label-free":
        yield KMeans(c, n_init=STARTS, random_state=0).fit(X).labels_
        return
    for seed in range(cell.starts):
        yield KMeans(c, n_init=1, random_state=seed).fit(X).labels_


def _spectral(cell: Cell, X: Any, c: int) -> Iterator[Any]:
    """Yield partitions by spectral clustering on the nearest neighbors."""
    from sklearn.cluster import KMeans, SpectralClustering
    from sklearn.manifold import spectral_embedding
    from sklearn.neighbors import kneighbors_graph

    k = min(cell.options.get("n_neighbors", 10), X.shape[0] - 1)
    if cell.protocol == "label-free":
        model = SpectralClustering(
            c, affinity="nearest_neighbors", n_neighbors=k, random_state=0
        )
        yield model.fit(X).labels_
        return
    A = kneighbors_graph(X, k, include_self=True)
    F = spectral_embedding(
        (A + A.T) / 2, n_components=c, random_state=0, drop_first=False
    )
    for seed in range(cell.starts):
        yield KMeans(c, n_init=1, random_state=seed).fit(F).labels_


def scored(y: Any, labels: Any) -> dict[str, float]:
    """Return the three scores of a partition, in percent."""
    return {name: round(100 * score(y, labels), 2) for name, score in SCORES.items()}
