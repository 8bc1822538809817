"""The methods ANCMM is compared with, each against a reference in plain NumPy."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale

from bistochastic import (
    ANCMM,
    CAN,
    CLR,
    DSDC,
    ERCAN,
    PCAN,
    DoublyStochasticSpectral,
    InputError,
    adaptive_neighbors_graph,
)
from bistochastic.cluster.dsdc import from_gram, on_sphere
from bistochastic.cluster.fit_log import FitLog
from bistochastic.cluster.graphs import GraphMaker
from bistochastic.cluster.trials import Trials
from bistochastic.graph.entropy import cheapest, entropic, negentropy
from bistochastic.graph.simplex import simplex, weighted_simplex
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from selection import some

METHODS = [CAN, PCAN, CLR, ERCAN, DSDC, DoublyStochasticSpectral]
NEIGHBORS = [CAN, PCAN, CLR, ERCAN]


def wine():
    X, y = load_wine(return_X_y=True)
    return minmax_scale(X), y


def problem(seed):
    rng = np.random.default_rng(seed)
    n, c = int(rng.integers(40, 90)), int(rng.integers(2, 5))
    if seed % 3 == 0:
        return make_moons(n, noise=0.1, random_state=seed)[0], 2, 8
    X, _ = make_blobs(n, 4, centers=c, cluster_std=2.0, random_state=seed)
    return X, c, int(rng.integers(6, 12))


@pytest.fixture
def quiet(recwarn):
    """Let warnings pass: references do not give any."""


# the plainest NumPy


def plain_simplex(v, w=None):
    """Minimize sum w s^2 / 2 - v s on the simplex by bisection of the multiplier."""
    w = np.ones_like(v) if w is None else w
    low, high = (v - w).min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum((v - middle) / w, 0).sum() > 1:
            low = middle
        else:
            high = middle
    s = np.maximum((v - high) / w, 0)
    return s / s.sum()


def squared(X):
    return ((X[:, None] - X[None]) ** 2).sum(-1)


def pkn(D, k):
    """Return the rows of the first graph, the point itself left out, and alphas."""
    order = np.argsort(np.where(np.eye(len(D)) > 0, np.inf, D), axis=1)[:, : k + 1]
    d = np.take_along_axis(D, order, axis=1)
    alphas = (k * d[:, k] - d[:, :k].sum(axis=1)) / 2
    S = np.zeros_like(D)
    np.put_along_axis(S, order, (d[:, k:] - d) / (2 * alphas[:, None]), axis=1)
    return S, alphas, order[:, :k]


def smallest(S, c):
    S = (S + S.T) / 2
    return np.linalg.eigh(np.diag(S.sum(axis=1)) - S)[1][:, :c]


def count(S):
    return connected_components((S + S.T) > 0, directed=False)


def loop(S, c, lam, rate, update, steps, *, traces=1e-12, early=False):
    """Run the published rule: doubled or halved, F kept while there are too many."""
    F, trail, first = None, [(0.0, count(S)[0])], lam
    lam = 0.0
    while len(trail) < steps:
        if trail[-1][1] == c and (early or len(trail) > 1):
            break
        q = trail[-1][1]
        if F is None or q <= c:
            F = smallest(S, c)
        lam = first if lam == 0 else lam * (rate if q < c else 1 / rate)
        S = update(lam, squared(F), S)
        S[S < traces * S.max(axis=1, keepdims=True)] = 0
        trail.append((lam, count(S)[0]))
    return S, trail


def same(model, S, trail, c):
    made = [(h["penalty"], h["n_components"]) for h in model.history_]
    np.testing.assert_allclose(made, trail, rtol=1e-9)
    if trail[-1][1] == c:
        A = model.affinity_matrix_.toarray()
        np.testing.assert_allclose(A, (S + S.T) / 2, atol=1e-6)
        assert adjusted_rand_score(model.labels_, count(S)[1]) == 1.0
        assert model.converged_


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("candidates", ["local", "global"])
@pytest.mark.parametrize("seed", some(range(6), 1))
def test_can(seed, candidates):
    X, c, k = problem(seed)
    D = squared(X)
    S, alphas, order = pkn(D, k)
    r = alphas.mean()

    def update(lam, G, _):
        made = np.zeros_like(D)
        for i in range(len(D)):
            j = order[i] if candidates == "local" else np.arange(len(D))
            made[i, j] = plain_simplex(-(D[i, j] + lam * G[i, j]) / (2 * r))
        return made

    S, trail = loop(S, c, r, 2, update, 31, early=True)
    model = CAN(c, n_neighbors=k, candidates=candidates).fit(X)
    same(model, S, trail, c)


# the first four have every candidate with every norm, and every given
CLRS = [
    (1, "local", "l1", False),
    (1, "global", "l2", True),
    (1, "local", "l2", "symmetric"),
    (1, "global", "l1", "symmetric"),
]
CLRS += sorted(
    {*product(range(3), ["local", "global"], ["l2", "l1"], [False, True, "symmetric"])}
    - {*CLRS},
    key=str,
)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("seed", "candidates", "norm", "given"), some(CLRS, 4))
def test_clr(seed, candidates, norm, given):
    X, c, k = problem(seed)
    A = pkn(squared(X), k)[0]
    if given == "symmetric":
        A = (A + A.T) / 2
    w = np.ones_like(A)

    def update(lam, G, last):
        nonlocal w
        if norm == "l1" and last is not A:
            w = 0.5 / np.sqrt((last - A) ** 2 + 2.0**-52)
        made = np.zeros_like(A)
        for i in range(len(A)):
            j = np.flatnonzero(A[i]) if candidates == "local" else np.arange(len(A))
            v = w[i, j] * A[i, j] - lam / 2 * G[i, j]
            made[i, j] = plain_simplex(v, w[i, j])
        return made

    S, trail = loop(A, c, 0.1, 2, update, 31, early=True)
    options = {"candidates": candidates, "norm": norm}
    if given:
        model = CLR(c, metric="affinity", **options).fit(A)
    else:
        model = CLR(c, n_neighbors=k, **options).fit(X)
    same(model, S, trail, c)
    kept = next(h for h in model.history_ if h["kept"])
    if trail[-1][1] == c and norm == "l2":
        distance = kept["objective_distance"] + kept["objective_norm"]
        assert distance == pytest.approx(((S - A) ** 2).sum(), rel=1e-4)
    elif trail[-1][1] == c:
        distance = np.abs(S - A).sum()
        assert kept["objective_distance"] == pytest.approx(distance, rel=1e-4)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("eta", [0.05, 0.3])
@pytest.mark.parametrize("seed", some(range(6), 1))
def test_ercan(seed, eta):
    X, c, k = problem(seed)
    D = squared(X)
    gamma = eta * np.linalg.norm(D) / len(D)
    S = np.exp(-D / gamma)
    S /= S.sum(axis=1, keepdims=True)
    np.fill_diagonal(S, 0)

    def update(lam, G, _):
        W = np.exp(-(D + lam * G) / gamma)
        for row in W:
            row[np.argsort(-row)[k + 1 :]] = 0
        np.fill_diagonal(W, 0)
        return W / W.sum(axis=1, keepdims=True)

    S, trail = loop(S, c, gamma, 2, update, 41, traces=0.0)
    model = ERCAN(c, n_neighbors=k, eta=eta).fit(X)
    assert model.gamma_ == pytest.approx(gamma)
    same(model, S, trail, c)
    again = ERCAN(c, n_neighbors=k, gamma=gamma).fit(X)
    np.testing.assert_array_equal(model.labels_, again.labels_)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("candidates", ["global", "local"])
@pytest.mark.parametrize("seed", some([1, 2, 4, 5], 1))
def test_pcan(seed, candidates):
    X, c, k = problem(seed)
    D = squared(X)
    S, alphas, order = pkn(D, k)
    r, m = alphas.mean(), max(1, c - 1)
    H = X - X.mean(axis=0)
    St, step = H.T @ H, 0

    def projected(S, first=False):
        S = (S + S.T) / 2
        M = X.T @ (np.diag(S.sum(axis=1)) - S) @ X
        M = M if first else np.linalg.inv(St) @ M
        values, W = np.linalg.eig(M)
        W = np.real(W[:, np.argsort(np.real(values))[:m]])
        return W / np.sqrt((W**2).sum(axis=0))

    W = projected(S, first=True)

    def update(lam, G, _):
        nonlocal W, order, step
        P = squared(X @ W)
        step += 1
        if step > 5:
            order = pkn(P, k)[2]
        made = np.zeros_like(D)
        for i in range(len(D)):
            j = order[i] if candidates == "local" else np.arange(len(D))
            made[i, j] = plain_simplex(-(P[i, j] + lam * G[i, j]) / (2 * r))
        W = projected(made)
        return made

    S, trail = loop(S, c, r, 2, update, 31, early=True)
    model = PCAN(c, n_neighbors=k, candidates=candidates).fit(X)
    same(model, S, trail, c)
    assert model.projection_.shape == (4, m)
    np.testing.assert_allclose((model.projection_**2).sum(axis=0), 1)
    np.testing.assert_allclose(model.transform(X), X @ model.projection_)
    assert model.get_feature_names_out().tolist() == [f"pcan{i}" for i in range(m)]


def test_pcan_with_more_columns_than_rows(rng):
    X, y = make_blobs(40, 100, centers=3, cluster_std=3.0, random_state=0)
    model = PCAN(3, n_neighbors=8).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.transform(X).shape == (40, 2)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# what the paper prints, and what sets CAN and ANCMM apart


def test_wine_as_the_paper_prints_it():
    X, y = wine()
    model = CAN(3, n_neighbors=30).fit(X)
    scores = clustering_accuracy, normalized_mutual_information, purity
    made = [round(100 * score(y, model.labels_), 1) for score in scores]
    assert made == [97.2, 89.0, 97.2]


class CanWithSelfAndMapping(CAN):
    """CAN with the point itself, all points as candidates, and the mapping."""

    def _problem(self, place, X, c):
        self.n_neighbors -= 1
        made = self._nearest(place, X, c, candidates=None, own=1)
        self.n_neighbors += 1
        return made

    def _making(self):
        return GraphMaker(True, "marcus", "alternating", 1e-8, affine=False)


class Unmapped(Trials):
    def maker(self, floor=None):
        return GraphMaker(True, "marcus", "auto", 1e-8, affine=False, mapping=False)


class AncmmWithoutMapping(ANCMM):
    """The paper's ANCMM without the mapping."""

    def _learn(self, X, place):
        return Unmapped(self, place, FitLog(self, X)).learned(X)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("seed", some(range(4), 2))
