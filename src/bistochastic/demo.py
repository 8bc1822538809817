"""What ``make demo`` shows: Wine clustered as in the paper, and a graph scaled."""

import sys
import textwrap
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import MinMaxScaler

from bistochastic import ANCMM, SupportError, marcus_mapping, plot, support
from bistochastic.core.errors import MissingError
from bistochastic.datasets.toy import planted_graph
from bistochastic.io.writing import replacing
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from bistochastic.report import check_installed, write_page
from bistochastic.scaling.marcus import LIMITS

KNOWN_AS = {
    "auto": "damped, then Newton",
    "newton": "Newton, conjugate gradients",
    "damped": "Eq. (2), Zass and Shashua",
    "alternating": "Algorithm 1, Sinkhorn",
    "fixed_point": "Corollary 2",
}


CULTIVARS = ("Barolo", "Grignolino", "Barbera")
SCORES = {
    "ACC": clustering_accuracy,
    "NMI": normalized_mutual_information,
    "PUR": purity,
}


def main(folder: str | Path = "build") -> None:
    """Cluster a built-in data set, scale a built-in graph, and leave a page."""
    folder = Path(folder)
    makes = _installed()
    table = write_wine(folder)
    scale()
    shown = cluster(folder, makes)
    print(f"The data as a table, for `bistochastic cluster`: {_name(table)}")
    for name, place in shown.items():
        print(f"{name}\n{_name(place)}")


def _name(path: Path) -> str:
    """Return a path to print, with bytes that are not UTF-8 written as numbers."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def write_wine(folder: Path) -> Path:
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


def _installed() -> list[str]:
    """Return what can be left of a picture and a page, and say what lacks for them."""
    makes = []
    for what, check in (("picture", plot.pyplot), ("page", check_installed)):
        try:
            check()
            makes.append(what)
        except MissingError as error:
            say(f"There will be no {what}. {error}")
    return makes


def cluster(
    folder: Path, makes: Sequence[str] = ("picture", "page")
) -> dict[str, Path]:
    """Cluster Wine as the paper does and by the default; leave a picture and a page."""
    wine = load_wine()
    scaler = MinMaxScaler().fit(wine.data)
    X, y = scaler.transform(wine.data), wine.target
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
    print()
    say(
        f"The graph has {S.nnz:,} weights, row sums within {off:.0e} of one, and falls "
        f"apart into {model.n_components_} components, the clusters: {sizes(model)} "
        f"points. Against the three cultivars: {scores(y, model)}. The paper prints "
        "98.3, 92.6, 98.3."
    )
    free = ANCMM(n_clusters=3).fit(X)
    say(
        f"With nothing tuned, ANCMM(3) takes {free.n_neighbors_} neighbors: "
        f"{sizes(free)} points, {scores(y, free)}."
        f"{' That is on the page.' if 'page' in makes else ''}"
    )
    left = {}
    if "picture" in makes:
        left["The picture:"] = draw(folder / "demo.png", X, model)
    if "page" in makes:
        page = _write_page(folder / "demo.html", free, X, wine, scaler)
        left["The page, to open in a browser:"] = page
    return left


def _write_page(page: Path, model: Any, X: Any, wine: Any, scaler: Any) -> Path:
    """Leave the page of Wine; return its place."""
    write_page(
        page,
        model,
        X,
        names=wine.feature_names,
        ids=[f"bottle {at}" for at in range(1, len(X) + 1)],
        truth=[CULTIVARS[at] for at in wine.target],
        shift=scaler.data_min_,
        factor=scaler.data_range_,
        title="Wine: 178 bottles in 3 clusters",
        more={"scaled": "MinMaxScaler"},
        force=True,
    )
    return page


def sizes(model: Any) -> str:
    """Return how many points each cluster has, as text."""
    return ", ".join(map(str, np.bincount(model.labels_)))


def scores(y: Any, model: Any) -> str:
    """Return how well clusters agree with classes, as text."""
    return ", ".join(
        f"{name} {100 * score(y, model.labels_):.1f}" for name, score in SCORES.items()
    )


def draw(place: Path, X: Any, model: Any) -> Path:
    """Draw the data with the learned graph, the graph as a matrix, the convergence."""
    left = plot.graph(model, X, layout="pca")
    figure = left.figure
    figure.set_size_inches(13.5, 4.2)
    figure.get_layout_engine().set(wspace=0.06)
    grid = figure.add_gridspec(1, 3)
    left.set_subplotspec(grid[0])
    plot.matrix(model, ax=figure.add_subplot(grid[1]))
    plot.convergence(model, ax=figure.add_subplot(grid[2]))
    with replacing(place, force=True) as stream:
        figure.savefig(stream, dpi=150, format="png")
    plot.pyplot().close(figure)
    return place


def scale() -> None:
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


def say(text: str) -> None:
    """Print a paragraph that fits a terminal."""
    print(textwrap.fill(text, 79), end="\n\n")


def _timed(S: Any, method: str) -> tuple[Any, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says how each method ended
        result = marcus_mapping(S, method=method, tol=1e-8)
    return result, time.perf_counter() - start


def _compare(S: Any, labels: Any) -> None:
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


def _inside(A: Any, labels: Any) -> float:
    A = A.tocoo()
    i, j = A.coords
    return A.data[labels[i] == labels[j]].sum() / A.data.sum()


def _without_support() -> None:
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
