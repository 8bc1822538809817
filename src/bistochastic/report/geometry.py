"""What pictures of a result show: a plane, edges, an ordered matrix, how sure it is."""

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError, check_choice
from bistochastic.core.parameters import PAIRS

COLORS = (
    "#1f77c9", "#d9660a", "#1a9850", "#9467bd", "#d62728",
    "#128f9a", "#d6559a", "#a0703c", "#858a1a", "#6b7f99",
)  # fmt: skip
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "triangle-down", "pentagon")
LUMINANCE = 0.21  # luminance of further colors, far from white and from black
LAYOUTS = ("auto", "pca", "tsne")
FLAT = 0.5  # share of the variance with which two components will do as a plane
FEW = 2_000  # number of points from which on t-SNE is not used
SAMPLED = 2_000  # the most rows whose distances to neighbors are measured
NEAR = 10  # number of neighbors whose distance measures the density at a row
BORDER = 0.9  # share of weight in its own cluster below which a row is at a border


def checked(model: Any) -> Any:
    """Return a fitted estimator with labels and a graph, or raise."""
    check_is_fitted(model)
    if not (hasattr(model, "labels_") and hasattr(model, "affinity_matrix_")):
        raise InputError(
            f"{type(model).__name__} has no graph to show; the estimators of "
            "bistochastic have `labels_` and `affinity_matrix_`."
        )
    return model


@cache
def color(number: int) -> str:
    """Return the color of a cluster, told from white and from black.

    Parameters
    ----------
    number : int
        The cluster.

    Returns
    -------
    str
        As #rrggbb.
    """
    if number < len(COLORS):
        return COLORS[number]
    hue = (0.61803398875 * number) % 1.0
    saturation = (0.75, 0.5, 0.95)[number % 3]
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        found = colorsys.hls_to_rgb(hue, middle, saturation)
        low, high = (low, middle) if luminance(found) > LUMINANCE else (middle, high)
    return "#" + "".join(f"{round(255 * part):02x}" for part in found)


def luminance(rgb: Sequence[float]) -> float:
    """Return the relative luminance of a color, as WCAG has it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in rgb
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@dataclass(frozen=True, eq=False)
class Plane:
    """Points in two dimensions.

    Attributes
    ----------
    xy : array of shape (n, 2)
        Coordinates.
    names : tuple of str
        Of the two axes.
    how : str
        How they were found, as a sentence.
    measured : bool
        Whether places along the axes mean something.
    """

    xy: np.ndarray
    names: tuple[str, str]
    how: str
    measured: bool = True


def plane(
    model: Any, X: Any, *, layout: str = "auto", names: Sequence[str] | None = None
) -> Plane:
    """Lay the rows out in two dimensions.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array or sparse matrix of shape (n, d)
        What it was fitted to.
    layout : {"auto", "pca", "tsne"}
        Principal components, or t-SNE; "auto" takes the first of 2,000 or more points,
        and where they hold half of the variance.
    names : sequence of str, optional
        Of the columns.

    Returns
    -------
    Plane
        Coordinates, and how they were found.
    """
    check_choice("layout", layout, LAYOUTS)
    X = X if is_sparse(X) else np.asarray(X)
    _check_shape(model, X)
    if getattr(model, "metric", None) in PAIRS:
        return _plane_of_pairs(model)
    n, d = X.shape
    if d == 1 or (d == 2 and layout == "auto"):
        xy = np.zeros((n, 2))
        xy[:, :d] = X.toarray() if is_sparse(X) else X
        axes = [*(("column 1", "column 2") if names is None else map(str, names)), ""]
        return Plane(xy, (axes[0], axes[1]), "The data as they are.")
    if n < 3:
        xy = np.zeros((n, 2))
        return Plane(xy, ("", ""), "Too few rows for a plane.", measured=False)
    xy, share = _principal_components(X)
    if layout == "auto":
        layout = "pca" if n >= FEW or share.sum() >= FLAT else "tsne"
    if layout == "pca" or n < 5:
        first, second = (f"component {i + 1} ({s:.0%})" for i, s in enumerate(share))
        said = f"Two principal components, which hold {share.sum():.0%} of the variance"
        if share.sum() < FLAT:
            said += "; what overlaps here may be apart in other directions"
        return Plane(xy, (first, second), f"{said}.")
    said = (
        "Laid out by t-SNE, which keeps neighbors together; gaps and areas mean little "
        f"(two principal components hold {share.sum():.0%} of the variance)."
    )
    xy = _near_to_neighbors(model, X, xy)
    return Plane(xy, ("t-SNE 1", "t-SNE 2"), said, measured=False)


def _check_shape(model: Any, X: Any) -> None:
    """Refuse data that the model was not fitted to, by their shape."""
    n, d = on_cpu(model.labels_).size, getattr(model, "n_features_in_", None)
    fits = len(X.shape) == 2 and X.shape[0] == n and (d is None or X.shape[1] == d)
    if not fits:
        raise InputError(
            f"X has shape {X.shape}, and the model was fitted to ({n}, {d})."
        )


def _plane_of_pairs(model: Any) -> Plane:
    """Lay out rows of which only pairs are known."""
    F = getattr(model, "embedding_", None)
    if F is None or F.shape[1] < 2:
        F = np.random.default_rng(0).random((on_cpu(model.labels_).size, 2))
        said = "The data are pairs of rows: places are arbitrary."
        return Plane(F, ("", ""), said, measured=False)
    xy = _turned(PCA(2, random_state=0).fit_transform(F))
    said = "The data are pairs of rows: a plane through the eigenvectors, Eq. (11)."
    return Plane(xy, ("first direction", "second direction"), said, measured=False)


def _principal_components(X: Any) -> tuple[Any, Any]:
    """Return two principal components, and the shares of the variance they hold."""
    if is_sparse(X) and min(X.shape) == 2:
        X = X.toarray()
    solver = "arpack" if is_sparse(X) else "auto"
    reduced = PCA(2, svd_solver=solver, random_state=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # of rows that are all equal
        xy = _turned(reduced.fit_transform(X))
        return xy, np.nan_to_num(reduced.explained_variance_ratio_)


def _near_to_neighbors(model: Any, X: Any, xy: Any) -> Any:
    """Lay rows out by t-SNE, from principal components on."""
    if is_sparse(X) and min(X.shape) == 2:
        X = X.toarray()
    start = xy / max(xy[:, 0].std(), 1e-300) * 1e-4
    near = TSNE(
        init=start,
        perplexity=min(30, (X.shape[0] - 1) / 3),
        max_iter=500,
        random_state=0,
        metric=_known_metric(model),
    )
    return near.fit_transform(X)


def _known_metric(model: Any) -> Any:
    """Return the metric by a name that scikit-learn's searches know."""
    metric = getattr(model, "metric", "euclidean")
    return "euclidean" if metric in ("l2", "sqeuclidean") else metric