def test_can_and_ancmm_differ_in_the_point_itself_and_the_mapping(seed):
    X, c, k = problem(seed)
    more = CanWithSelfAndMapping(c, n_neighbors=k, max_iter=40).fit(X)
    paper = ANCMM.paper(c, k, max_iter=40).fit(X)
    assert [h["penalty"] for h in more.history_] == [
        h["penalty"] for h in paper.history_
    ]
    np.testing.assert_array_equal(more.labels_, paper.labels_)
    assert (more.affinity_matrix_ != paper.affinity_matrix_).nnz == 0
    less = AncmmWithoutMapping.paper(
        c, k, self_neighbor=False, candidates="auto", max_iter=40
    ).fit(X)
    can = CAN(c, n_neighbors=k, max_iter=40).fit(X)
    np.testing.assert_array_equal(less.labels_, can.labels_)
    assert (less.affinity_matrix_ != can.affinity_matrix_).nnz == 0
    assert (can.affinity_matrix_ != paper.affinity_matrix_).nnz > 0


# DSDC


def test_the_sphere_of_dsdc(rng):
    for n, d in ((40, 3), (60, 20), (80, 2)):
        X = rng.standard_normal((n, d))
        A = squared(X)
        model = DSDC(4, tol=1e-12).fit(X)
        assert model.route_ == "sphere"
        B = model.scaling_[:, None] * A * model.scaling_
        np.testing.assert_allclose(B.sum(axis=1), 1)
        made = cdist(model.embedding_, model.embedding_, "sqeuclidean")
        np.testing.assert_allclose(made, model.factor_ * B, atol=1e-9 * made.max())
        P = model.embedding_ - model.embedding_.mean(axis=0)
        np.testing.assert_allclose((P**2).sum(axis=1), (P[0] ** 2).sum(), rtol=1e-6)
        gram = from_gram(B)
        np.testing.assert_allclose(cdist(gram, gram, "sqeuclidean"), B, atol=1e-12)


