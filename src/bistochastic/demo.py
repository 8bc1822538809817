"""What ``make demo`` shows: Wine clustered as in the paper, and a graph scaled."""

import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import minmax_scale

from bistochastic import ANCMM, SupportError, marcus_mapping, support
from bistochastic.datasets.toy import planted_graph
from bistochastic.io.writing import replacing
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from bistochastic.scaling.marcus import LIMITS

KNOWN_AS = {
    "auto": "damped, then Newton",
    "newton": "Newton, conjugate gradients",
    "damped": "Eq. (2), Zass and Shashua",
    "alternating": "Algorithm 1, Sinkhorn",
    "fixed_point": "Corollary 2",
}


CULTIVARS = ("Barolo", "Grignolino", "Barbera")
COLORS = ("#0072b2", "#e69f00", "#009e73")
SCORES = {
    "ACC": clustering_accuracy,
    "NMI": normalized_mutual_information,
    "PUR": purity,
}


def main(folder="build"):
    """Cluster a built-in data set, scale a built-in graph, and leave a picture."""
    table = write_wine(Path(folder))
    scale()
    picture = cluster(Path(folder))
    print(f"The data as a table, for `bistochastic cluster`: {table}")
    print(f"The picture: {picture}" if picture else "No picture: install matplotlib.")


def write_wine(folder):
    """Leave Wine as a table with names of rows and cultivars; return its place."""
    wine = load_wine()
    folder.mkdir(parents=True, exist_ok=True)
    head = ["bottle", *(name.replace("/", "_") for name in wine.feature_names)]
    lines = [[*head, "cultivar"]]
    for i, (x, y) in enumerate(zip(wine.data, wine.target, strict=True), start=1):
        lines.append([i, *x.tolist(), CULTIVARS[y]])
    text = "\n".join(",".join(map(str, line)) for line in lines) + "\n"
    place = folder / "wine.csv"
    if not (place.is_file() and place.read_text() == text):
        with replacing(place) as stream:
            stream.write(text.encode())
    return place


def cluster(folder):
    """Cluster Wine as the paper does, say what came out, and draw it."""
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    print("\nWine, 178 points, columns scaled to [0, 1]: ANCMM.paper(3, 30)\n")
    model = ANCMM.paper(n_clusters=3, n_neighbors=30).fit(X)
    print(f"  {'step':>4} {'lambda':>9} {'components':>10} {'objective':>10}")
    for step, record in enumerate(model.history_, start=1):
        print(
            f"  {step:>4} {record['penalty']:>9.3g} {record['n_components']:>10} "
            f"{record['objective']:>10.4f}"
        )
    S = model.affinity_matrix_
    off = abs(S.sum(axis=1) - 1).max()
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    scores = ", ".join(
        f"{name} {100 * score(y, model.labels_):.1f}" for name, score in SCORES.items()
    )
    print()
    say(
        f"The graph has {S.nnz:,} weights, row sums within {off:.0e} of one, and falls "
        f"apart into {model.n_components_} components, the clusters: {sizes} points. "
        f"Against the three cultivars: {scores}. The paper prints 98.3, 92.6, 98.3."
    )
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    figure = draw(plt, X, model)
    figure.savefig(folder / "demo.png", dpi=150)
    plt.close(figure)
    return folder / "demo.png"


