"""Exactly c, no crumbs, no hand-tuned k: what the default adds to the paper."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

import random_problems
from bistochastic import (
    ANCMM,
    InputError,
    adaptive_neighbors_graph,
    estimate_n_clusters,
    marcus_mapping,
)
from bistochastic.cluster import n_clusters as number
from bistochastic.cluster.consensus import grid, medoid, steady
from bistochastic.cluster.penalty import Bracket
from bistochastic.graph.bridges import Links, bridges, sweep
from bistochastic.graph.refine import (
    dimension,
    local_scales,
    nth_cost,
    triangles,
    unit_rows,
)
from bistochastic.neighbors.exact import nearest
from bistochastic.neighbors.points import Points
from matrices import as_numpy, row_error, sparse_symmetric


@pytest.mark.parametrize("seed", range(45))
def test_random_problems_have_exactly_c_components(seed):
    kind, what, index = random_problems.check(seed)
    assert what == "exact" or "n_neighbors" in what
    if index is not None and kind not in random_problems.TIED:
        assert index > 0.9


def test_rare_clusters_are_found():
    centers = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
    for seed in range(3):
        X, y = make_blobs([900, 600, 470, 30], centers=centers, random_state=seed)
        assert adjusted_rand_score(y, ANCMM(4).fit(X).labels_) > 0.99


def test_the_number_of_neighbors_that_is_chosen_gives_the_same_labels():
    X, _ = make_moons(250, noise=0.12, random_state=1)
    model = ANCMM(2).fit(X)
    assert model.n_neighbors_ in (14, 20, 28, 40, 56)
    assert 0 < model.stability_ <= 1
    again = ANCMM(2, n_neighbors=model.n_neighbors_).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert again.stability_ == 1.0


def test_trials_tell_how_each_number_of_neighbors_came_out():
    X, _ = make_blobs(300, 3, centers=3, cluster_std=2.5, random_state=0)
    model = ANCMM(3).fit(X)
    ks = [trial["n_neighbors"] for trial in model.trials_]
    assert ks == grid(300, 3)
    alone = [ANCMM(3, n_neighbors=k).fit(X).labels_ for k in ks]
    for trial, labels in zip(model.trials_, alone, strict=True):
        index = adjusted_rand_score(model.labels_, labels)
        assert trial["agreement"] == pytest.approx(index)
        assert trial["sizes"] == np.bincount(labels).tolist()
        assert trial["n_components"] == 3
    kept = [trial["n_neighbors"] for trial in model.trials_ if trial["kept"]]
    assert kept == [model.n_neighbors_]
    at = ks.index(model.n_neighbors_)
    others = alone[:at] + alone[at + 1 :]
    np.testing.assert_array_equal(model.agreement_, steady(model.labels_, others))
    assert 0.5 < model.agreement_.mean() < 1


def test_steady_by_hand():
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    same = labels[::-1].max() - labels  # other names
    merged = np.array([0, 0, 0, 1, 1, 1, 1, 1])  # 1 goes under in 2
    split = np.array([0, 0, 3, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(steady(labels, [same]), 1)
    np.testing.assert_array_equal(steady(labels, [merged]), [1, 1, 1, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(steady(labels, [split]), [1, 1, 0, 1, 1, 1, 1, 1])
    both = steady(labels, [merged, split])
    np.testing.assert_array_equal(both, [1, 1, 0.5, 0.5, 0.5, 1, 1, 1])
    np.testing.assert_array_equal(steady(labels, []), 1)


@pytest.mark.parametrize("ordered", [False, True])
def test_memberships_are_shares_of_the_first_graph(ordered, monkeypatch):
    X, _ = make_blobs(260, 3, centers=4, cluster_std=2.0, random_state=2)
    if ordered:
        monkeypatch.setattr("bistochastic.cluster.problem.ORDERED", 100)
    model = ANCMM(4, n_neighbors=12, refine=None).fit(X)
    shares = model.memberships(X)
    S = adaptive_neighbors_graph(X, 12).toarray()
    np.fill_diagonal(S, 0)
    wanted = S @ np.eye(4)[model.labels_]
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.toarray(), wanted, atol=1e-7)
    assert (shares.toarray().argmax(axis=1) == model.labels_).mean() > 0.9


def test_memberships_of_few_points_and_other_data():
    X, _ = make_blobs(20, random_state=0)
    np.testing.assert_array_equal(ANCMM(1).fit(X).memberships(X).toarray(), 1)
    alone = ANCMM(20).fit(X).memberships(X).toarray()
    np.testing.assert_allclose(alone.sum(axis=1), 1)
    assert alone.diagonal().max() == 0  # all neighbors are elsewhere
    model = ANCMM(3).fit(X)
    with pytest.raises(InputError, match="about the data of `fit`"):
        model.memberships(X[:10])
    with pytest.raises(InputError, match="is not the data of `fit`"):
        model.memberships(X * 3 + X[:, ::-1])
    far = pairwise_distances(X)
    again = ANCMM(3, metric="precomputed").fit(far)
    np.testing.assert_allclose(
        again.memberships(far).toarray(), model.memberships(X).toarray(), atol=1e-7
    )
    order = np.random.default_rng(0).permutation(20)
    graph = np.exp(-(far**2))
    for pairs, made in ((far, again), (graph, ANCMM(3, metric="affinity").fit(graph))):
        with pytest.raises(InputError, match="its rows have other sums"):
            made.memberships(pairs[order][:, order])


@pytest.mark.parametrize("refine", ["triangles", "local", "both", None])
def test_refinements_say_which_they_are(refine):
    X, y = make_blobs(240, 4, centers=2, cluster_std=1.5, random_state=1)
    model = ANCMM(2, refine=refine).fit(X)
    assert model.refine_ in (("triangles", "local") if refine == "both" else (refine,))
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_no_crumbs():
    X, _ = make_blobs(300, 10, centers=3, cluster_std=6.0, random_state=0)
    for size in (2, 15, 60):
        model = ANCMM(3, min_cluster_size=size, n_neighbors=7).fit(X)
        assert np.bincount(model.labels_).min() >= size
    auto = ANCMM(3, n_neighbors=5).fit(X)
    assert np.bincount(auto.labels_).min() >= 10
    with pytest.raises(InputError, match="min_cluster_size=101 times n_clusters=3"):
        ANCMM(3, min_cluster_size=101).fit(X)


def test_too_many_components_are_joined_and_history_says_so():
    X, _ = make_blobs(200, centers=6, cluster_std=0.3, random_state=2)
    model = ANCMM(3, n_neighbors=8).fit(X)
    assert model.n_components_ == 3
    assert model.history_[-1]["action"] == "join"
    assert model.history_[-1]["kept"]
    assert len(model.bridges_) == model.history_[-1]["n_bridges"] == 3
    for i, j in model.bridges_:
        assert model.labels_[i] == model.labels_[j]
        assert model.affinity_matrix_[i, j] > 0


def test_joins_are_those_of_single_linkage():
    X, _ = make_blobs(120, centers=8, cluster_std=0.2, random_state=4)
    model = ANCMM(3, n_neighbors=8, min_cluster_size=1).fit(X)
    tree = minimum_spanning_tree(pairwise_distances(X)).tocoo()
    longest = np.argsort(tree.data)[-2:]
    kept = np.delete(np.arange(tree.nnz), longest)
    forest = csr_array(
        (tree.data[kept], (tree.row[kept], tree.col[kept])), shape=tree.shape
    )
    wanted = connected_components(forest, directed=False)[1]
    assert adjusted_rand_score(wanted, model.labels_) == 1.0


def test_too_few_components_are_cut():
    X = np.random.default_rng(0).random((300, 2))
    model = ANCMM(40, n_neighbors=40, max_iter=2).fit(X)
    assert model.n_components_ == 40
    assert {"cut"} <= {record["action"] for record in model.history_}
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)


def test_duplicates_double_k():
    X = np.repeat(np.random.default_rng(0).random((30, 2)), 12, axis=0)
    model = ANCMM(3, n_neighbors=8).fit(X)
    assert model.n_neighbors_ == 16
    assert model.n_components_ == 3
    assert (model.labels_.reshape(30, 12) == model.labels_[::12, None]).all()


def test_a_table_without_links_is_joined_as_far_as_it_goes():
    X, y = make_blobs(120, centers=4, cluster_std=0.3, random_state=2)
    table = KNeighborsTransformer(n_neighbors=8).fit_transform(X)
    model = ANCMM(2, metric="precomputed")
    with pytest.warns(UserWarning, match="make the table of neighbors wider"):
        model.fit(table)
    assert model.n_components_ == 4
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert ANCMM(2, metric="precomputed").fit(pairwise_distances(X)).n_components_ == 2


def test_columns_of_different_spread_are_warned_of():
    X, _ = make_blobs(60, 3, random_state=0)
    for constant in (0.1, 1e200, 1.7e308):
        ANCMM(3).fit(np.c_[X, np.full(60, constant)])  # no warning
    ANCMM(3).fit(X * 1e152)
    with pytest.warns(UserWarning, match="The spread of column 1 is"):
        ANCMM(3).fit(X * [1, 1e4, 1])
    ANCMM(3).fit(X * [1, 5, 1])  # no warning
    ANCMM(3).fit(np.c_[X, np.ones(60)])


@pytest.mark.parametrize(
    ("d", "way"), [(1, "triangles"), (2, "triangles"), (6, "local")]
)
def test_the_refinement_follows_the_dimension_of_the_points(rng, d, way):
    X = rng.random((400, d))
    turned = np.c_[X, np.zeros((400, 6))] @ np.linalg.qr(rng.random((d + 6, d + 6)))[0]
    for model in (ANCMM(3).fit(X), ANCMM(3).fit(turned)):
        assert model.refine_ == way
    named = ANCMM(3, refine=way).fit(X)
    np.testing.assert_array_equal(named.labels_, ANCMM(3).fit(X).labels_)
    D = pairwise_distances(X)
    assert ANCMM(3, metric="precomputed").fit(D).refine_ == way
    S = adaptive_neighbors_graph(X)
    assert ANCMM(3, metric="affinity").fit(S).refine_ == "triangles"


def test_duplicates_stay_together(rng):
    P = rng.random((6, 2))
    cases = [
        (2, [10, 1]), (2, [300, 2, 2]), (4, [20, 20, 1, 1]), (4, [80, 1, 1, 1]),
        (5, [40, 30, 3, 2, 1, 1]),
    ]  # fmt: skip
    for c, times in cases:
        group = np.repeat(np.arange(len(times)), times)
        order = rng.permutation(group.size)
        group = group[order]
        for options in ({}, {"min_cluster_size": 1}, {"refine": None}):
            model = ANCMM(c, **options).fit(P[group])
            assert model.n_components_ == c
            pairs = np.unique(np.c_[group, model.labels_], axis=0)
            assert len(pairs) == len(times)


def test_counts_with_many_zeros():
    rng = np.random.default_rng(0)
    zero = rng.random((300, 2)) < 0.8
    X = np.where(zero, 0, rng.integers(1, 6, (300, 2)))
    assert ANCMM(21).fit(X).n_components_ == 21 == len(np.unique(X, axis=0))


@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_neighbors_gives_the_same_labels_with_ties(seed):
    rng = np.random.default_rng(seed)
    for X, c in ((rng.integers(0, 8, (40, 1)), 3), (rng.integers(0, 4, (200, 2)), 2)):
        model = ANCMM(c).fit(X)
        again = ANCMM(c, n_neighbors=model.n_neighbors_).fit(X)
        np.testing.assert_array_equal(model.labels_, again.labels_)


def test_clusters_smaller_than_wanted_are_said():
    X = np.random.default_rng(0).random((60, 2))
    with pytest.warns(UserWarning, match="smaller than min_cluster_size=15"):
        ANCMM(4, min_cluster_size=15).fit(X)


def test_too_many_components_at_once_are_joined_without_a_search():
    X, y = make_blobs([40] * 6, cluster_std=0.1, random_state=3)
    model = ANCMM(3).fit(X)
    assert model.n_iter_ == 2
    assert model.history_[-1]["action"] == "join"
    assert len(np.unique(np.c_[y, model.labels_], axis=0)) == 6


# the parts


def test_the_dimension_around_points(rng):
    for d in (1, 2, 5):
        distances, _ = (
            NearestNeighbors(n_neighbors=15).fit(rng.random((4000, d))).kneighbors()
        )
        inverse = dimension(distances**2, loops=False)
        assert 1 / inverse.mean() == pytest.approx(d, rel=0.15)
    few = np.array([[0, 0, 1, 4, np.inf], [0, 2, 2, 2, 2], [0, 0, 0, 0, 0]])
    inverse = dimension(few, loops=True)
    np.testing.assert_allclose(inverse, [np.log(4) / 2, np.nan, np.nan])


def test_neighbors_are_tried_up_to_the_size_of_a_cluster():
    assert grid(100, 10) == [5, 7, 10]
    assert grid(400, 8) == [14, 20, 28, 40]
    assert grid(400, 2) == [14, 20, 28, 40]
    assert grid(10_000, 3) == [20, 28, 40, 56]
    assert grid(100_000, 3) == [14, 20, 28, 40]
    assert grid(5, 3) == [5, 7, 10]


def test_a_bracket_grows_then_bisects_then_gives_up():
    rule = Bracket(1.0, 2.0)
    assert rule.after(1.0, 1, 3) == 2.0
    assert rule.after(2.0, 2, 3) == 4.0
    assert rule.after(4.0, 5, 3) == pytest.approx(8**0.5)
    assert rule.after(2.01, 2, 3) == pytest.approx((2.01 * 4.0) ** 0.5)
    assert rule.after(2.02, 7, 3) is None
    down = Bracket(1.0, 2.0)
    assert down.after(1.0, 9, 3) == 0.25


@pytest.mark.parametrize("table", [True, False])
def test_the_cheapest_pair_that_leaves_a_part(rng, table):
    X = rng.random((60, 2))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    labels = (X[:, 0] > 0.5).astype(int) + 2 * (X[:, 1] > 0.7)
    labels = np.unique(labels, return_inverse=True)[1]
    points = Points.of(X, "euclidean")
    if table:  # so short that most points see their own part only
        columns, costs = nearest(points, 3)
        links = Links(60, [(np.arange(60), columns, costs)], points)
    else:
        links = Links(60, [(np.arange(60), None, D)])
    q = labels.max() + 1
    cost, inside, outside = links.leaving(labels, np.ones(q, dtype=bool))
    for part in range(q):
        wanted = np.where((labels == part)[:, None] & (labels != part), D, np.inf)
        assert cost[part] == pytest.approx(wanted.min())
        assert labels[inside[part]] == part != labels[outside[part]]


def test_the_smallest_crumbs_are_joined_first():
    X = np.array([0.0, 1, 2, 3, 10, 11, 13, 30])[:, None]
    links = Links(8, [(np.arange(8), None, (X - X.T) ** 2)])
    labels = np.array([0, 0, 0, 0, 1, 1, 2, 3])
    pairs, made = bridges(labels, links, floor=3)
    assert sorted(map(sorted, pairs)) == [[5, 6], [6, 7]]
    assert made.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    pairs, made = bridges(labels, links, most=2)
    assert made.max() == 1


def test_the_sweep_cuts_where_least_is_lost():
    A = np.zeros((9, 9))
    A[:5, :5] = A[5:, 5:] = 1.0
    A[4, 5] = A[5, 4] = 0.1
    v = np.r_[-np.arange(1, 6), np.arange(1, 5)].astype(float)
    assert sweep(csr_array(A), v, 1).sum() in (4, 5)
    side = sweep(csr_array(A), np.arange(9.0), 1)
    assert side.tolist() == [True] * 5 + [False] * 4
    assert sweep(csr_array(A), np.arange(9.0), 4).sum() == 5


def test_the_medoid_agrees_most_with_the_others():
    a, b = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    best, agreement = medoid([b, a, a])
    assert best in (1, 2)
    assert agreement[1, 2] == 1.0
    assert medoid([a])[0] == 0
    assert medoid([a, a, a])[0] == 1


def test_triangles_and_bridges_on_every_holder(hold, rng):
    A = sparse_symmetric(rng, 12)
    A = marcus_mapping(A).matrix
    S = hold(A)
    wanted = A * np.sqrt(A @ A) * (A > 0) + 1e-9 * np.eye(12)
    made = as_numpy(triangles(S).native())
    np.testing.assert_allclose(made, wanted, atol=1e-14)
    assert (made == made.T).all()
    B = np.zeros((12, 12))
    B[1, 4] = B[4, 1] = 0.3
    B[7, 2] = B[2, 7] = 0.1
    joined = as_numpy(S.joined(np.array([1, 7]), np.array([4, 2]), [0.3, 0.1]).native())
    np.testing.assert_allclose(joined, A + B, atol=1e-15)


def test_unit_rows_and_local_scales(rng):
    F = rng.standard_normal((5, 3))
    F[2] = 0
    np.testing.assert_allclose(
        np.linalg.norm(unit_rows(F), axis=1), [1, 1, 0, 1, 1], atol=1e-15
    )
    costs = np.sort(rng.random((4, 12)), axis=1)
    costs[:, 0] = 0
    np.testing.assert_allclose(nth_cost(costs, True), costs[:, 7])
    np.testing.assert_allclose(nth_cost(costs, False), costs[:, 6])
    assert local_scales(np.array([0.0, 4.0, 9.0])).tolist() == [2.0, 2.0, 3.0]


# beside the clusterer


def test_the_graph_alone():
    X, _ = make_blobs(200, random_state=0)
    S = adaptive_neighbors_graph(X, 12)
    assert row_error(S.toarray()) < 1e-9
    assert (S != S.T).nnz == 0
    first = ANCMM(
        1, n_neighbors=12, exact=False, refine=None, min_cluster_size=1, max_iter=1
    )
    first.fit(X)
    np.testing.assert_allclose(S.toarray(), first.affinity_matrix_.toarray(), atol=1e-7)
    for bad in (1, 200, "many"):
        with pytest.raises(InputError, match="n_neighbors"):
            adaptive_neighbors_graph(X, bad)


@pytest.mark.parametrize("rule", ["both", "gap", "stability"])
def test_the_number_of_separated_clusters(rule):
    X, _ = make_blobs(160, 4, centers=5, cluster_std=0.6, random_state=3)
    found = estimate_n_clusters(X, rule=rule, max_clusters=7)
    assert found.numbers.tolist() == [2, 3, 4, 5, 6, 7]
    assert found.scores.shape == (6,)
    if rule != "stability":
        assert found.n_clusters == 5
    model = ANCMM("auto").fit(X)
    assert model.n_clusters_ == 5
    with pytest.raises(InputError, match="estimate_n_clusters"):
        ANCMM("auto", metric="cosine").fit(X)
    with pytest.raises(InputError, match="Too few different points"):
        estimate_n_clusters(X[:3])


def _mapped(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def _frame(X, folder):
    frame = pytest.importorskip("pandas").DataFrame(X)
    return frame.astype({0: np.float64})  # no one array holds these columns


@pytest.mark.parametrize("kind", [np.array, _mapped, _frame, "auto"])
def test_the_memory_for_the_number_grows_by_4_bytes_a_point(
    kind, monkeypatch, tmp_path
):
    monkeypatch.setattr(number, "SAMPLED", 400)
    monkeypatch.setattr(number, "_agreement", lambda *given: 1.0)  # many small fits
    X, _ = make_blobs(20_000, 8, centers=3, random_state=0)
    X = X.astype(np.float32)
    peaks, sizes = [], (20_000, 400_000)
    for n in (400, *sizes):  # the first time functions are compiled
        Z = np.tile(X, (max(1, n // len(X)), 1))[:n]
        if kind == "auto":
            ask = partial(ANCMM("auto")._number, Z)
        else:
            Z = Z if kind is np.array else kind(Z, tmp_path)
            ask = partial(estimate_n_clusters, Z, rule="gap", max_clusters=4)
        tracemalloc.start()
        ask()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 4 * (sizes[1] - sizes[0]) + 100_000


def test_the_points_that_stand_for_all_do_not_change():
    for n in (10, 5_001, 70_000):
        rows = np.sort(np.random.default_rng(0).permutation(n)[:5_000])
        np.testing.assert_array_equal(number.chosen(n), rows)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_not_in_the_sample_are_checked_as_well(value):
    X = np.random.default_rng(0).random((6_000, 2))
    X[np.setdiff1d(np.arange(6_000), number.chosen(6_000))[-1]] = value
    for Z in (X, X.astype(np.float32), X.astype(object), X.tolist()):
        with pytest.raises(ValueError, match="contains"):
            estimate_n_clusters(Z, rule="gap")