def test_dsdc_is_kmeans_on_the_published_scaling(rng):
    X, _ = make_blobs(70, 3, centers=4, cluster_std=1.5, random_state=1)
    A = squared(X)
    u = np.ones(70)
    for _ in range(1000):  # the published passes: u_i = 1 / (A u)_i, in place
        for i in range(70):
            u[i] = 1 / (A[i] @ u)
        if np.abs(u * (A @ u) - 1).max() < 1e-11:
            break
    B = u[:, None] * A * u
    J = np.full((70, 70), 1 / 70)
    values, vectors = np.linalg.eigh(-(B - J) / 2)
    P = vectors * np.sqrt(np.maximum(values, 0))
    best = KMeans(4, n_init=50, random_state=0).fit(P)
    for embedding in ("sphere", "gram"):
        model = DSDC(4, embedding=embedding, n_init=50).fit(X)
        np.testing.assert_allclose(model.scaling_, u, rtol=1e-6)
        assert model.inertia_ / model.factor_ == pytest.approx(best.inertia_, rel=1e-6)
        assert adjusted_rand_score(model.labels_, best.labels_) == 1.0


def test_dsdc_with_more_columns_than_rows(rng):
    X = rng.standard_normal((30, 60))
    model = DSDC(3).fit(X)
    assert model.route_ == "gram"
    B = model.scaling_[:, None] * squared(X) * model.scaling_
    made = cdist(model.embedding_, model.embedding_, "sqeuclidean")
    np.testing.assert_allclose(made, B, atol=1e-10)
    with pytest.raises(InputError, match='use "gram"'):
        DSDC(3, embedding="sphere").fit(X)
    P, factor = on_sphere(X[:, :5], np.ones(30))
    assert P.shape == (30, 6)
    assert factor > 0


