"""ANCMM: Algorithm 2 against a plain reference, on every holder, with every option."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import minmax_scale

from bistochastic import ANCMM, marcus_mapping, project_doubly_stochastic
from bistochastic.cluster.candidates import of_points
from bistochastic.cluster.loop import ancmm
from bistochastic.cluster.penalty import Penalty
from bistochastic.cluster.trials import Trials
from bistochastic.core.arrays import on_cpu
from bistochastic.core.run import run
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from bistochastic.neighbors.exact import squared_distances
from bistochastic.neighbors.points import Points
from bistochastic.places.host.host import Host
from selection import some


def plain(c, **options):
    """Return the paper's loop, on the k nearest candidates and with a fast scaling."""
    return ANCMM(c, exact=False, min_cluster_size=1, refine=None, **options)


def wine():
    X, y = load_wine(return_X_y=True)
    return minmax_scale(X), y


def test_wine_as_the_paper_prints_it():
    X, y = wine()
    model = ANCMM.paper(3, 30).fit(X)
    scores = clustering_accuracy, normalized_mutual_information, purity
    made = [round(100 * score(y, model.labels_), 1) for score in scores]
    assert made == [98.3, 92.6, 98.3]
    assert model.converged_
    assert model.n_components_ == 3


# Algorithm 2 in the plainest NumPy


def plain_simplex(v):
    u = np.sort(v)[::-1]
    sums = np.cumsum(u)
    rho = np.flatnonzero(u > (sums - 1) / np.arange(1, v.size + 1))[-1]
    return np.maximum(v - (sums[rho] - 1) / (rho + 1), 0)


def plain_marcus(S):
    u = np.ones(len(S))
    for _ in range(200_000):
        r = u * (S @ u)
        if np.abs(r - 1).max() < 1e-13:
            break
        u /= np.sqrt(r)
    return u[:, None] * S * u


def plain_ancmm(X, c, k, steps=40):
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    s = np.sort(D, axis=1)
    alphas = (k * s[:, k] - s[:, :k].sum(axis=1)) / 2
    alpha = alphas.mean()
    W = np.maximum(s[:, k : k + 1] - D, 0) / (2 * alphas[:, None])
    S = plain_marcus((W + W.T) / 2)
    lam, F, trail = 0.0, None, []
    while True:
        q, labels = connected_components(S > 0, directed=False)
        G = 0 * D if F is None else ((F[:, None] - F[None]) ** 2).sum(-1)
        value = (D * S).sum() + alpha * (S**2).sum() + lam * (G * S).sum()
        trail.append((lam, q, value))
        if q == c or len(trail) == steps:
            return labels, S, trail
        if F is None or q <= c:
            F = np.linalg.eigh(S)[1][:, -c:]
        lam = alpha if lam == 0 else lam * (2 if q < c else 0.5)
        G = ((F[:, None] - F[None]) ** 2).sum(-1)
        W = np.array([plain_simplex(row / (-2 * alpha)) for row in D + lam * G])
        W[W < 1e-12 * W.max(axis=1, keepdims=True)] = 0
        S = plain_marcus((W + W.T) / 2)


def problem(seed):
    """Draw points without tied distances, a number of clusters and of neighbors."""
    rng = np.random.default_rng(seed)
    n, c = int(rng.integers(40, 110)), int(rng.integers(2, 5))
    if seed % 3 == 0:
        X, _ = make_moons(n, noise=0.08, random_state=seed)
        c = 2
    else:
        X, _ = make_blobs(
            n, int(rng.integers(2, 6)), centers=c, cluster_std=2.0, random_state=seed
        )
    return X, c, int(rng.integers(6, 15))


