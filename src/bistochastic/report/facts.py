"""What a page says of a result: clusters, rows, signs of doubt, scores. No pictures."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics import adjusted_rand_score

from bistochastic.core.errors import InputError, listed, several
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from bistochastic.parameters import PAIRS
from bistochastic.views import BORDER, checked, color, valley

SCORES = {
    "accuracy": clustering_accuracy,
    "NMI": normalized_mutual_information,
    "adjusted Rand index": adjusted_rand_score,
    "purity": purity,
}
LONG = 60  # letters of a name that are shown
MEMBERS = 5  # typical rows of a cluster
APART = 5  # columns that set a cluster apart
SLIGHT = 0.3  # of a deviation: columns that differ less are not named
LISTED = 300  # uncertain rows
CLASSES = 40  # classes and clusters of a confusion table
PAIRED = 50  # bridges that are listed
ROUNDING = 1e-12  # of a mean: a column that spreads less is constant
UNLIKE = 0.3  # an index below which clusters are not what labels tell apart
WANTED = (
    ({"Agreement over k"}, "no other number of neighbors was tried"),
    ({"Mean confidence"}, "how sure rows are is not known"),
    ({"Spacing at borders", "Rows at borders"}, "spacing at borders was not measured"),
)
GOOD, FAIR, POOR = "good", "fair", "poor"


@dataclass(eq=False)
class Run:
    """A fitted model, its data, and what is known of them.

    Attributes
    ----------
    model : estimator
        A fitted one.
    X : array or sparse matrix of shape (n, d)
        What it was fitted to.
    names : list of str or None
        Of the columns.
    ids : list of str or None
        Of the rows.
    truth : array or None
        Labels to compare with; None where one is missing.
    shift, factor : array of shape (d,) or None
        What brings columns back to their own units: X factor + shift.
    more : dict
        File, seconds, memory, versions, notes, warnings, commands.
    """

    model: Any
    X: Any
    names: Any = None
    ids: Any = None
    truth: Any = None
    shift: Any = None
    factor: Any = None
    more: dict = field(default_factory=dict)

    def __post_init__(self):
        """Check that all fits together."""
        checked(self.model)
        self.given = self.X  # a data frame is one for the model, too
        self.X = _as_numbers(self.X)
        if len(self.X.shape) != 2 or self.X.shape[0] != self.labels.size:
            raise InputError(
                f"X has shape {self.X.shape}, but the model was fitted to "
                f"{self.labels.size:,} rows."
            )
        if hasattr(self.model, "_same"):
            self.model._same(self.given)
        n, d = self.X.shape
        self.truth = _as_labels(self.truth)
        for what, number in (
            ("names", d), ("ids", n), ("truth", n), ("shift", d), ("factor", d),
        ):  # fmt: skip
            held = getattr(self, what)
            if held is None:
                continue
            held = list(held)
            if len(held) != number:
                kind = "rows" if what in ("ids", "truth") else "columns"
                raise InputError(
                    f"{what} has {len(held):,} entries for {number:,} {kind}."
                )
            setattr(self, what, held)
        if self.names is None:
            self.names = getattr(self.model, "feature_names_in_", None)
        if self.names is None:
            self.names = [f"column {at + 1}" for at in range(d)]

    @property
    def labels(self):
        """The cluster of each row."""
        return np.asarray(self.model.labels_)

    @property
    def number(self):
        """How many clusters there are."""
        return int(self.labels.max()) + 1

    def row(self, at):
        """Return how a row is called."""
        return short(self.ids[at]) if self.ids is not None else f"row {at + 1}"


def _as_numbers(X):
    """Return points or pairs as an array or CSR matrix of floating-point numbers."""
    if issparse(X):
        X = csr_array(X)
        return X if X.dtype.kind == "f" else X.astype(np.float64)
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy(dtype=np.float64)
    X = np.asarray(X)
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def _as_labels(truth):
    """Return labels as a list, None where one is missing."""
    if truth is None:
        return None
    if len(getattr(truth, "shape", (1,))) != 1:
        raise InputError(f"truth has shape {truth.shape}; one label a row is needed.")
    held = truth.tolist() if hasattr(truth, "tolist") else list(truth)
    return [None if _missing(label) else label for label in held]


def _missing(label):
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def short(text, most=LONG):
    """Return a text on one line that is not too long, without odd characters."""
    text = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def number(value):
    """Return a number as people write it."""
    if value is None or value != value:
        return ""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    digits = max(0, 3 - int(np.floor(np.log10(abs(value)))) - 1) if value else 0
    return f"{value:,.{digits}f}"


def sentence(run):
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


def clusters(run, sure):
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


def members(run, sure):
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
            if issparse(part):
                square = np.asarray(part.multiply(part).sum(axis=1)).ravel()
                rank[rows] = square - 2 * (part @ mean)
            else:
                rank[rows] = ((part - mean) ** 2).sum(axis=1)
    order = np.lexsort((rank, labels))
    ends = np.r_[0, np.cumsum(np.bincount(labels))]
    return [order[a : min(a + MEMBERS, b)] for a, b in pairwise(ends)]


def _means(run):
    """Return the means of all columns in each cluster."""
    n = run.labels.size
    indicator = csr_array((np.ones(n), (run.labels, np.arange(n))))
    sums = indicator @ run.X
    sums = sums.toarray() if issparse(sums) else np.asarray(sums, dtype=np.float64)
    return sums / np.bincount(run.labels)[:, None]


def columns(run):
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
    if issparse(run.X):
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


def uncertain(run, sure):
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


def tried(run):
    """Tell whether other numbers of neighbors, or refinements, were tried."""
    return len(getattr(run.model, "trials_", ())) > 1


def signs(run, sure):
    """Return what speaks for the clusters and against them.

    Parameters
    ----------
    run : Run
        The run.
    sure : Sureness or None
        How sure each assignment is.

    Returns
    -------
    list of dict
        For each sign its name, value, level and a sentence.
    """
    model, found = run.model, []

    def sign(name, value, level, text):
        found.append({"name": name, "value": value, "level": level, "text": text})

    asked = getattr(model, "n_clusters", None)
    if asked not in (None, "auto", run.number):
        text = f"{asked} clusters were asked for."
        sign("Number of clusters", f"{run.number}", POOR, text)
    if run.number == run.labels.size > 1:
        text = "Every row is a cluster of its own: there is nothing to judge."
        sign("Number of clusters", f"{run.number:,}", POOR, text)
        return found
    if run.number > 1 and tried(run):
        value = model.stability_ + 0.0
        level = GOOD if value >= 0.9 else FAIR if value >= 0.7 else POOR
        text = {
            GOOD: "Other numbers of neighbors give nearly the same clusters.",
            FAIR: "Other numbers of neighbors move some rows.",
            POOR: "Other numbers of neighbors give other clusters.",
        }[level]
        sign("Agreement over k", f"{value:.2f}", level, text)
    if run.number > 1 and sure is not None:
        value = float(sure.own.mean())
        level = GOOD if value >= 0.9 else FAIR if value >= 0.75 else POOR
        cut = f"{1 - value:.1%} of the weight of the neighbors was cut"
        text = {
            GOOD: f"Rows have nearly all their neighbors in their cluster: {cut}.",
            FAIR: f"Many rows have neighbors in other clusters: {cut}.",
            POOR: f"Rows have many of their neighbors in other clusters: {cut}.",
        }[level]
        sign("Mean confidence", f"{value:.2f}", level, text)
        _gap(run, sure, sign)
    forced = [h for h in getattr(model, "history_", ()) if h.get("action") == "cut"]
    if forced:
        text = (
            "Some clusters had to be cut out of a connected graph to reach the number."
        )
        sign("Forced cuts", f"{len(forced)}", POOR, text)
    return found


def _gap(run, sure, sign):
    """Tell whether the borders run through sparse regions."""
    border = float((sure.own < BORDER).mean())
    if border < 0.02:
        text = "Hardly any row lies between clusters."
        sign("Rows at borders", f"{border:.1%}", GOOD, text)
        return
    ratio = valley(run.model, run.X, sure)
    if ratio is None:
        return
    level = GOOD if ratio >= 1.2 else FAIR if ratio >= 1.05 else POOR
    text = {
        GOOD: "It is sparser at the borders than inside the clusters: there are gaps.",
        FAIR: "It is hardly sparser at the borders than inside the clusters.",
        POOR: "The borders run through regions as dense as the clusters: there are no "
        "gaps, and the cuts could have been made elsewhere.",
    }[level]
    sign("Spacing at borders", f"{ratio:.2f} times", level, text)


def verdict(found, labels=None):
    """Return a level and a sentence from the signs.

    Parameters
    ----------
    found : list of dict
        What `signs` returns.
    labels : dict, optional
        What `compared` returns.

    Returns
    -------
    level, text : str
        What the signs say together.
    """
    level, text = _judged(found)
    if labels and labels["scores"]["adjusted Rand index"] < UNLIKE:
        text += " They are not what the given labels tell apart."
    return level, text


def _judged(found):
    levels = [one["level"] for one in found]
    poor = [one["name"].lower() for one in found if one["level"] == POOR]
    if not levels:
        return FAIR, "There is nothing here to judge the clusters by."
    if len(poor) > 1 or "forced cuts" in poor or "number of clusters" in poor:
        return POOR, (
            f"Do not trust these clusters: {_and(poor)} against them. "
            "Another number of clusters, other columns or another scaling may fit "
            "better; or there are none."
        )
    if poor:
        return FAIR, (
            f"Take these clusters with care: {poor[0]} speaks against them. Look at "
            "the least certain rows, and try another number of clusters."
        )
    names = {one["name"] for one in found}
    untested = [text for any_of, text in WANTED if not any_of & names]
    if all(level == GOOD for level in levels) and not untested:
        return GOOD, "The clusters are clear: steady, sure, and apart."
    if all(level == GOOD for level in levels):
        return FAIR, (
            "What was looked at speaks for the clusters, but not all was: "
            f"{' and '.join(untested)}."
        )
    return FAIR, "The clusters are fair: most rows are sure, some are not."


def _and(names):
    """Return names as a subject with its verb."""
    if len(names) == 1:
        return f"{names[0]} speaks"
    return f"{', '.join(names[:-1])} and {names[-1]} speak"


def compared(run):
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


def _natural(text):
    """Sort numbers by value, and before texts."""
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def joined(run):
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