def test_dsdc_of_other_distances(rng):
    X = rng.random((40, 3))
    D = cdist(X, X)
    by_points, by_distances = DSDC(3).fit(X), DSDC(3, metric="precomputed").fit(D)
    np.testing.assert_allclose(by_points.scaling_, by_distances.scaling_, rtol=1e-6)
    assert DSDC(3, metric="manhattan").fit(X).route_ == "gram"
    with pytest.raises(InputError, match="Drop duplicates"):
        DSDC(2).fit(np.repeat([[0.0], [1.0], [2.0]], [9, 1, 1], axis=0))


def test_dsdc_where_the_sphere_is_not_clear(rng):
    X = rng.standard_normal((40, 4))
    unit = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    corners = (rng.random((60, 6)) > 0.5).astype(float)
    cases = [unit, corners, np.c_[X, X.sum(axis=1)], np.c_[X, np.ones(40)], X * 1e-90]
    for data in cases:
        model, gram = DSDC(3).fit(data), DSDC(3, embedding="gram").fit(data)
        B = gram.scaling_[:, None] * squared(data) * gram.scaling_
        made = cdist(model.embedding_, model.embedding_, "sqeuclidean")
        np.testing.assert_allclose(made / model.factor_, B, atol=1e-6 * B.max())
        assert model.n_clusters_ == 3
    with pytest.raises(InputError, match="no clear solution"):
        DSDC(3, embedding="sphere").fit(unit)
    with pytest.raises(InputError, match="only 2 distinct points"):
        DSDC(3, metric="precomputed").fit(np.kron([[0, 1.0], [1, 0]], np.ones((9, 9))))