@pytest.mark.parametrize("seed", some(range(12), 4))
def test_the_steps_are_those_of_a_plain_reference(seed):
    X, c, k = problem(seed)
    labels, S, trail = plain_ancmm(X, c, k)
    model = ANCMM.paper(c, k).set_params(max_iter=40, tol=1e-12, scaling="auto")
    model = quietly(model.fit, X)
    made = [(h["penalty"], h["n_components"], h["objective"]) for h in model.history_]
    for ours, theirs in zip(made, trail, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    if trail[-1][1] == c:
        assert adjusted_rand_score(model.labels_, labels) == 1.0
        np.testing.assert_allclose(model.affinity_matrix_.toarray(), S, atol=1e-6)


def quietly(function, *args):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


# every holder


def steps_on(cost, X, c, k, update, width):
    """Run the loop of an estimator with its costs in another holder."""
    model = plain(c, n_neighbors=k, graph_update=update)
    D = squared_distances(Points.of(X, "euclidean"))
    trials = Trials(model, Host())
    given = trials.problem(X, c)
    width = len(X) if width is None else width
    moved = replace(given, all_costs=cost(D, len(X)), costs=cost(D, width))
    steps = ancmm(
        moved.costs,
        c,
        trials.maker().first(moved),
        trials.maker().update(moved),
        alpha=moved.alpha,
        penalty=Penalty(moved.mean_alpha),
    )
    return run(steps, tol=0, max_iter=40, patience=50)


@pytest.mark.parametrize("seed", some(range(30), 5))
def test_every_holder_gives_the_same_labels_and_objective(cost, seed):
    X, c, k = problem(seed)
    update = "exact" if seed % 5 == 4 else "marcus"
    width = None if seed % 2 else k
    model = plain(c, n_neighbors=k, graph_update=update, candidates=width, max_iter=40)
    model = quietly(model.fit, X)
    done = steps_on(cost, X, c, k, update, width)
    step = done.value
    assert done.n_iter == model.n_iter_
    np.testing.assert_array_equal(step.labels, model.labels_)
    values = [h["objective"] for h in model.history_]
    best = int(np.argmin([abs(h["n_components"] - c) for h in model.history_]))
    np.testing.assert_allclose(step.objective.total, values[best], rtol=1e-8)
    np.testing.assert_allclose(
        step.graph.S.entries(0.0).toarray(), model.affinity_matrix_.toarray(), atol=1e-6
    )
    assert on_cpu(step.graph.u).shape == (len(X),)


def test_a_table_of_all_points_is_the_array_of_all_pairs(monkeypatch):
    X, c, k = problem(1)
    whole = quietly(ANCMM.paper(c, k).fit, X)
    monkeypatch.setattr("bistochastic.cluster.candidates.ALL", 0)
    monkeypatch.setattr("bistochastic.cluster.candidates.WIDE", 100)
    table = quietly(ANCMM.paper(c, k).fit, X)
    np.testing.assert_array_equal(whole.labels_, table.labels_)
    np.testing.assert_allclose(
        whole.history_[-1]["objective"], table.history_[-1]["objective"], rtol=1e-8
    )


def test_a_certificate_says_whether_all_points_would_have_made_a_difference(
    monkeypatch,
):
    X, _ = make_blobs(300, centers=4, cluster_std=1.5, random_state=2)
    monkeypatch.setattr("bistochastic.cluster.candidates.ALL", 10)
    monkeypatch.setattr("bistochastic.cluster.candidates.WIDE", 1)
    with pytest.warns(UserWarning, match="The 9 nearest candidates stood for all"):
        model = ANCMM.paper(4, 8).fit(X)
    assert max(h["open_rows"] for h in model.history_) > 0
    monkeypatch.setattr("bistochastic.cluster.candidates.WIDE", 20)
    wide = quietly(ANCMM.paper(4, 8).fit, X)
    monkeypatch.setattr("bistochastic.cluster.candidates.ALL", 4096)
    whole = quietly(ANCMM.paper(4, 8).fit, X)
    assert max(h["open_rows"] for h in wide.history_) == 0
    for ours, theirs in zip(wide.history_, whole.history_, strict=True):
        np.testing.assert_allclose(ours["objective"], theirs["objective"], rtol=1e-8)


def test_the_certificate_of_the_exact_update(monkeypatch):
    """What is left out must matter, or the graphs be the same."""
    monkeypatch.setattr("bistochastic.cluster.candidates.ALL", 10)
    monkeypatch.setattr("bistochastic.cluster.candidates.WIDE", 4)
    options = {"graph_update": "exact", "self_neighbor": False, "max_iter": 2}
    closed = 0
    for seed in range(12):
        X, _ = make_blobs(60, centers=3, cluster_std=2.0, random_state=seed)
        table = quietly(ANCMM.paper(3, 8, **options).fit, X)
        with monkeypatch.context() as patch:
            patch.setattr("bistochastic.cluster.candidates.ALL", 4096)
            whole = quietly(ANCMM.paper(3, 8, **options).fit, X)
        if table.history_[-1]["open_rows"] == 0 and table.n_iter_ == 2:
            closed += 1
            np.testing.assert_allclose(
                table.history_[1]["objective"], whole.history_[1]["objective"]
            )
    assert 0 < closed < 12


# what comes out


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"candidates": None},
        {"candidates": 25},
        {"alpha": "row"},
        {"alpha": 3.0},
        {"penalty": 50.0},
        {"self_neighbor": False},
        {"self_neighbor": "lazy"},
        {"graph_update": "exact"},
        {"graph_update": "exact", "self_neighbor": "lazy"},
        {"graph_update": "exact", "self_neighbor": False, "candidates": None},
        {"scaling": "alternating"},
        {"scaling": "damped"},
        {"scaling": "fixed_point"},
        {"metric": "manhattan"},
        {"metric": "cosine"},
    ],
    ids=str,
)
def test_the_graph_is_doubly_stochastic_and_its_components_are_the_labels(options):
    X, y = make_blobs(150, 3, centers=3, cluster_std=1.2, random_state=3)
    model = ANCMM(3, n_neighbors=12, **options)
    model.fit(X)
    S = model.affinity_matrix_
    assert abs(S.sum(axis=1) - 1).max() <= model.tol
    assert (S != S.T).nnz == 0
    assert S.data.min() > 0
    number, labels = connected_components(S, directed=False)
    assert number == model.n_components_ == model.n_clusters_ == 3
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.converged_
    first = [list(model.labels_).index(label) for label in range(3)]
    assert first == sorted(first)
    assert model.embedding_.shape == (150, 3)
    assert model.alpha_.shape == model.scaling_.shape == (150,)
    assert model.n_iter_ == len(model.history_) >= 1
    assert model.history_[-1]["residual"] <= model.tol
    np.testing.assert_array_equal(
        model.history_[-1]["sizes"], np.sort(np.bincount(model.labels_))[::-1]
    )


