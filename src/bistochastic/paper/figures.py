"""Figures 1 and 2: the two moons, and convergence."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from bistochastic import ANCMM, CAN
from bistochastic.datasets.load import catalogue, load
from bistochastic.io.paths import FilePath
from bistochastic.metrics import clustering_accuracy
from bistochastic.paper.protocol import FIXED, KS, TOYS, Record, prepared
from bistochastic.paper.runs import best
from bistochastic.plot import pyplot

COLORS = np.array(["#0072b2", "#e69f00"])
CONVERGENCE = ("ecoli", "letter", "movement", "wine")


def matched(y: Any, labels: Any) -> Any:
    """Return the clusters named by the classes that fit best."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import confusion_matrix

    counts = confusion_matrix(y, labels)
    rows, columns = linear_sum_assignment(-counts)
    name = dict(zip(columns.tolist(), rows.tolist(), strict=True))
    return np.array([name.get(label, -1) for label in labels.tolist()])


def figure_1(records: Iterable[Record] = (), seed: int = 1) -> Any:
    """Draw Figure 1: data, affinity, graphs and errors of CAN and ANCMM.

    Parameters
    ----------
    records : iterable of dict
        Records of the toy with many seeds, for a last panel; none by default.
    seed : int
        Seed of the moons.

    Returns
    -------
    Figure
        Of matplotlib.
    """
    held = load("moons", seed=seed)
    X, y = held.data, held.target
    figure, axes = pyplot().subplots(2, 4, figsize=(17, 7.5), layout="constrained")
    _points(axes[0, 0], X, COLORS[y], "Data, by class")
    order = np.argsort(y, kind="stable")
    K = rbf_kernel(X, gamma=1 / (2 * np.median(_spread(X))))
    axes[1, 0].imshow(K[np.ix_(order, order)], cmap="Greys", interpolation="nearest")
    axes[1, 0].set(title="Gaussian affinity, points by class", xticks=[], yticks=[])
    for at, (name, models) in enumerate(_models().items(), start=1):
        model = _chosen(models, X, y)
        k = model.n_neighbors
        found = matched(y, model.labels_)
        wrong = found != y
        share = 100 * clustering_accuracy(y, model.labels_)
        _edges(axes[0, at], X, model.affinity_matrix_)
        _points(axes[0, at], X, COLORS[found], f"{name}, k = {k}: ACC {share:.1f}")
        _points(axes[1, at], X, "0.8", f"{name}: {wrong.sum()} wrong")
        axes[1, at].scatter(*X[wrong].T, s=40, c=COLORS[y[wrong]], marker="x")
    _seeds(axes[0, 3], axes[1, 3], list(records))
    return figure


def _models() -> dict[str, list[Any]]:
    return {
        "CAN": [CAN(2, n_neighbors=k) for k in KS],
        "ANCMM": [ANCMM.paper(2, k) for k in KS],
    }


def _chosen(models: list[Any], X: Any, y: Any) -> Any:
    """Return the model with the best accuracy, as the paper chooses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [model.fit(X) for model in models]
    return max(made, key=lambda model: clustering_accuracy(y, model.labels_))


def _spread(X: Any) -> Any:
    from scipy.spatial.distance import pdist

    return np.sort(pdist(X, "sqeuclidean"))[: 10 * len(X)]


def _points(axes: Any, X: Any, colors: Any, title: str) -> None:
    axes.scatter(*X.T, s=14, c=colors, zorder=2)
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")


def _edges(axes: Any, X: Any, S: Any) -> None:
    from matplotlib.collections import LineCollection

    held = S.tocoo()
    i, j = held.coords
    upper = i < j
    axes.add_collection(
        LineCollection(
            X[np.c_[i, j][upper]],
            colors="0.6",
            linewidths=6 * held.data[upper],
            zorder=1,
        )
    )


def _seeds(above: Any, below: Any, records: list[Record]) -> None:
    """Draw the accuracies over many seeds, by protocol."""
    titles = {"paper": "k by the labels", "label-free": "defaults"}
    for axes, protocol in ((above, "paper"), (below, "label-free")):
        found: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if record["set"] in TOYS and record["protocol"] == protocol:
                place = record["method"], record["set"]
                found.setdefault(place, []).append(record)
        methods = sorted({method for method, _ in found})
        if not methods:
            axes.axis("off")
            continue
        values = [
            [best(held)["ACC"] for (m, _), held in found.items() if m == method]
            for method in methods
        ]
        axes.boxplot(values, tick_labels=methods, widths=0.5)
        for at, held in enumerate(values, start=1):
            jitter = np.random.default_rng(0).uniform(-0.12, 0.12, len(held))
            axes.scatter(at + jitter, held, s=8, color="0.4")
        axes.set(title=f"{len(values[0])} seeds, {titles[protocol]}", ylabel="ACC")


def figure_2(folder: FilePath | None = None, sets: Sequence[str] = CONVERGENCE) -> Any:
    """Draw Figure 2: how the objective and the components go, step by step.

    Parameters
    ----------
    folder : path, optional
        Where the sets are, as in `load`.
    sets : sequence of str
        Which sets; those that are not there are left out.

    Returns
    -------
    Figure
        Of matplotlib.
    """
    from bistochastic.core.errors import FileError

    figure, axes = pyplot().subplots(
        1, len(sets), figsize=(17, 3.8), layout="constrained"
    )
    for panel, name in zip(np.atleast_1d(axes), sets, strict=True):
        try:
            held = load(name, folder=folder)
        except FileError:
            panel.set(title=f"{catalogue()[name]['title']}: not there")
            panel.axis("off")
            continue
        X = prepared(FIXED[held.kind], held.data)
        c = held.classes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ANCMM.paper(c, 10).fit(X)
        steps = np.arange(1, model.n_iter_ + 1)
        panel.plot(
            steps, [h["objective"] for h in model.history_], "o-", color=COLORS[0]
        )
        panel.set(title=f"{held.title}, k = 10", xlabel="step")
        panel.set_ylabel("objective, Eq. (10)", color=COLORS[0])
        other = panel.twinx()
        found = [h["n_components"] for h in model.history_]
        other.step(steps, found, where="mid", color=COLORS[1])
        other.axhline(c, color=COLORS[1], linestyle=":")
        other.set_ylabel("components", color="#a06a00")
    return figure
