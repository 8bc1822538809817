"""Promises of the clusterers."""

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

import bistochastic
from hostile import points
from hostile.forms import formed
from hostile.oracles import dense, held, partition, parts, row_error

ROUNDING = 1e-12
# what `approximation` documents that it cannot compare
NOT_COMPARED = ("has no symmetric problem", "was added to the graph")
PAIRS = ("precomputed", "affinity")


def ancmm(case, folder):
    """ANCMM with options at random."""
    X, smooth = points.drawn(case)
    n = len(X)
    c = _number(case, X)
    metric = case.pick(*["euclidean"] * 6, "cosine", "manhattan", *PAIRS)
    options = _ancmm_options(case, n, c, metric)
    model = bistochastic.ANCMM(c, **options)
    fitted = _fit(case, model, X, folder, min(n - 1, 12))
    if fitted is None:
        return
    given, done = fitted
    _graph(case, model, done, c, given, doubly=True)
    _new_points(case, model, X, given)
    _looks_back(case, model, given)
    tol = options["tol"]
    if smooth and metric not in PAIRS and _steady(case, model, given, done, tol):
        _permuted(case, model, given)


def published(case, folder):
    """CAN, PCAN, CLR and ERCAN."""
    X, _ = points.drawn(case)
    n = len(X)
    c, k = _number(case, X), int(case.rng.integers(1, max(3, min(n, 20))))
    name = case.pick("CAN", "PCAN", "CLR", "ERCAN")
    options = {"n_neighbors": k, "n_jobs": case.pick(None, 1, 2)}
    if name != "PCAN":
        options["metric"] = case.pick("euclidean", "euclidean", "cosine", "precomputed")
    if name == "CLR":
        options["norm"] = case.pick("l1", "l2")
        options["metric"] = case.pick(options["metric"], "affinity")
    if name != "ERCAN":
        options["candidates"] = case.pick("local", "global")
    else:
        options["eta"] = case.pick(None, 0.05, 1.05)
    model = getattr(bistochastic, name)(c, **options)
    fitted = _fit(case, model, X, folder, k)
    if fitted is None:
        return
    given, done = fitted
    _graph(case, model, done, c, given, doubly=False)
    _new_points(case, model, X, given)


def embedded(case, folder):
    """DSDC and DoublyStochasticSpectral."""
    X, _ = points.drawn(case)
    n = len(X)
    c = _number(case, X)
    if case.chance(0.5):
        metric = case.pick("euclidean", "euclidean", "manhattan", "precomputed")
        model = bistochastic.DSDC(c, metric=metric, n_init=case.pick(1, 3))
    else:
        model = bistochastic.DoublyStochasticSpectral(
            c,
            affinity=case.pick("gaussian", "self_tuning", "adaptive", "precomputed"),
            normalization=case.pick("marcus", "zass_shashua_2005", "frobenius"),
            n_neighbors=int(case.rng.integers(2, max(3, min(n, 20)))),
            n_init=2,
        )
    fitted = _fit(case, model, X, folder, 8)
    if fitted is None:
        return
    _, done = fitted
    _labels(case, model, model.n_clusters_)
    case.check("exactly c", model.n_clusters_ == c, f"{model.n_clusters_}, not {c}")
    if hasattr(model, "affinity_matrix_"):
        S = model.affinity_matrix_
        number = parts(S)[0]
        case.check("components", model.n_components_ == number, f"{number} there are")
        _row_sums(case, model, done, model.tol)


def number(case, folder):
    """The estimate of the number of clusters."""
    X, _ = points.drawn(case, most=60)
    X = X[:200]
    given, _ = formed(case, X, folder, allow_sparse=False)
    before = held(given)
    options = {
        "max_clusters": int(case.rng.integers(2, 7)),
        "rule": case.pick("gap", "both"),
    }
    what = f"estimate_n_clusters {options}"
    done = case.call(what, bistochastic.estimate_n_clusters, given, **options)
    case.check("input untouched", held(given) == before, what)
    if done.value is not None:
        found = done.value.n_clusters
        case.check("a number in reach", 2 <= found <= options["max_clusters"], found)
        case.check("finite", np.isfinite(done.value.scores).all(), done.value.scores)