@pytest.mark.parametrize("update", ["marcus", "exact"])
@pytest.mark.parametrize("tol", [1e-8, 1e-12, 1e-14])
def test_the_residual_is_that_of_the_graph_that_is_given(update, tol):
    X, _ = make_blobs(150, centers=3, random_state=0)
    model = ANCMM(3, n_neighbors=12, graph_update=update, tol=tol, exact=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    worst = np.abs(model.affinity_matrix_.sum(axis=1) - 1).max()
    kept = next(record for record in model.history_ if record["kept"])
    assert kept["residual"] == pytest.approx(worst, abs=1e-15)
    assert model.converged_ == (model.n_components_ == 3 and kept["residual"] <= tol)
    assert worst <= max(tol, 5e-15)


def test_the_history_adds_up():
    X, _ = wine()
    model = plain(3, n_neighbors=20).fit(X)
    assert model.history_[0]["penalty"] == 0
    for record in model.history_:
        parts = ("distance", "norm", "penalty")
        total = sum(record[f"objective_{part}"] for part in parts)
        np.testing.assert_allclose(record["objective"], total)
        assert record["seconds"] >= 0
        assert record["sizes"].sum() == 178
        assert len(record["sizes"]) == record["n_components"]
    D = squared_distances(Points.of(X, "euclidean"))
    S = model.affinity_matrix_.toarray()
    np.testing.assert_allclose(model.history_[-1]["objective_distance"], (D * S).sum())
    norm = (model.alpha_[:, None] * S**2).sum()
    np.testing.assert_allclose(model.history_[-1]["objective_norm"], norm)
    F = model.embedding_
    G = ((F[:, None] - F[None]) ** 2).sum(-1)
    np.testing.assert_allclose(
        model.history_[-1]["objective_penalty"],
        model.penalty_ * (G * S).sum(),
        rtol=1e-6,
        atol=1e-12,
    )


def test_alpha_is_set_by_the_plain_distances():
    X, _ = wine()
    D = np.sort(squared_distances(Points.of(X, "euclidean")), axis=1)
    for k in (5, 20):
        alphas = (k * D[:, k] - D[:, :k].sum(axis=1)) / 2
        mean, row, number = (
            quietly(plain(3, n_neighbors=k, alpha=alpha, max_iter=4).fit, X)
            for alpha in ("mean", "row", 0.7)
        )
        np.testing.assert_allclose(mean.alpha_, alphas.mean())
        np.testing.assert_allclose(row.alpha_, alphas)
        np.testing.assert_allclose(number.alpha_, 0.7)
        assert mean.history_[1]["penalty"] == pytest.approx(alphas.mean())
        few = mean.history_[1]["n_components"] < 3
        assert mean.history_[2]["penalty"] == pytest.approx(
            alphas.mean() * (2 if few else 0.5)
        )


def test_lambda_is_doubled_or_halved_or_rests():
    rule = Penalty(3.0)
    assert rule.after(4.0, 1, 2) == 8.0
    assert rule.after(4.0, 3, 2) == 2.0
    assert rule.after(4.0, 2, 2) == 4.0


def test_the_first_graph_is_the_mapped_closed_form():
    X, _ = wine()
    model = quietly(plain(3, n_neighbors=9, max_iter=1).fit, X)
    D = squared_distances(Points.of(X, "euclidean"))
    s = np.sort(D, axis=1)
    W = np.maximum(s[:, 9:10] - D, 0)
    W /= W.sum(axis=1, keepdims=True)
    wanted = marcus_mapping((W + W.T) / 2).matrix
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), wanted, atol=1e-7)