# spectral clustering on doubly stochastic graphs


@pytest.mark.parametrize("affinity", ["gaussian", "self_tuning", "adaptive"])
@pytest.mark.parametrize("normalization", ["marcus", "frobenius"])
def test_ratio_cut_is_normalized_cut(affinity, normalization):
    X, _ = make_blobs(80, 3, centers=3, cluster_std=2.0, random_state=2)
    model = DoublyStochasticSpectral(
        3, affinity=affinity, normalization=normalization, tol=1e-11
    ).fit(X)
    S = model.affinity_matrix_
    S = S.toarray() if hasattr(S, "toarray") else S
    d = S.sum(axis=1)
    np.testing.assert_allclose(d, 1, atol=1e-8)
    ratio = np.linalg.eigvalsh(np.diag(d) - S)[:3]
    normalized = np.linalg.eigvalsh(np.eye(80) - S / np.sqrt(d)[:, None] / np.sqrt(d))
    np.testing.assert_allclose(ratio, normalized[:3], atol=1e-8)
    np.testing.assert_allclose(model.eigenvalues_, ratio, atol=1e-6)
    sizes = np.bincount(model.labels_)
    H = np.eye(3)[model.labels_]
    inside = H.T @ S @ H
    cuts = inside.sum(axis=1) - np.diag(inside)
    volumes = H.T @ d
    assert (cuts / sizes).sum() == pytest.approx((cuts / volumes).sum())


def test_the_clusters_are_those_of_scikit_learn():
    X, _ = make_blobs(90, 3, centers=3, cluster_std=1.5, random_state=4)
    model = DoublyStochasticSpectral(3).fit(X)
    theirs = SpectralClustering(3, affinity="precomputed", random_state=0)
    assert (
        adjusted_rand_score(model.labels_, theirs.fit(model.affinity_matrix_).labels_)
        == 1.0
    )


def test_the_affinities(rng):
    X = rng.random((50, 2))
    D = squared(X)
    K = rbf_kernel(X, gamma=3.0)
    by_points = DoublyStochasticSpectral(3, gamma=3.0).fit(X)
    given = DoublyStochasticSpectral(3, affinity="precomputed").fit(K)
    np.testing.assert_allclose(by_points.affinity_matrix_, given.affinity_matrix_)
    s = np.sqrt(np.sort(D, axis=1)[:, 10])
    tuned = DoublyStochasticSpectral(3, affinity="self_tuning")._affinities(X)
    np.testing.assert_allclose(tuned, np.exp(-D / s[:, None] / s))
    adaptive = DoublyStochasticSpectral(3, affinity="adaptive").fit(X)
    S = adaptive_neighbors_graph(X, 10)
    made = adaptive.affinity_matrix_
    np.testing.assert_allclose(made.toarray(), S.toarray(), atol=1e-8)
    both = [
        DoublyStochasticSpectral(3, normalization=name).fit(X).affinity_matrix_
        for name in ("marcus", "zass_shashua_2005")
    ]
    np.testing.assert_allclose(*both, atol=1e-7)