def draw(plt, X, model):
    """Draw the data with the learned graph, the graph as a matrix, the convergence."""
    from matplotlib.collections import LineCollection

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13.5, 4.2), layout="constrained"
    )
    figure.get_layout_engine().set(wspace=0.06)
    labels, S = model.labels_, model.affinity_matrix_.tocoo()
    plane = PCA(2).fit_transform(X)
    i, j = S.coords
    upper = i < j
    left.add_collection(
        LineCollection(
            plane[np.c_[i, j][upper]],
            colors="0.5",
            linewidths=12 * S.data[upper],
            alpha=0.5,
            zorder=1,
        )
    )
    for label, color in enumerate(COLORS):
        left.scatter(
            *plane[labels == label].T, s=18, color=color, zorder=2,
            label=f"cluster {label}: {np.sum(labels == label)} points",
        )  # fmt: skip
    left.set(title="Data and learned graph", xlabel="PC 1", ylabel="PC 2")
    left.locator_params(nbins=5)
    left.legend(fontsize=8, loc="lower left")
    order = np.argsort(labels, kind="stable")
    ordered = model.affinity_matrix_.toarray()[np.ix_(order, order)]
    image = middle.imshow(ordered**0.5, cmap="Greys", interpolation="nearest")
    ends = np.cumsum(np.bincount(labels))
    middle.set(
        title="The graph as a matrix, points by cluster",
        xticks=ends, yticks=ends, xlabel="point", ylabel="point",
    )  # fmt: skip
    figure.colorbar(image, ax=middle, label="square root of the weight", shrink=0.8)
    steps = np.arange(1, len(model.history_) + 1)
    right.plot(steps, [h["objective"] for h in model.history_], "o-", color=COLORS[0])
    right.set(title="Convergence: the penalty rises until it splits", xlabel="step")
    right.set_ylabel("objective, Eq. (10)", color=COLORS[0])
    number = right.twinx()
    found = [h["n_components"] for h in model.history_]
    number.step(steps, found, where="mid", color=COLORS[1])
    number.set_ylabel("components", color="#a06a00")
    number.set_yticks(range(max(found) + 2))
    return figure


def scale():
    """Scale a built-in clustered graph and say what happened."""
    S, labels = planted_graph(5000, 5)
    rows = S.sum(axis=1)
    say(
        f"A graph of {S.shape[0]:,} points in {labels.max() + 1} clusters, "
        f"{S.nnz:,} weights. Its row sums run from {rows.min():.2g} to "
        f"{rows.max():.3g}. {support(S)}"
    )
    say(
        "The Marcus mapping M(S) = DSD, asked for row sums within 1e-8 of one. A "
        "product is one S u, the unit of work:"
    )
    print(f"  {'method':<12} {'products':>9} {'seconds':>8} {'residual':>9}  ended")
    for method in LIMITS:
        result, seconds = _timed(S, method)
        print(
            f"  {method:<12} {result.n_products:>9,} {seconds:>8.3f} "
            f"{result.residual:>9.1e}  {result.status.name.lower():<10}"
            f" {KNOWN_AS[method]}"
        )
    _compare(S, labels)
    _without_support()


def say(text):
    """Print a paragraph that fits a terminal."""
    print(textwrap.fill(text, 79), end="\n\n")


def _timed(S, method):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says how each method ended
        result = marcus_mapping(S, method=method, tol=1e-8)
    return result, time.perf_counter() - start


def _compare(S, labels):
    M = marcus_mapping(S).matrix
    rows = M.sum(axis=1)
    largest = [np.sort(A.sum(axis=1))[::-1] for A in (S, M)]
    share = [part[: len(labels) // 100].sum() / part.sum() for part in largest]
    same = "is" if (M != M.T).nnz == 0 else "is not"
    print()
    say(
        f"In M(S) the row sums run from 1 - {1 - rows.min():.0e} to "
        f"1 + {rows.max() - 1:.0e}. It {same} symmetric to the bit and has "
        f"{M.nnz:,} weights. In S the heaviest hundredth of the points holds "
        f"{share[0]:.0%} of the weight, in M(S) {share[1]:.0%}: now every point counts "
        f"the same. {_inside(M, labels):.3%} of the weight lies inside the clusters "
        f"({_inside(S, labels):.3%} before)."
    )


def _inside(A, labels):
    A = A.tocoo()
    i, j = A.coords
    return A.data[labels[i] == labels[j]].sum() / A.data.sum()


def _without_support():
    say("Not every matrix has such a scaling. For Eq. (3) of the paper:")
    S = np.array([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]])
    try:
        marcus_mapping(S)
    except SupportError as error:
        say(f"SupportError: {error}")
    cured = marcus_mapping(S, unsupported="regularize")
    say(f'With unsupported="regularize": {cured}')
    print(cured.matrix.round(3))


if __name__ == "__main__":
    main(*sys.argv[1:])
