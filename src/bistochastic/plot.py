"""Pictures of results: each function takes an Axes, or makes one, and returns it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError, MissingError
from bistochastic.core.parameters import Count
from bistochastic.core.quiet import quietly
from bistochastic.report.geometry import (
    checked,
    color,
    ordered,
    plane,
    spread_edges,
    sureness,
)

__all__ = ["confidence", "convergence", "graph", "matrix", "scaling", "stability"]
MANY = 12  # the most clusters that are listed in a legend
MARKERS = "oDs^vP"


def pyplot() -> Any:
    """Import matplotlib, or say how to get it: before a long run, not after it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingError(
            "Pictures need matplotlib, which is not installed: "
            "pip install 'bistochastic[plot]'"
        ) from None
    return plt


def _axes(ax: Any) -> Any:
    """Return the Axes, a new one if there is none."""
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


@quietly
def graph(
    model: Any,
    X: Any,
    *,
    ax: Any = None,
    layout: Any = "auto",
    n_edges: int = 4000,
    names: Sequence[str] | None = None,
    scatter_kw: dict[str, Any] | None = None,
    edges_kw: dict[str, Any] | None = None,
) -> Any:
    """Draw the data in a plane, by cluster, with the learned graph.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What it was fitted to.
    ax : Axes, optional
        Where to draw; a new figure by default.
    layout : {"auto", "pca", "tsne"} or array of shape (n_samples, 2)
        Principal components, t-SNE, or places; "auto" takes the first of 2,000 or more
        points, and where two components hold half of the variance.
    n_edges : int, default=4000
        About how many edges to draw, the heaviest of each cluster.
    names : sequence of str, optional
        Of the columns, for data with two.
    scatter_kw, edges_kw : dict, optional
        Passed on to `Axes.scatter` and `LineCollection`.

    Returns
    -------
    Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bistochastic import ANCMM, plot
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> ax = plot.graph(ANCMM(2).fit(X), X)
    >>> ax.get_title()
    '2 clusters of 200 points'
    """
    ax, model = _axes(ax), checked(model)
    labels = on_cpu(model.labels_)
    number = int(labels.max()) + 1
    xy, across, up = _places(model, X, layout, names)
    _draw_edges(ax, model, xy, n_edges, edges_kw)
    size = np.clip(9000 / labels.size, 3, 24)
    _draw_points(ax, xy, labels, size, scatter_kw)
    ax.set(
        xlabel=across, ylabel=up, title=f"{number:,} clusters of {labels.size:,} points"
    )
    if number <= MANY:
        ax.legend(title="cluster", fontsize="small", markerscale=np.sqrt(24 / size))
    return ax


def _places(
    model: Any, X: Any, layout: Any, names: Sequence[str] | None
) -> tuple[Any, str, str]:
    """Return places of the points, and names of the axes."""
    if isinstance(layout, str):
        held = plane(model, X, layout=layout, names=names)
        return held.xy, *held.names
    xy, n = np.asarray(layout), on_cpu(model.labels_).size
    if xy.shape != (n, 2):
        raise InputError(f"layout has shape {xy.shape}, and {n} points need ({n}, 2).")
    return xy, "", ""


def _draw_edges(
    ax: Any, model: Any, xy: Any, number: int, given: dict[str, Any] | None
) -> None:
    """Draw the heaviest edges of each cluster."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import LineCollection

    labels = on_cpu(model.labels_)
    i, j, weights, _ = spread_edges(model.affinity_matrix_, labels, number)
    if i.size:
        options = {
            "color": "0.6", "alpha": 0.4, "zorder": 1,
            "linewidth": 0.3 + 1.7 * weights / weights.max(),
        } | normalize_kwargs(given or {}, LineCollection)  # fmt: skip
        ax.add_collection(LineCollection(xy[np.c_[i, j]], **options))


def _draw_points(
    ax: Any, xy: Any, labels: Any, size: float, given: dict[str, Any] | None
) -> None:
    """Draw points, by cluster."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    given = normalize_kwargs(given or {}, PathCollection)
    for label in range(int(labels.max()) + 1):
        options = {
            "s": size, "color": color(label), "marker": MARKERS[label % 6],
            "linewidth": 0, "zorder": 2, "label": f"{label}",
        } | given  # fmt: skip
        if "c" in given:
            del options["color"]
        ax.scatter(*xy[labels == label].T, **options)


