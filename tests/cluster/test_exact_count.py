"""Exactly c, no crumbs, no hand-tuned k: what the default adds to the paper."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsTransformer

import random_problems
from bistochastic import ANCMM, InputError, adaptive_neighbors_graph
from bistochastic.cluster.exact_count import joined
from bistochastic.cluster.penalty import Bracket
from bistochastic.graph.objective import Objective
from bistochastic.places.host.csr import Csr
from selection import some

SEEDS = [*range(18, 45), *range(18)]  # the first nine have every kind, and are small


@pytest.mark.parametrize("seed", some(SEEDS, 9))
def test_random_problems_have_exactly_c_components(seed):
    kind, what, index = random_problems.check(seed)
    assert what == "exact" or "n_neighbors" in what
    if index is not None and kind not in random_problems.TIED:
        assert index > 0.9


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_rare_clusters_are_found(seed):
    centers = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
    X, y = make_blobs([900, 600, 470, 30], centers=centers, random_state=seed)
    assert adjusted_rand_score(y, ANCMM(4).fit(X).labels_) > 0.99


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


def test_sides_of_a_cut_without_support_get_loops():
    X = np.random.default_rng(0).normal(size=(24, 2))
    options = {"min_cluster_size": 1, "n_neighbors": 10, "penalty": 1e-8}
    model = ANCMM(10, self_neighbor=False, refine="local", **options)
    with pytest.warns(UserWarning, match="had no total support"):
        model.fit(X)
    assert np.bincount(model.labels_).min() == 1  # a point alone has no other edge
    assert model.n_components_ == 10
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
    ("d", "way"), some([(2, "triangles"), (6, "local"), (1, "triangles")], 2)
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


@pytest.mark.parametrize(
    ("c", "times"),
    some(
        [
            (2, [10, 1]),
            (5, [40, 30, 3, 2, 1, 1]),
            (4, [20, 20, 1, 1]),
            (4, [80, 1, 1, 1]),
            (2, [300, 2, 2]),
        ],
        2,
    ),
    ids=str,
)
def test_duplicates_stay_together(rng, c, times):
    P = rng.random((6, 2))
    group = rng.permutation(np.repeat(np.arange(len(times)), times))
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


def test_a_bracket_grows_then_bisects_then_gives_up():
    rule = Bracket(1.0, 2.0)
    assert rule.after(1.0, 1, 3) == 2.0
    assert rule.after(2.0, 2, 3) == 4.0
    assert rule.after(4.0, 5, 3) == pytest.approx(8**0.5)
    assert rule.after(2.01, 2, 3) == pytest.approx((2.01 * 4.0) ** 0.5)
    assert rule.after(2.02, 7, 3) is None
    down = Bracket(1.0, 2.0)
    assert down.after(1.0, 9, 3) == 0.25


def test_a_bracket_gives_up_where_lambda_changes_nothing():
    rule, value = Bracket(1.0, 2.0), Objective(1.0, 2.0, 3.0)
    assert rule.after(1.0, 1, 3, value) == 2.0
    assert rule.after(2.0, 1, 3, Objective(1.1, 2.0, 6.0)) == 4.0
    assert rule.after(4.0, 1, 3, Objective(1.1, 2.0, 12.0)) is None
    small = Bracket(1e-9, 2.0)  # too small to change anything as yet
    assert small.after(1e-9, 1, 3, Objective(1.0, 2.0, 1e-9)) == 2e-9
    assert small.after(2e-9, 1, 3, Objective(1.0, 2.0, 2e-9)) == 4e-9


# beside the clusterer


def test_no_two_bridges_weigh_the_same():
    S = joined(Csr(csr_array(np.eye(6))), [(0, 1), (2, 3), (4, 5)]).native().toarray()
    weights = S[[0, 2, 4], [1, 3, 5]]
    np.testing.assert_allclose(weights, 0.5, rtol=1e-8)
    assert np.all(np.diff(weights) < -1e-12)
    np.testing.assert_array_equal(S, S.T)


def test_a_bridge_weighs_the_same_from_either_end():
    A = csr_array(np.diag([4.0, 2.0]))
    for pair in ((0, 1), (1, 0)):
        S = joined(Csr(A), [pair]).native().toarray()
        np.testing.assert_array_equal(S, [[4, 2], [2, 2]])