def _turned(xy: Any) -> Any:
    """Fix the signs, which are arbitrary: the largest entry of each is positive."""
    largest = np.abs(xy).argmax(axis=0)
    return xy * np.where(xy[largest, [0, 1]] < 0, -1.0, 1.0)


def strongest(S: Any, number: int) -> tuple[Any, Any, Any, int]:
    """Return the heaviest edges of a symmetric graph.

    Parameters
    ----------
    S : sparse matrix of shape (n, n)
        Weights.
    number : int
        Most edges to return.

    Returns
    -------
    i, j : arrays of int
        Their ends, i < j.
    weights : array
        Their weights, the heaviest first.
    every : int
        How many edges there are in all.
    """
    S = coo_array(S)
    i, j = S.coords
    upper = np.flatnonzero((i < j) & (S.data > 0))
    heavy = upper
    if upper.size > number:
        heavy = upper[np.argpartition(-S.data[upper], number - 1)[:number]]
    heavy = heavy[np.argsort(-S.data[heavy], kind="stable")]
    return i[heavy], j[heavy], S.data[heavy], upper.size


def spread_edges(S: Any, labels: Any, number: int) -> tuple[Any, Any, Any, int]:
    """Return heavy edges of every cluster, each by its share of the edges.

    Parameters
    ----------
    S : sparse matrix of shape (n, n)
        Weights.
    labels : array of int of shape (n,)
        Clusters.
    number : int
        About how many edges to return.

    Returns
    -------
    As `strongest`.
    """
    S = coo_array(S)
    i, j, weights, every = strongest(S, S.nnz)
    if every <= number:
        return i, j, weights, every
    if number < 1:
        return i[:0], j[:0], weights[:0], every
    order = np.lexsort((-weights, labels[i]))
    starts = np.r_[0, np.cumsum(np.bincount(labels[i]))]
    parts = [
        order[a : a + max(1, round((b - a) * number / every))]
        for a, b in pairwise(starts)
        if b > a
    ]
    kept = np.concatenate(parts)
    kept = kept[np.argsort(-weights[kept], kind="stable")]
    return i[kept], j[kept], weights[kept], every