def test_components_are_clusters_of_a_disconnected_graph():
    X, y = make_blobs(400, centers=20, cluster_std=0.05, random_state=0)
    model = DoublyStochasticSpectral(20, affinity="adaptive").fit(X)
    assert model.n_components_ == 20
    np.testing.assert_allclose(model.eigenvalues_, 0, atol=1e-12)
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_more_components_than_clusters_are_said():
    X, _ = make_blobs(120, 2, centers=6, cluster_std=0.05, random_state=3)
    with pytest.warns(UserWarning, match="6 components, more than n_clusters=3"):
        DoublyStochasticSpectral(3, affinity="adaptive").fit(X)


def test_a_point_without_affinities():
    X, _ = make_blobs(60, 3, centers=3, cluster_std=0.8, random_state=0)
    K = rbf_kernel(X, gamma=0.25)
    K[5] = K[:, 5] = 0
    for name in ("frobenius", "zass_shashua_2006"):
        model = DoublyStochasticSpectral(4, affinity="precomputed", normalization=name)
        S = model.fit(K).affinity_matrix_
        np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-6)


def test_a_graph_without_support_gets_loops():
    star = np.zeros((5, 5))
    star[0, 1:] = star[1:, 0] = 1.0
    model = DoublyStochasticSpectral(2, affinity="precomputed")
    with pytest.warns(UserWarning, match="no total support"):
        model.fit(star)
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1)


# rows


def test_weighted_projections(rng):
    v, w = rng.standard_normal((20, 7)) * 3, rng.uniform(0.1, 5, (20, 7))
    made = weighted_simplex(v, w)
    for row, a, b in zip(made, v, w, strict=True):
        np.testing.assert_allclose(row, plain_simplex(a, b), atol=1e-9)
    np.testing.assert_allclose(weighted_simplex(v, np.ones_like(v)), simplex(v))
    v[:, 3] = -np.inf
    assert (weighted_simplex(v, w)[:, 3] == 0).all()
    np.testing.assert_allclose(weighted_simplex(v, w).sum(axis=1), 1)


def test_entropic_rows(rng):
    m = rng.random((9, 5)) * 1e4
    made = entropic(m, 1e-3)  # exponents of millions
    np.testing.assert_allclose(made.sum(axis=1), 1)
    assert (made.argmax(axis=1) == m.argmin(axis=1)).all()
    s = entropic(rng.random((3, 4)), 0.5)
    np.testing.assert_allclose(negentropy(s), (s * np.log(s)).sum(axis=1))
    kept = cheapest(np.array([[3.0, 1, 2, 2, 5]]), 2)
    assert kept.tolist() == [[np.inf, 1, 2, 2, np.inf]]  # those tied are kept


@pytest.mark.usefixtures("quiet")
def test_ercan_of_any_scale():
    X, _ = make_blobs(60, 3, centers=3, cluster_std=0.8, random_state=0)
    labels = ERCAN(3).fit(X).labels_
    for size in (1e80, 1e-120):
        np.testing.assert_array_equal(ERCAN(3).fit(X * size).labels_, labels)
    ERCAN(3, gamma=1e-6).fit(X)  # all shares vanish beside that of the point itself
    with pytest.raises(InputError, match="All points are the same"):
        ERCAN(1).fit(np.ones((40, 2)))
    twins = np.repeat(X[:4], 20, axis=0)
    assert ERCAN(2, gamma=1.0, n_neighbors=30).fit(twins).n_clusters_ >= 2
    assert CAN(2, alpha=1.0, n_neighbors=30, penalty=1.0).fit(twins).labels_.size == 80


@pytest.mark.usefixtures("quiet")
def test_pcan_does_not_see_columns_without_spread():
    X, _ = make_blobs(80, 4, centers=3, cluster_std=2.5, random_state=5)
    one = PCAN(3, n_neighbors=10).fit(X)
    two = PCAN(3, n_neighbors=10).fit(np.c_[X, np.ones(80)])
    assert adjusted_rand_score(one.labels_, two.labels_) == 1.0
    alone = [one.predict(X[i : i + 1])[0] for i in range(80)]
    np.testing.assert_array_equal(alone, one.labels_)
    Z, _ = make_blobs(60, 3, centers=3, cluster_std=3, random_state=0)
    given = PCAN(3, n_neighbors=8, alpha=7.0, max_iter=2).fit(Z)
    assert given.history_[1]["penalty"] == 7.0