def test_the_exact_update_solves_equation_13():
    X, _ = wine()
    model = plain(3, n_neighbors=20, candidates=None, graph_update="exact").fit(X)
    D = squared_distances(Points.of(X, "euclidean"))
    F = model.embedding_
    M = D + model.penalty_ * ((F[:, None] - F[None]) ** 2).sum(-1)
    wanted = project_doubly_stochastic(-M / (2 * model.alpha_[0])).matrix
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), wanted, atol=1e-8)


def test_the_approximation_of_equations_20_to_23():
    X, _ = wine()
    model = ANCMM.paper(3, 30).fit(X)
    found = model.approximation(X)
    S = model.affinity_matrix_.toarray()
    D = squared_distances(Points.of(X, "euclidean"))
    F, alpha = model.embedding_, model.alpha_[0]
    M = D + model.penalty_ * ((F[:, None] - F[None]) ** 2).sum(-1)
    W = np.array([plain_simplex(-row / (2 * alpha)) for row in M])
    u = model.scaling_
    moved = u[:, None] * W * u
    np.testing.assert_allclose(found.epsilon, ((moved - W) ** 2).sum(), rtol=1e-6)
    left = ((S - (W + W.T) / 2) ** 2).sum()
    assert left <= found.epsilon * (1 + 1e-9)  # Eq. (23)
    gamma = -(M + 2 * alpha * W).min(axis=1, keepdims=True)
    rest = np.where(W > 0, M + 2 * alpha * moved + gamma, 0)
    np.testing.assert_allclose(found.kkt, np.linalg.norm(rest), rtol=1e-6)
    assert found.row_kkt < 1e-12
    exact = project_doubly_stochastic(-M / (2 * alpha)).matrix
    values = [(M * G).sum() + alpha * (G**2).sum() for G in (exact, S)]
    np.testing.assert_allclose(found.exact, values[0])
    np.testing.assert_allclose(found.gap, values[1] - values[0], rtol=1e-4)
    assert 0 < found.gap
    np.testing.assert_allclose(found.distance, np.linalg.norm(S - exact), rtol=1e-4)
    with pytest.raises(ValueError, match="one alpha"):
        plain(3, alpha="row").fit(X).approximation(X)