def neighbors(case, folder):
    """The graph of adaptive neighbors alone."""
    X, smooth = points.drawn(case)
    n = len(X)
    given, truth = formed(case, X, folder)
    k = int(case.rng.integers(2, max(3, min(n, 25))))
    metric = case.pick("euclidean", "euclidean", "manhattan", "cosine")
    before = held(given)
    what = f"adaptive_neighbors_graph {k} {metric}"
    function = bistochastic.adaptive_neighbors_graph
    done = case.call(what, function, given, k, metric=metric)
    case.check("input untouched", held(given) == before, what)
    if done.value is None:
        return
    case.check("refuses what is no number", np.isfinite(truth).all(), what)
    error = row_error(done.value)
    case.check(
        "doubly stochastic or a warning",
        error < 1e-9 or done.short,
        f"{what}: row sums off by {error:.1e}",
    )
    _symmetric(case, done.value)
    if smooth and issparse(given) and metric != "cosine":
        plain = case.call("the same, dense", function, truth, k, metric=metric)
        if plain.value is not None:
            off = abs(plain.value - done.value).max()
            case.check("same dense and sparse", off < 1e-6, f"{what}: off by {off:.1e}")


def _number(case, X):
    """Return a number of clusters, now and then one that is too large."""
    n = len(X)
    if case.chance(0.05):
        return int(case.pick(n, n + 1))
    with np.errstate(all="ignore"):
        distinct = len(np.unique(X, axis=0))
    few = case.rng.integers(1, max(1, distinct // 3) + 1, 6)
    return int(min(case.pick(1, 2, 3, 4, *few), distinct))


def _ancmm_options(case, n, c, metric):
    pick, rng = case.pick, case.rng
    k = int(rng.integers(1, max(3, min(n, 30))))
    rows = max(1, n // max(c, 1))
    options = {
        "metric": metric,
        "n_neighbors": pick("auto", k, k, k),
        "refine": pick("auto", "auto", "triangles", "local", "both", None),
        "min_cluster_size": pick("auto", "auto", 1, 2, int(rng.integers(1, rows + 1))),
        "alpha": pick("mean", "mean", "row", 10.0 ** rng.uniform(-3, 3)),
        "penalty": pick(None, None, None, 10.0 ** rng.uniform(-8, 8)),
        "candidates": pick("auto", "auto", None, k + int(rng.integers(10))),
        "self_neighbor": pick(True, True, True, False, "lazy"),
        "graph_update": pick("marcus", "marcus", "marcus", "exact"),
        "scaling": pick("auto", "auto", "auto", "newton", "damped", "alternating"),
        "exact": pick(True, True, True, False),
        "neighbors": pick("auto", "auto", "auto", "exact", 0.9),
        "tol": pick(1e-8, 1e-8, 1e-4, 1e-10, 1e-12, 1e-13),
        "n_jobs": pick(None, 1, 2),
    }
    if n > 500:  # one run of at most 50 steps, not one for each choice
        options["n_neighbors"] = k
        options["refine"] = pick("auto", "triangles", "local", None)
    if options["graph_update"] == "exact" and options["alpha"] == "row":
        options["alpha"] = "mean"
    if metric == "affinity":
        options["alpha"] = "mean"
        options["refine"] = pick("auto", "triangles", None)
    return options


def _fit(case, model, X, folder, k):
    """Fit; return what was given and the outcome, or None if it was refused."""
    metric = model.metric
    bad = case.chance(0.04)
    if metric in PAIRS:
        given, bad = points.pairs(case, X, metric, k), False
        if metric == "affinity":
            given, truth = formed(case, dense(given), folder)
        truth = dense(given)
    else:
        given, truth = formed(case, points.spoilt(case, X) if bad else X, folder)
        bad = not np.isfinite(truth).all()
    case.note(repr(model))
    before = held(given)
    done = case.call(f"{type(model).__name__}.fit", model.fit, given)
    case.check("input untouched", held(given) == before, "fit")
    if not np.isfinite(truth).all():
        case.check("refuses what is no number", done.error is not None, "fit")
    if done.error is not None and not hasattr(model, "labels_"):
        left = [name for name in vars(model) if name.endswith("_")]
        left = [
            name for name in left if name not in ("n_features_in_", "feature_names_in_")
        ]
        case.check("unfitted or whole", not left, f"{left} after {done.error!r}")
        return None
    c = model.n_clusters
    case.check("refuses too many clusters", c <= len(X), f"took {c} of {len(X)}")
    if case.chance(0.4):
        again = clone(model)
        case.call("fit again", again.fit, given)
        case.check(
            "same twice", hasattr(again, "labels_") and _same(model, again), "fit"
        )
    return given, done


def _same(one, two):
    """Tell whether two fits are the same to the bit."""
    return all(
        held(getattr(one, name)) == held(getattr(two, name))
        for name in ("labels_", "affinity_matrix_", "embedding_")
        if hasattr(one, name)
    )


def _labels(case, model, number):
    labels = np.asarray(model.labels_)
    case.check(
        "labels in order",
        np.array_equal(labels, partition(labels)) and labels.max() + 1 == number,
        lambda: f"{labels[:12]}, {number} clusters",
    )


def _graph(case, model, done, c, given, doubly):
    """Check the learned graph: its components are the labels, and so many as asked."""
    S = model.affinity_matrix_
    found, labels = parts(S)
    case.check(
        "components",
        model.n_components_ == found,
        f"{found}, not {model.n_components_}",
    )
    if c != 1:
        same = np.array_equal(partition(labels), model.labels_)
        case.check("labels are the components", same, "another partition")
    _labels(case, model, 1 if c == 1 and doubly else model.n_components_)
    # where only listed pairs can be joined, some may lack a link
    lists = model.metric == "affinity" or (
        issparse(given) and model.metric == "precomputed"
    )
    exact = doubly and model.exact
    case.check(
        "exactly c",
        found == c or (done.short and (not exact or lists)),
        lambda: f"{found} components, not {c}: {done.said}",
    )
    _symmetric(case, S)
    case.check("finite", np.isfinite(S.data).all() and (S.data >= 0).all(), "graph")
    if doubly:
        _row_sums(case, model, done, model.tol)
        error = row_error(S)
        told = next(r for r in model.history_ if r["kept"])["residual"]
        right = found == c and error <= model.tol * 1.01 + ROUNDING
        case.check(
            "honest numbers",
            not model.converged_ or right,
            f"converged_, with {found} components and rows off by {error:.1e}",
        )
        case.check(
            "honest numbers",
            error <= 1.01 * told + ROUNDING,
            f"history_ says {told:.1e}, rows are off by {error:.1e}",
        )


def _symmetric(case, S):
    P = dense(S)
    case.check("symmetric to the bit", np.array_equal(P, P.T), "not symmetric")


def _row_sums(case, model, done, tol):
    error = row_error(model.affinity_matrix_)
    case.check(
        "doubly stochastic or a warning",
        error <= tol * 1.01 + ROUNDING or done.short,
        f"row sums off by {error:.1e}, tol={tol:g}",
    )


def _new_points(case, model, X, given):
    """Check labels and shares of the data of the fit, and of points nearby."""
    seen = given
    other = model.metric not in PAIRS and type(model).__name__ != "PCAN"
    if other and case.chance(0.3):
        seen = dense(given)
        seen = seen if issparse(given) else csr_array(seen.astype(np.float64))
        case.note("predict on the other of dense and sparse")
    done = case.call("predict", model.predict, seen)
    isolated = model.metric == "affinity"  # a row without an affinity is refused
    text = f"refused the data of its fit: {done.error}"
    if not case.check("takes its own data", done.value is not None or isolated, text):
        return
    if model.metric != "affinity" and done.value is not None:
        found, labels = np.asarray(done.value), np.asarray(model.labels_)
        same = found == labels
        if model.metric == "precomputed" and not model.exact:
            same |= _of_a_twin(given, found, labels)
        same = same[_apart(dense(given), model.metric)]
        case.check("predict gives labels_", same.all(), f"{(~same).sum()} others")
    if model.metric not in PAIRS:
        with np.errstate(all="ignore"):
            near = dense(given).astype(float) * (
                1 + 1e-3 * case.rng.normal(size=X.shape)
            )
        near = near if np.isfinite(near).all() else dense(given)
        seen = near[: 1 + case.number % 20]
    _shares(case, "predict_proba", model.predict_proba, seen)


def _shares(case, what, function, X):
    done = case.call(what, function, X)
    if done.value is None:
        return done
    P = dense(done.value)
    error = row_error(P)
    case.check("shares sum to one", error < 1e-9, f"{what}: off by {error:.1e}")
    case.check("finite", np.isfinite(P).all() and (P >= 0).all(), what)
    return done


def _apart(X, metric):
    """Mark the points that are clearly different from all others."""
    if metric == "precomputed":
        D = np.where(X == 0, np.inf, X)  # not stored, or the same
        np.fill_diagonal(D, np.inf)
        return D.min(axis=1, initial=np.inf) > 1e-6 * X.max(initial=0.0)
    X = np.asarray(X, dtype=np.float64)
    with np.errstate(all="ignore"):
        if metric == "cosine":
            X = X / np.linalg.norm(X, axis=1, keepdims=True)
        X = X - X.mean(axis=0)
        X = X / np.abs(X).max(initial=0.0)
        D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    return D.min(axis=1, initial=np.inf) > 1e-6


def _of_a_twin(D, found, labels):
    """Mark points that got the label of another at distance 0.

    Published methods may part them, and their rows of distances are the same.
    """
    if issparse(D):
        D = D.tocoo()
        i, j = (ends[D.data == 0] for ends in D.coords)
    else:
        i, j = np.nonzero(dense(D) == 0)
    marked = np.zeros(len(labels), dtype=bool)
    marked[i[found[i] == labels[j]]] = True
    return marked


def _looks_back(case, model, given):
    """Check `memberships` and `approximation`, on the very data of the fit."""
    done = _shares(case, "memberships", model.memberships, given)
    text = f"memberships refused the data of its fit: {done.error}"
    case.check("takes its own data", done.error is None or _warning(done), text)
    if model.labels_.size == 1 or case.chance(0.5):
        return
    done = case.call("approximation", model.approximation, given)
    if done.value is None:
        known = any(words in str(done.error) for words in NOT_COMPARED)
        text = f"approximation refused the data of its fit: {done.error}"
        case.check("takes its own data", known or _warning(done), text)
        return
    made = done.value
    case.check("finite", np.isfinite([made.epsilon, made.relative_epsilon]).all(), made)
    case.check("finite", made.epsilon >= 0 and made.row_kkt >= 0, made)


def _warning(done):
    return isinstance(done.error, Warning)


def _steady(case, model, given, done, tol):
    """Tell whether the documentation promises the same partition in another order."""
    told = any("eigensolver" in text for text in done.said)
    c, n = model.n_clusters, np.shape(given)[0]
    exact = isinstance(model.neighbors, str)  # not an approximate search
    near = _in_proportion(model, n)
    return (
        not told and exact and near and c < n and tol < 1e-6 and _untied(given, model)
    )


def _in_proportion(model, n):
    """Tell whether the penalty is below a million times its default."""
    start = 0.125 if model.refine_ else model.alpha_.mean() * n / model.n_clusters
    return model.penalty is None or model.penalty < 1e6 * start


def _untied(given, model):
    """Tell whether all distances are different, in the numbers that were given."""
    X = dense(given)
    if X.dtype not in (np.float64, np.longdouble):
        return False
    with np.errstate(all="ignore"):
        D = cdist(X, X, {"manhattan": "cityblock"}.get(model.metric, model.metric))
    D = np.sort(D[np.triu_indices(len(X), 1)])
    return D.size > 1 and np.isfinite(D).all() and (np.diff(D) > 1e-9 * D[1:]).all()


def _permuted(case, model, given):
    X = dense(given)
    order = case.rng.permutation(len(X))
    other = clone(model)
    X = csr_array(X[order]) if issparse(given) else X[order]
    moved = case.call("fit, permuted", other.fit, X)
    if not hasattr(other, "labels_"):
        case.check("same after permutation", False, f"refused: {moved.error}")
        return
    if any("eigensolver" in text for text in moved.said):
        return
    before, after = partition(model.labels_[order]), partition(other.labels_)
    case.check(
        "same after permutation",
        np.array_equal(before, after),
        lambda: f"{np.bincount(before)} became {np.bincount(after)}: {model!r}",
    )