@pytest.mark.filterwarnings("ignore:The graph has:UserWarning")
def test_rows_of_clr_that_do_not_sum_to_one():
    X, _ = make_blobs(60, 3, random_state=0)
    K = 100 * rbf_kernel(X)
    with pytest.warns(UserWarning, match="divide the graph"):
        CLR(3, metric="affinity").fit(K)
    assert CLR("auto", metric="affinity").fit(np.ones((2, 2))).n_clusters_ == 1


@pytest.mark.usefixtures("quiet")
def test_many_equal_eigenvalues():
    for c in (2, 6, 17):
        model = CLR(c, metric="affinity", max_iter=3).fit(np.ones((30, 30)))
        S, F = model.affinity_matrix_.toarray(), model.embedding_
        np.testing.assert_array_equal(S, 1 - np.eye(30))
        np.testing.assert_allclose(F.T @ F, np.eye(c), atol=1e-12)
        values = np.linalg.eigvalsh(F.T @ S @ F)
        np.testing.assert_allclose(values, [-1] * (c - 1) + [29], atol=1e-9)


# bad input, the same for all


@pytest.mark.parametrize("method", METHODS)
def test_what_every_method_refuses(method):
    X, _ = make_blobs(60, 3, random_state=0)
    with pytest.raises(ValueError, match="NaN"):
        method(3).fit(np.where(X > 5, np.nan, X))
    with pytest.raises(TypeError, match="masked"):
        method(3).fit(np.ma.masked_array(X, X > 3))
    with pytest.raises(InputError, match=r"n_clusters=61.*n_samples=60"):
        method(61).fit(X)
    with pytest.raises(InputError, match="n_clusters=0"):
        method(0).fit(X)
    with pytest.raises(InputError, match="too far apart"):
        method(3).fit(X * 1e200)
    with pytest.raises(ValueError, match=r"distinct row|same|cost the same"):
        method(3).fit(np.ones((60, 2)))


@pytest.mark.parametrize("method", NEIGHBORS)
def test_what_the_neighbor_methods_refuse(method):
    X, _ = make_blobs(60, 3, random_state=0)
    with pytest.raises(InputError, match="n_neighbors=60 needs more than 60"):
        method(3, n_neighbors=60).fit(X)
    with pytest.raises(InputError, match="n_samples=1"):
        method(1).fit(X[:1])
    with pytest.raises(InputError, match="n_neighbors"):
        method(3, n_neighbors=0).fit(X)
    if method not in (PCAN, CLR):
        with pytest.raises(InputError, match="CLR and ANCMM take graphs"):
            method(3, metric="affinity").fit(X @ X.T)


@pytest.mark.parametrize("method", NEIGHBORS)
def test_too_many_components_at_first(method):
    X, y = make_blobs(120, 3, centers=6, cluster_std=0.01, random_state=0)
    options = {"n_neighbors": 5} | ({"eta": 1e-6} if method is ERCAN else {})
    with pytest.raises(InputError, match=r"The first graph has 6 components.*strict"):
        method(3, strict=True, **options).fit(X)
    with pytest.warns(ConvergenceWarning, match="not n_clusters=3"):
        model = method(3, **options).fit(X)
    if method is not PCAN:
        assert adjusted_rand_score(y, model.labels_) == 1.0
    assert not model.converged_