@dataclass(frozen=True, eq=False)
class Blocks:
    """A graph as a matrix, ordered by cluster.

    Attributes
    ----------
    means : array of shape (m, m)
        Mean weights of blocks of rows and columns; m is n where each is one.
    order : array of int of shape (n,)
        Which row stands where.
    edges : array of int of shape (m + 1,)
        The places between which a block lies.
    ends : array of int
        Where the clusters end.
    """

    means: np.ndarray
    order: np.ndarray
    edges: np.ndarray
    ends: np.ndarray


def ordered(S: Any, labels: Any, most: int = 400) -> Blocks:
    """Order a graph by cluster, neighbors near to each other.

    Parameters
    ----------
    S : sparse matrix of shape (n, n)
        Weights.
    labels : array of int of shape (n,)
        Clusters.
    most : int
        Most blocks; of more rows, several make a block.

    Returns
    -------
    Blocks
        The matrix.
    """
    S, labels = csr_array(S), np.asarray(labels)
    n = labels.size
    place = np.empty(n, dtype=np.int64)
    place[reverse_cuthill_mckee(S, symmetric_mode=True)] = np.arange(n)
    order = np.lexsort((place, labels))
    place[order] = np.arange(n)
    m = min(n, most)
    edges = np.linspace(0, n, m + 1).round().astype(np.int64)
    block = np.searchsorted(edges, place, side="right") - 1
    held = coo_array(S)
    i, j = held.coords
    sums = np.zeros(m * m)
    np.add.at(sums, block[i] * m + block[j], held.data)
    width = np.diff(edges)
    means = sums.reshape(m, m) / np.outer(width, width)
    return Blocks(means, order, edges, np.cumsum(np.bincount(labels)))


@dataclass(frozen=True, eq=False)
class Sureness:
    """How sure each assignment is.

    Attributes
    ----------
    own : array of shape (n,)
        The share of a row's weight before the cut that lay in its cluster.
    second : array of int of shape (n,)
        The other cluster with most of it; -1 if there is none.
    share : array of shape (n,)
        What that has.
    """

    own: np.ndarray
    second: np.ndarray
    share: np.ndarray


def sureness(model: Any, X: Any) -> Sureness | None:
    """Tell how sure each assignment is.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array or sparse matrix of shape (n, d)
        What it was fitted to.

    Returns
    -------
    Sureness or None
        None for estimators that do not tell.
    """
    if not hasattr(model, "memberships"):
        return None
    shares = model.memberships(X).tocoo()
    rows, columns = shares.coords
    n = on_cpu(model.labels_).size
    is_own = columns == on_cpu(model.labels_)[rows]
    own = np.zeros(n)
    own[rows[is_own]] = shares.data[is_own]
    rows, columns, data = (a[~is_own] for a in (rows, columns, shares.data))
    second, share = np.full(n, -1), np.zeros(n)
    last = np.lexsort((-columns, data))  # the largest comes last, and stays
    second[rows[last]], share[rows[last]] = columns[last], data[last]
    second[share <= 0] = -1
    return Sureness(np.clip(own, 0.0, 1.0), second, share)


def valley(model: Any, X: Any, sure: Sureness) -> float | None:
    """Tell how much sparser it is at the borders of the clusters than inside.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array or sparse matrix of shape (n, d)
        What it was fitted to.
    sure : Sureness
        How sure each assignment is.

    Returns
    -------
    float or None
        The distance of rows at borders to their nearest rows, over that of others in
        the same cluster: a geometric mean of medians over the clusters, on 2,000 rows.
        None where there are too few of either, or no distances.
    """
    metric = getattr(model, "metric", "euclidean")
    n = on_cpu(model.labels_).size
    if n < 3 * NEAR or metric == "affinity" or (metric in PAIRS and is_sparse(X)):
        return None
    rows = np.arange(n)
    if n > SAMPLED:
        rows = np.sort(np.random.default_rng(0).choice(n, SAMPLED, replace=False))
    if metric == "precomputed":
        far = np.partition(X[rows], range(NEAR + 1), axis=1)[:, 1 : NEAR + 1]
    else:
        search = NearestNeighbors(
            n_neighbors=NEAR + 1, metric=_known_metric(model)
        ).fit(X)
        far = search.kneighbors(X[rows])[0][:, 1:]
    far = far.mean(axis=1)
    label, border = on_cpu(model.labels_)[rows], sure.own[rows] < BORDER
    found = []
    for number in np.unique(label):
        outer, inner = (far[(label == number) & at] for at in (border, ~border))
        if min(outer.size, inner.size) >= 5 and np.median(inner) > 0:
            found.append((np.median(outer) / np.median(inner), outer.size))
    if not found:
        return None
    ratios, weights = map(np.array, zip(*found, strict=True))
    ratios = np.maximum(ratios, 1e-300)
    return float(np.exp(np.average(np.log(ratios), weights=weights)))