# points of another order, scale, place and kind


@pytest.mark.parametrize("seed", some([1, 2, 4, 5, 7], 2))
def test_rows_in_another_order_give_the_same_partition(seed):
    X, c, k = problem(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    one, two = (quietly(ANCMM(c, n_neighbors=k).fit, Z) for Z in (X, X[order]))
    assert adjusted_rand_score(one.labels_[order], two.labels_) == 1.0


@pytest.mark.parametrize("factor", [1e-8, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_scale_and_place_do_not_matter(factor, offset):
    X, c, k = problem(2)
    one = quietly(plain(c, n_neighbors=k).fit, X)
    two = quietly(plain(c, n_neighbors=k).fit, (X + offset) * factor)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(two.alpha_, one.alpha_ * factor**2, rtol=1e-5)


def test_the_same_input_gives_the_same_output():
    X, _ = make_blobs(600, 4, centers=5, cluster_std=2.5, random_state=0)
    model = ANCMM(5)
    one, two = quietly(model.fit, X).labels_, quietly(clone(model).fit, X).labels_
    np.testing.assert_array_equal(one, two)
    other = quietly(clone(model).set_params(random_state=7).fit, X).labels_
    assert adjusted_rand_score(one, other) == 1.0


def test_paper_survives_clone():
    model = clone(ANCMM.paper(3, 30))
    assert model.get_params() == ANCMM.paper(3, 30).get_params()
    assert model.candidates is None
    assert model.scaling == "alternating"


@pytest.mark.parametrize(("n", "most"), some([(6_000, 140), (20_000, 300)], 1))
def test_twenty_thousand_points_stay_far_below_all_pairs(n, most):
    code = """
import resource, sys
from sklearn.datasets import make_blobs
from bistochastic import ANCMM
from bistochastic.places.host import kernels
X, y = make_blobs(int(sys.argv[1]), 16, centers=20, cluster_std=2.5, random_state=0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = ANCMM.paper(20, 15).fit(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) // 1024, model.n_components_)
"""
    if sys.platform != "linux":
        pytest.skip("memory is read in kilobytes, as Linux counts it")
    done = subprocess.run(
        [sys.executable, "-c", code, str(n)],
        capture_output=True,
        text=True,
        check=True,
    )
    megabytes, number = map(int, done.stdout.split())
    assert megabytes < most < n**2 * 8 / 1e6 / 2
    assert number == 20


def test_graphs_of_different_updates_differ_little():
    """What the paper says in words: the mapping is near the exact solution."""
    X, _ = make_moons(200, noise=0.05, random_state=0)
    model = plain(2, n_neighbors=15).fit(X)
    found = model.approximation(X)
    assert 0 <= found.gap < 0.05 * found.exact


def test_points_are_held_without_all_pairs():
    X, _ = make_blobs(50, random_state=0)
    made = of_points(Host(), Points.of(X, "euclidean"), len(X), 5, 5, loops=True)
    assert [part.values.shape for part in made.costs.parts] == [(50, 6)]
    assert not made.limited