def test_ercan_takes_one_weight():
    X, _ = make_blobs(60, 3, random_state=0)
    with pytest.raises(InputError, match="eta or gamma"):
        ERCAN(3, eta=1.0, gamma=1.0).fit(X)
    with pytest.raises(InputError, match=r"rate=0\.5"):
        ERCAN(3, rate=0.5).fit(X)
    with pytest.raises(InputError, match="sparse"):
        ERCAN(3, metric="precomputed").fit(csr_array(cdist(X, X)))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_repeats_itself(method):
    X, _ = make_blobs(90, 4, centers=4, cluster_std=1.0, random_state=1)
    one, two = method(4).fit(X), method(4).fit(X)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    order = np.random.default_rng(0).permutation(90)
    if method in NEIGHBORS:
        moved = method(4).fit(X[order])
        assert adjusted_rand_score(moved.labels_, one.labels_[order]) == 1.0
        np.testing.assert_array_equal(one.predict(X), one.labels_)
        np.testing.assert_allclose(one.predict_proba(X[:5] + 0.1).sum(axis=1), 1)
    assert one.labels_[0] == 0
    assert [*one.history_[0]]


@pytest.mark.usefixtures("quiet")
def test_the_guess_of_clr():
    X, _ = make_blobs(150, 3, centers=5, cluster_std=0.3, random_state=3)
    model = CLR("auto", n_neighbors=10).fit(X)
    assert model.n_clusters_ == 5
    A = adaptive_neighbors_graph(X, 10)
    assert CLR("auto", metric="affinity").fit(A).n_clusters_ == 5


@pytest.mark.usefixtures("quiet")
def test_a_point_alone_is_a_cluster_of_clr():
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 0] = A[2, 3] = A[3, 2] = 1.0
    model = CLR(3, metric="affinity").fit(A)
    assert model.labels_.tolist() == [0, 0, 1, 1, 2]


@pytest.mark.usefixtures("quiet")
def test_more_points_than_an_array_of_pairs_holds(monkeypatch):
    X, y = make_blobs(300, 3, centers=3, cluster_std=0.5, random_state=0)
    whole = [CAN(3, candidates="global").fit(X), ERCAN(3, eta=0.1).fit(X)]
    for name in ("cluster.candidates", "cluster.pcan", "cluster.clr"):
        monkeypatch.setattr(f"bistochastic.{name}.ALL", 100)
    tables = [CAN(3, candidates="global").fit(X), ERCAN(3, eta=0.1).fit(X)]
    for a, b in zip(whole, tables, strict=True):
        assert adjusted_rand_score(a.labels_, b.labels_) == 1.0
    assert tables[1].gamma_ == pytest.approx(whole[1].gamma_)
    assert adjusted_rand_score(y, tables[0].labels_) == 1.0
    for model in (PCAN(3), CLR(3, candidates="global")):
        with pytest.raises(InputError, match="holds all pairs of 300 points"):
            model.fit(X)


def test_verbose_methods_say_what_they_do(capsys):
    X, _ = make_blobs(60, 3, random_state=0)
    for method in (DSDC, DoublyStochasticSpectral):
        method(3, verbose=1).fit(X)
    said = capsys.readouterr().out
    assert "[DSDC] scaling: n_products" in said
    assert "[DoublyStochasticSpectral] k-means: inertia" in said


@pytest.mark.parametrize("method", NEIGHBORS)
def test_histories_say_how_far_row_sums_are_from_one(method, quiet):
    model = method(3).fit(wine()[0])
    worst = np.abs(model.affinity_matrix_.sum(axis=1) - 1).max()
    kept = next(record for record in model.history_ if record["kept"])
    assert kept["residual"] == pytest.approx(worst)
    assert worst > 1e-6  # the methods before ANCMM do not ask for it


def test_the_first_graph_alone_says_if_its_row_sums_are_off(monkeypatch):
    monkeypatch.setattr("bistochastic.adaptive.TOLERANCE", 1e-18)
    with pytest.warns(ConvergenceWarning, match="row sums of the graph are off by"):
        adaptive_neighbors_graph(wine()[0])