@quietly
def matrix(
    model: Any, *, ax: Any = None, n_blocks: int = 400, cmap: Any = "Greys"
) -> Any:
    """Draw the doubly stochastic matrix, rows ordered by cluster.

    Parameters
    ----------
    model : estimator
        A fitted one.
    ax : Axes, optional
        Where to draw; a new figure by default.
    n_blocks : int, default=400
        Of more rows, so many blocks of rows are drawn, by their mean weights.
    cmap : str or Colormap
        Colors.

    Returns
    -------
    Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bistochastic import ANCMM, plot
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> ax = plot.matrix(ANCMM(2).fit(X))
    >>> ax.images[0].get_array().shape
    (200, 200)
    """
    Count(1)("n_blocks", n_blocks)
    ax, model = _axes(ax), checked(model)
    held = ordered(model.affinity_matrix_, on_cpu(model.labels_), n_blocks)
    n = on_cpu(model.labels_).size
    image = ax.imshow(
        np.sqrt(held.means), cmap=cmap, interpolation="nearest", extent=(0, n, n, 0)
    )
    ax.figure.colorbar(image, ax=ax, label="square root of the weight", shrink=0.8)
    ax.set(title="The graph as a matrix, by cluster", xlabel="row", ylabel="row")
    wide = np.diff(np.r_[0, held.ends]) > n / 20
    ax.set(xticks=held.ends[wide], yticks=held.ends[wide])
    return ax


@quietly
def convergence(model: Any, *, ax: Any = None) -> Any:
    """Draw objective and number of components over the steps.

    Parameters
    ----------
    model : estimator
        A fitted one that keeps `history_`.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where the objective was drawn; components have an axis on the right.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bistochastic import ANCMM, plot
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> model = ANCMM(2).fit(X)
    >>> ax = plot.convergence(model)
    >>> len(ax.lines[0].get_xdata()) == model.n_iter_
    True
    """
    ax, model = _axes(ax), checked(model)
    history = _asked(model, "history_", "steps")
    if "objective" not in history[0]:
        raise InputError(f"{type(model).__name__} keeps no objective to draw.")
    steps = np.arange(1, len(history) + 1)
    ax.plot(steps, [h["objective"] for h in history], "o-", color=color(0))
    ax.set(xlabel="step", title="Convergence: the penalty rises until it splits")
    ax.set_ylabel("objective, Eq. (10)", color=color(0))
    found = [h["n_components"] for h in history]
    other = ax.twinx()
    other.step(steps, found, where="mid", color=color(1))
    other.set_ylabel("components", color=color(1))
    other.yaxis.get_major_locator().set_params(integer=True)
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax


@quietly
def stability(model: Any, *, ax: Any = None) -> Any:
    """Draw how well the partitions of other numbers of neighbors agree.

    Parameters
    ----------
    model : ANCMM
        A fitted one.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bistochastic import ANCMM, plot
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> model = ANCMM(2).fit(X)
    >>> ax = plot.stability(model)
    >>> len(ax.patches) == len(model.trials_)
    True
    """
    ax, model = _axes(ax), checked(model)
    trials = _asked(model, "trials_", "other numbers of neighbors")
    values = [trial["agreement"] + 0.0 for trial in trials]
    colors = [color(0) if trial["kept"] else "0.65" for trial in trials]
    bars = ax.bar(range(len(trials)), values, color=colors)
    ax.bar_label(bars, [f"{value:.2f}" for value in values], padding=2)
    ax.set_xticks(range(len(trials)), [_tried(trial) for trial in trials])
    ax.set(
        ylim=(min(0.0, *values), 1.1),
        xlabel="number of neighbors (colored: the one that was kept)",
        ylabel="adjusted Rand index",
        title=f"Agreement with the result (stability {model.stability_:.2f})",
    )
    return ax


