"""What a page says of a result: clusters, columns, rows, scores. No pictures."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import listed, several
from bistochastic.core.parameters import PAIRS
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from bistochastic.report.geometry import Sureness, color
from bistochastic.report.subject import Run, short
from bistochastic.report.verdict import tried

SCORES = {
    "accuracy": clustering_accuracy,
    "NMI": normalized_mutual_information,
    "adjusted Rand index": adjusted_rand_score,
    "purity": purity,
}
MEMBERS = 5  # number of typical rows that are named of a cluster
APART = 5  # the most columns that are named of a cluster
SLIGHT = 0.3  # the least difference, in deviations, of a column that is named
LISTED = 300  # the most uncertain rows that are listed
CLASSES = 40  # the most classes, or clusters, of a confusion table
PAIRED = 50  # the most bridges that are listed
ROUNDING = 1e-12  # the deviation, relative to the means, of a constant column


def sentence(run: Run) -> str:
    """Say what was asked for and what came out."""
    n, d = run.X.shape
    where = f" of {short(run.more['file'])}" if run.more.get("file") else ""
    kind = "pairs" if getattr(run.model, "metric", None) in PAIRS else "column"
    wide = "given as pairs" if kind == "pairs" else f"in {several(d, 'column')}"
    asked = getattr(run.model, "n_clusters", None)
    wanted = "a number of clusters to be found" if asked == "auto" else (
        several(int(asked), "cluster") if asked else "clusters"
    )  # fmt: skip
    sizes = np.bincount(run.labels)
    each = listed((f"{size:,}" for size in sizes), 8)
    if sizes.size <= 8:
        each = " and ".join(each.rsplit(", ", 1))
    came = f"{several(run.number, 'cluster')} came out"
    if run.number == asked:
        came = "that many came out"
    return (
        f"{several(n, 'row')}{where} {wide}, asked for {wanted} by "
        f"{type(run.model).__name__}: {came}, of {each} rows."
    )


def clusters(run: Run, sure: Sureness | None) -> list[dict[str, Any]]:
    """Describe each cluster.

    Parameters
    ----------
    run : Run
        The run.
    sure : Sureness or None
        How sure each assignment is.

    Returns
    -------
    list of dict
        Size, share, color, mean confidence, typical members, columns.
    """
    labels, sizes = run.labels, np.bincount(run.labels)
    apart = columns(run)
    typical = members(run, sure)
    made = []
    for label, size in enumerate(sizes.tolist()):
        inside = labels == label
        made.append(
            {
                "label": label,
                "color": color(label),
                "size": size,
                "share": size / labels.size,
                "confidence": None if sure is None else float(sure.own[inside].mean()),
                "members": [run.row(at) for at in typical[label]],
                "columns": apart[label],
            }
        )
    return made


def members(run: Run, sure: Sureness | None) -> list[Any]:
    """Return rows that stand for their cluster: the nearest to its mean."""
    labels = run.labels
    if getattr(run.model, "metric", None) in PAIRS:
        rank = -sure.own if sure is not None else np.arange(labels.size)
    else:
        means = _means(run)
        rank = np.empty(labels.size)
        for label, mean in enumerate(means):
            rows = np.flatnonzero(labels == label)
            part = run.X[rows]
            if is_sparse(part):
                square = np.asarray(part.multiply(part).sum(axis=1)).ravel()
                rank[rows] = square - 2 * (part @ mean)
            else:
                rank[rows] = ((part - mean) ** 2).sum(axis=1)
    order = np.lexsort((rank, labels))
    ends = np.r_[0, np.cumsum(np.bincount(labels))]
    return [order[a : min(a + MEMBERS, b)] for a, b in pairwise(ends)]


def _means(run: Run) -> Any:
    """Return the means of all columns in each cluster."""
    n = run.labels.size
    indicator = csr_array((np.ones(n), (run.labels, np.arange(n))))
    sums = indicator @ run.X
    sums = sums.toarray() if is_sparse(sums) else np.asarray(sums, dtype=np.float64)
    return sums / np.bincount(run.labels)[:, None]


def columns(run: Run) -> list[list[dict[str, Any]]]:
    """Return the columns that set each cluster apart from the others.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    list of list of dict
        For each cluster: name, mean inside and outside in their own units, and the
        difference in deviations of the column.
    """
    many = run.number
    if getattr(run.model, "metric", None) in PAIRS or many < 2:
        return [[] for _ in range(many)]
    sizes = np.bincount(run.labels)[:, None]
    n, means = run.labels.size, _means(run)
    every = (sizes * means).sum(axis=0) / n
    if is_sparse(run.X):
        square = np.asarray(run.X.multiply(run.X).sum(axis=0)).ravel() / n
        spread = np.sqrt(np.maximum(square - every**2, 0))
    else:
        spread = np.asarray(run.X, dtype=np.float64).std(axis=0)
    spread[spread <= ROUNDING * np.abs(means).max(axis=0)] = 0.0
    outside = (n * every - sizes * means) / np.maximum(n - sizes, 1)
    effect = (means - outside) / np.where(spread > 0, spread, np.inf)
    shift = np.zeros(spread.size) if run.shift is None else np.asarray(run.shift)
    factor = np.ones(spread.size) if run.factor is None else np.asarray(run.factor)
    made = []
    for label in range(many):
        first = np.argsort(-np.abs(effect[label]), kind="stable")[:APART]
        made.append(
            [
                {
                    "name": short(run.names[at]),
                    "inside": float(means[label, at] * factor[at] + shift[at]),
                    "outside": float(outside[label, at] * factor[at] + shift[at]),
                    "effect": float(effect[label, at]),
                }
                for at in first
                if abs(effect[label, at]) >= SLIGHT
            ]
        )
    return made


def uncertain(run: Run, sure: Sureness | None) -> list[dict[str, Any]]:
    """Return the rows whose cluster is least sure, the least sure first."""
    if sure is None:
        return []
    steady = run.model.agreement_ if tried(run) else np.ones(run.labels.size)
    order = np.lexsort((steady, sure.own))[:LISTED]
    return [
        {
            "name": run.row(at),
            "at": int(at),
            "cluster": int(run.labels[at]),
            "confidence": round(float(sure.own[at]), 4),
            "second": int(sure.second[at]),
            "share": round(float(sure.share[at]), 4),
            "steady": round(float(steady[at]), 4),
        }
        for at in order
    ]


def compared(run: Run) -> dict[str, Any] | None:
    """Compare clusters with given labels.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    dict or None
        Scores; classes and counts if they are few enough; how many rows had a label.
    """
    if run.truth is None:
        return None
    there = np.array([label is not None for label in run.truth], dtype=bool)
    if not there.any():
        return None
    texts = [str(label) for label in run.truth if label is not None]
    names = sorted(set(texts), key=_natural)
    place = {name: at for at, name in enumerate(names)}
    codes = np.array([place[text] for text in texts])
    labels = run.labels[there]
    made = {
        "scores": {name: float(f(codes, labels)) for name, f in SCORES.items()},
        "rows": int(there.sum()),
        "classes": len(names),
        "counts": None,
    }
    if len(names) <= CLASSES and run.number <= CLASSES:
        counts = np.zeros((len(names), run.number), dtype=np.int64)
        np.add.at(counts, (codes, labels), 1)
        made |= {"counts": counts.tolist(), "names": [short(name) for name in names]}
    return made


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers by value, and before texts."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def joined(run: Run) -> dict[str, Any]:
    """Return the pairs of rows that were joined to keep components together."""
    pairs = np.array(getattr(run.model, "bridges_", ()), dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    return {
        "number": len(pairs),
        "pairs": [
            {"one": run.row(i), "other": run.row(j), "cluster": int(run.labels[i])}
            for i, j in pairs[:PAIRED].tolist()
        ],
    }