def _tried(trial: dict[str, Any]) -> str:
    k = trial["n_neighbors"]
    return f"{k}" if k is not None else f"{trial['refine']}"


@quietly
def confidence(model: Any, X: Any, *, ax: Any = None) -> Any:
    """Draw how sure the assignments are, sorted within each cluster.

    The confidence of a row is the share of its weight before the cut that lay in its
    own cluster; see `ANCMM.memberships`.

    Parameters
    ----------
    model : ANCMM
        A fitted one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What it was fitted to.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bistochastic import ANCMM, plot
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> ax = plot.confidence(ANCMM(2).fit(X), X)
    >>> ax.get_xlabel()
    'share of the weight in its own cluster'
    """
    ax, model = _axes(ax), checked(model)
    sure = sureness(model, X)
    if sure is None:
        raise InputError(f"{type(model).__name__} does not tell how sure it is.")
    at, middles = 0, []
    for label in range(int(on_cpu(model.labels_).max()) + 1):
        held = np.sort(sure.own[on_cpu(model.labels_) == label])
        ax.fill_betweenx(
            np.arange(at, at + held.size + 1), 0, np.r_[held, held[-1:]],
            color=color(label), step="post", linewidth=0,
        )  # fmt: skip
        middles.append(at + held.size / 2)
        at += held.size
    ax.axvline(sure.own.mean(), color="0.3", linestyle="--", linewidth=1)
    ax.set(
        xlim=(0, 1.02), ylim=(0, at), xlabel="share of the weight in its own cluster",
        title=f"How sure each row is (mean {sure.own.mean():.2f})",
    )  # fmt: skip
    ax.set_ylabel("cluster")
    if len(middles) <= 2 * MANY:
        ax.set_yticks(middles, range(len(middles)))
    else:
        ax.set_yticks([])
    return ax


@quietly
def scaling(before: Any, after: Any, *, ax: Any = None) -> Any:
    """Draw the row sums of a matrix before and after it was scaled.

    Parameters
    ----------
    before : array-like or sparse matrix of shape (n, n)
        The matrix.
    after : ScalingResult, array-like or sparse matrix of shape (n, n)
        What `marcus_mapping` made of it.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Where it was drawn.

    Examples
    --------
    >>> from bistochastic import marcus_mapping, plot
    >>> from bistochastic.datasets.toy import planted_graph
    >>> S, _ = planted_graph(300, 3)
    >>> ax = plot.scaling(S, marcus_mapping(S))
    >>> ax.get_yscale()
    'log'
    """
    ax = _axes(ax)
    sums = []
    for A in (before, getattr(after, "matrix", after)):
        A = A if is_sparse(A) else np.asarray(A)
        if len(A.shape) != 2 or A.shape[0] != A.shape[1] or not A.shape[0]:
            raise InputError(f"A matrix has shape {A.shape}, and is not square.")
        A = coo_array(A)
        sums.append(np.sort(np.asarray(A.sum(axis=1)).ravel()))
    if sums[0].size != sums[1].size:
        raise InputError(f"{sums[0].size} rows before, and {sums[1].size} after.")
    share = np.linspace(0, 100, sums[0].size)
    off = np.abs(sums[1] - 1).max()
    ax.plot(share, sums[0], color=color(1), label="before")
    ax.plot(share, sums[1], color=color(0), label=f"after: within {off:.0e} of one")
    if min(s.min(initial=1.0) for s in sums) > 0:
        ax.set_yscale("log")
    ax.set(
        xlabel="rows, in percent, by their sums", ylabel="row sum",
        title="Row sums before and after",
    )  # fmt: skip
    ax.legend()
    return ax


def _asked(model: Any, name: str, what: str) -> Any:
    """Return an attribute, or say that the estimator does not have it."""
    held = getattr(model, name, None)
    if not held:
        raise InputError(f"{type(model).__name__} keeps no {what} to draw.")
    return held
