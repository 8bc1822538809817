"""What ANCMM does with data of any kind: each case decided, each error a sentence."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline

from bistochastic import ANCMM, InputError, NotSymmetricError, SupportError
from bistochastic.cluster.trials import Trials
from bistochastic.places.host.host import Host
from conftest import need

X, Y = make_blobs(90, 3, centers=3, cluster_std=1.0, random_state=5)


def plain(c, **options):
    """Return the paper's loop, on the k nearest candidates and with a fast scaling."""
    return ANCMM(c, exact=False, min_cluster_size=1, refine=None, **options)


def refuses(model, data, *words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model.fit(data)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    with pytest.raises(NotFittedError):
        model.predict(data)


# wrong numbers


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("metric", ["euclidean", "precomputed", "affinity"])
def test_numbers_that_are_not_finite(bad, metric):
    data = X.copy() if metric == "euclidean" else pairwise_distances(X)
    data[3, 1] = bad
    refuses(ANCMM(3, metric=metric), data, "NaN" if np.isnan(bad) else "inf")


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(X, mask=X > 5)
    with pytest.raises(TypeError, match="masked"):
        ANCMM(3).fit(masked)


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_squares_that_overflow(size):
    refuses(ANCMM(3), X * size, "too far apart")
    refuses(ANCMM.paper(3, 9), X * size, "too far apart")
    D = pairwise_distances(X) * size
    for kind in (np.asarray, csr_array):
        refuses(ANCMM(3, metric="precomputed"), kind(D), "overflow")


# few points, many clusters


def test_one_point():
    model = ANCMM(1).fit([[1.0, 2.0]])
    assert model.labels_.tolist() == [0]
    assert model.affinity_matrix_.toarray().tolist() == [[1.0]]
    assert model.predict([[5.0, 5.0]]).tolist() == [0]
    refuses(ANCMM(2), [[1.0, 2.0]], "n_clusters=2", "n_samples=1")


def test_more_clusters_than_points():
    refuses(ANCMM(91), X, "n_clusters=91", "n_samples=90")


def test_as_many_clusters_as_points():
    model = ANCMM(90).fit(X)
    assert model.labels_.tolist() == list(range(90))
    assert model.n_components_ == 90
    assert (model.affinity_matrix_ != csr_array(np.eye(90))).nnz == 0
    assert model.predict(X).tolist() == list(range(90))
    assert model.converged_


def test_one_cluster():
    for k in (5, 60, "auto"):
        model = ANCMM(1, n_neighbors=k).fit(X)
        assert set(model.labels_) == {0}
        assert model.n_components_ == 1
        assert model.converged_
    with pytest.warns(ConvergenceWarning, match="raise n_neighbors"):
        model = plain(1, n_neighbors=5).fit(X)
    assert set(model.labels_) == {0}
    assert model.n_components_ == 3
    assert not model.converged_


@pytest.mark.parametrize("loops", [True, False, "lazy"])
def test_more_neighbors_than_points(loops, recwarn):
    most = 90 if loops is True else 89
    ANCMM(3, n_neighbors=most - 1, self_neighbor=loops, max_iter=1).fit(X)
    for k in (most, most + 5):
        model = ANCMM(3, n_neighbors=k, self_neighbor=loops)
        refuses(model, X, f"n_neighbors={k} needs more than {k} candidates", "Lower")
    few = ANCMM(2, self_neighbor=loops).fit(X[[0, 1, 2, 3, 40]])
    assert few.n_neighbors_ <= 4


def test_a_point_that_is_its_only_neighbor(recwarn):
    refuses(ANCMM(3, n_neighbors=1), X, "counts the point itself", "2 or more")
    assert ANCMM(3, n_neighbors=1, self_neighbor=False).fit(X).n_neighbors_ == 1


@pytest.mark.parametrize("n", [2, 3, 4])
def test_very_few_points(n, recwarn):
    for c in range(1, n + 1):
        model = ANCMM(c).fit(X[:n])
        assert model.labels_.shape == (n,)
        np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)


# duplicates, constants, outliers


def test_duplicates_stay_together():
    twice = np.repeat(X, 2, axis=0)
    model = ANCMM(3, n_neighbors=10).fit(twice)
    assert (model.labels_[::2] == model.labels_[1::2]).all()
    assert adjusted_rand_score(np.repeat(Y, 2), model.labels_) == 1.0


def test_more_duplicates_than_neighbors(recwarn):
    many = np.repeat(X[:20], 12, axis=0)
    for options in ({}, {"candidates": None}, {"alpha": "row"}):
        refuses(
            plain(3, n_neighbors=8, **options), many, "cost the same", "n_neighbors=8"
        )
    some = np.concatenate([np.repeat(X[:5], 12, axis=0), X[5:]])
    for options in ({}, {"candidates": None}, {"alpha": "row"}):
        model = plain(3, n_neighbors=8, **options).fit(some)
        np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)


def test_constant_data():
    constant = np.ones((30, 4))
    refuses(ANCMM(2), constant, "n_clusters=2", "1 distinct row")
    refuses(ANCMM(30), constant, "n_clusters=30", "1 distinct row")
    model = ANCMM(1, n_neighbors=29).fit(constant)
    assert set(model.labels_) == {0}


def test_more_clusters_than_distinct_rows():
    rows = np.repeat(X[:4], 10, axis=0)
    refuses(ANCMM(5, n_neighbors=12), rows, "n_clusters=5", "4 distinct rows")
    D = pairwise_distances(rows)
    model = ANCMM(5, n_neighbors=12, metric="precomputed")
    refuses(model, D, "4 distinct rows")


@pytest.mark.parametrize("far", [1e3, 1e6, 1e12, 1e100])
def test_a_far_outlier(far, recwarn):
    data = np.concatenate([X, [[far, far, far]]])
    model = ANCMM(2).fit(data)
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)
    assert np.isfinite(model.embedding_).all()


# wrong parameters


@pytest.mark.parametrize(
    ("name", "values", "word"),
    [
        ("n_clusters", [0, -1, 2.5, "3", None, True, np.nan], "whole number >= 1"),
        ("n_neighbors", [0, -2, 2.5, "many", None, False], "whole number >= 1"),
        ("candidates", [0, 1.5, "all", -3], "whole number >= 1"),
        ("alpha", [0, -1.0, np.nan, np.inf, "median", None, True], "positive, finite"),
        ("penalty", [0, -1.0, np.nan, np.inf, "auto", True], "positive, finite"),
        ("self_neighbor", ["no", 1.5, None, 2], "True, False or 'lazy'"),
        ("graph_update", ["Marcus", None, 3], "'marcus' or 'exact'"),
        ("scaling", ["sinkhorn", None, 3], "'alternating'"),
        ("metric", ["euclid", None, 3], "cityblock"),
        ("max_iter", [0, -5, 2.5, None, "10"], "whole number >= 1"),
        ("tol", [0, -1e-3, 1.0, "small", np.nan], "between 0 and 1"),
        ("random_state", ["seed", 2.5], "cannot be used to seed"),
    ],
)
def test_wrong_parameters(name, values, word):
    for value in values:
        refuses(ANCMM(3).set_params(**{name: value}), X, word, name)


def test_parameters_that_do_not_go_together():
    refuses(ANCMM(3, graph_update="exact", alpha="row"), X, "Eq. (13)", "one alpha")
    refuses(ANCMM(3, n_neighbors=10, candidates=5), X, "candidates=5", "n_neighbors=10")
    model = ANCMM(3, metric="affinity", alpha=2.0)
    refuses(model, rbf_kernel(X), "alpha=2.0", "Leave it out")


def test_numpy_numbers_are_numbers():
    model = ANCMM(np.int64(3), n_neighbors=np.int32(9), alpha=np.float32(2.0))
    assert model.fit(X).n_components_ == 3


# kinds of data


@pytest.mark.parametrize(
    "kind",
    [
        np.asfortranarray,
        lambda A: np.repeat(A, 2, axis=1)[:, ::2],
        lambda A: A.tolist(),
        csr_array,
        csc_matrix,
        coo_array,
        csr_matrix,
    ],
)
@pytest.mark.parametrize("make", [ANCMM, lambda c: ANCMM.paper(c, 9)])
def test_every_kind_of_array(kind, make):
    model = make(3).fit(kind(X))
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    assert (model.predict(kind(X)) == model.labels_).all()


def test_single_precision_and_integers():
    wanted = ANCMM(3).fit(X).labels_
    single = ANCMM(3).fit(X.astype(np.float32))
    assert (single.labels_ == wanted).all()
    whole = np.round(10 * X).astype(int)
    for data in (whole, whole.astype(np.int16), whole.astype(float)):
        assert adjusted_rand_score(ANCMM(3).fit(data).labels_, wanted) == 1.0


def test_read_only_data_are_left_alone():
    for data, model in (
        (X, ANCMM(3)),
        (X, ANCMM.paper(3, 9)),
        (pairwise_distances(X), ANCMM(3, metric="precomputed", self_neighbor=False)),
        (rbf_kernel(X), ANCMM(3, metric="affinity")),
        (csr_array(X), ANCMM(3, metric="cosine")),
    ):
        given = data.copy()
        (given.data if hasattr(given, "indptr") else given).flags.writeable = False
        model.fit(given).predict(given)
        assert (given != data).sum() == 0


def test_frames_keep_their_names():
    need("pandas")
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ANCMM(3).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (model.predict(frame) == model.labels_).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    D = pd.DataFrame(pairwise_distances(X))
    ANCMM(3, metric="precomputed").fit(D)
    D.index = D.index + 1
    refuses_frame = ANCMM(3, metric="precomputed")
    with pytest.raises(InputError, match="index and the columns"):
        refuses_frame.fit(D)


# metrics


@pytest.mark.parametrize("metric", ["sqeuclidean", "l2"])
def test_the_square_is_taken_once(metric):
    one, two = plain(3).fit(X), plain(3, metric=metric).fit(X)
    np.testing.assert_allclose(one.alpha_, two.alpha_)
    D = plain(3, metric="precomputed").fit(pairwise_distances(X))
    np.testing.assert_allclose(one.alpha_, D.alpha_)
    assert (one.labels_ == D.labels_).all()


@pytest.mark.parametrize("candidates", ["auto", None])
def test_the_cost_of_the_cosine_and_of_other_metrics(candidates):
    cosines = pairwise_distances(X + 20, metric="cosine")
    one = plain(3, metric="cosine", candidates=candidates, max_iter=1)
    two = plain(3, metric="precomputed", candidates=candidates, max_iter=1)
    for model, data in ((one, X + 20), (two, np.sqrt(2 * cosines))):
        with pytest.warns(ConvergenceWarning):
            model.fit(data)
    np.testing.assert_allclose(one.alpha_, two.alpha_, rtol=1e-6)
    street = plain(3, metric="manhattan", candidates=candidates).fit(X)
    given = plain(3, metric="precomputed", candidates=candidates)
    given.fit(pairwise_distances(X, metric="manhattan"))
    np.testing.assert_allclose(street.alpha_, given.alpha_)
    called = plain(3, metric=lambda a, b: np.abs(a - b).sum(), candidates=candidates)
    np.testing.assert_allclose(called.fit(X).alpha_, given.alpha_)


def test_a_metric_that_is_no_distance():
    model = ANCMM.paper(3, 9).set_params(metric=lambda a, b: a[0] + 10)
    refuses(model, X, "is no distance", "symmetric")
    model.set_params(metric=lambda a, b: np.nan)
    refuses(model, X, "is no distance")


def test_the_cosine_of_a_zero_row():
    data = X.copy()
    data[7] = 0
    refuses(ANCMM(3, metric="cosine"), data, "no direction", "7")


def test_precomputed_distances_that_are_none():
    D = pairwise_distances(X)
    refuses(ANCMM(3, metric="precomputed"), X, "shape (90, 3)", "square")
    refuses(ANCMM(3, metric="precomputed"), -D, "Negative values")
    bad = D.copy()
    bad[2, 5] += 1
    with pytest.raises(NotSymmetricError, match=r"X\[2, 5\]"):
        ANCMM(3, metric="precomputed").fit(bad)
    refuses(ANCMM(3, metric="precomputed"), rbf_kernel(X), 'metric="affinity"')


def test_a_table_of_neighbors_as_scikit_learn_makes_it():
    moons, y = make_moons(300, noise=0.05, random_state=0)
    wanted = ANCMM(2, n_neighbors=12).fit(moons)
    for kind in (csr_matrix, csr_array, coo_array, csc_matrix):
        table = KNeighborsTransformer(n_neighbors=12).fit_transform(moons)
        model = ANCMM(2, n_neighbors=12, metric="precomputed").fit(kind(table))
        np.testing.assert_allclose(model.alpha_, wanted.alpha_)
        assert (model.labels_ == wanted.labels_).all()
    pipeline = make_pipeline(
        KNeighborsTransformer(n_neighbors=12), ANCMM(2, metric="precomputed")
    )
    assert adjusted_rand_score(y, pipeline.fit_predict(moons)) == 1.0
    assert (pipeline.predict(moons) == pipeline[-1].labels_).all()


def test_rows_of_a_table_may_differ_in_length(rng):
    D = pairwise_distances(X)
    near = kneighbors_graph(X, 14).toarray() > 0
    near |= rng.random(near.shape) < 0.1
    near[4] = True  # a hub
    table = csr_array(np.where(near, D, 0))
    model = ANCMM(3, n_neighbors=10, metric="precomputed").fit(table)
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    assert (model.predict(table) == model.labels_).all()
    few = table.copy()
    few.data[few.indptr[8] + 4 : few.indptr[9]] = -1
    few = csr_array((few.data[few.data >= 0], *_kept(few)), shape=few.shape)
    refuses(ANCMM(3, n_neighbors=10, metric="precomputed"), few, "point 8 has 5")


def _kept(S):
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))[S.data >= 0]
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=S.shape[0]))])
    return S.indices[S.data >= 0], ends


def test_a_stored_zero_is_a_duplicate_and_a_missing_entry_no_candidate():
    twice = np.repeat(X, 2, axis=0)
    table = KNeighborsTransformer(n_neighbors=20).fit_transform(twice)
    assert (table.data == 0).sum() >= 360
    model = ANCMM(3, n_neighbors=20, metric="precomputed").fit(table)
    assert (model.labels_[::2] == model.labels_[1::2]).all()
    S = model.affinity_matrix_.tocoo()
    allowed = set(zip(*table.nonzero(), strict=True))
    for i, j in zip(*S.coords, strict=True):
        same = i // 2 == j // 2
        assert same or (i, j) in allowed or (j, i) in allowed


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("loops", [True, False, "lazy"])
def test_a_ready_graph(kind, loops):
    moons, y = make_moons(200, noise=0.05, random_state=0)
    A = kneighbors_graph(moons, 12, include_self=True).toarray()
    A = (A + A.T) / 2
    model = ANCMM(2, metric="affinity", self_neighbor=loops).fit(kind(A))
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.n_neighbors_ is None
    assert (model.affinity_matrix_.toarray()[A == 0] == 0).all()
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)
    assert (model.predict(kind(A)) == model.labels_).all()


def test_affinities_that_are_none():
    refuses(ANCMM(3, metric="affinity"), X - X.min(), "shape (90, 3)", "square")
    refuses(ANCMM(3, metric="affinity"), -rbf_kernel(X), "Negative values")
    A = rbf_kernel(X)
    A[0, 1] = 0.9
    refuses(ANCMM(3, metric="affinity"), A, "not symmetric")


def test_a_graph_with_a_hub_is_not_made_square():
    n = 3000
    ring = np.arange(n)
    i = np.concatenate([ring, ring, np.zeros(n, dtype=int)])
    j = np.concatenate([ring, (ring + 1) % n, ring])
    A = csr_array((np.ones(3 * n), (i, j)), shape=(n, n))
    model = ANCMM(2, metric="affinity")
    problem = Trials(model, Host()).problem(csr_array(A + A.T), 2)
    assert sum(part.values.size for part in problem.costs.parts) < 12 * n
    assert sum(costs.size for _, _, costs in problem.links.tables) < 12 * n


# new points


def test_new_points_and_old_ones():
    model = ANCMM(3).fit(X)
    assert (model.predict(X) == model.labels_).all()
    new, _ = make_blobs(60, 3, centers=3, cluster_std=1.0, random_state=5)
    new = new + 1e-3
    P = model.predict_proba(new)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert P.shape == (60, 3)
    assert (model.predict(new) == P.argmax(axis=1)).all()
    near = ((new[:, None] - X[None]) ** 2).sum(-1).argmin(axis=1)
    assert (model.predict(new) == model.labels_[near]).mean() > 0.95


def test_prediction_from_distances_is_that_from_points():
    model = ANCMM(3).fit(X)
    given = ANCMM(3, metric="precomputed").fit(pairwise_distances(X))
    new = X[::3] + 0.5
    D = pairwise_distances(new, X)
    np.testing.assert_allclose(given.predict_proba(D), model.predict_proba(new))
    with pytest.raises(ValueError, match="90 features"):
        given.predict(D[:, :5])
    empty = csr_array((3, 90))
    with pytest.raises(InputError, match="no candidates"):
        given.predict(empty)
    graph = ANCMM(3, metric="affinity").fit(rbf_kernel(X))
    with pytest.raises(InputError, match="without an affinity"):
        graph.predict(np.zeros((1, 90)))


# support, interruption, progress


def test_without_loops_support_can_be_lost():
    rng = np.random.default_rng(0)
    hubs = rng.standard_normal((150, 100))  # few points are neighbors of many
    model = plain(2, n_neighbors=2, self_neighbor=False, max_iter=3)
    with pytest.warns(UserWarning, match="no total support") as said:
        model.fit(hubs)
    assert any("Theorem 2" in str(one.message) for one in said)
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)
    assert any(h["shift"] == 0.5 for h in model.history_)
    with pytest.raises(SupportError, match="self_neighbor=True"):
        model.set_params(graph_update="exact").fit(hubs)
    lazy = plain(3, n_neighbors=10, self_neighbor="lazy").fit(X)
    assert all(h["shift"] == 0.1 for h in lazy.history_)


def test_another_number_of_components_is_said():
    with pytest.warns(ConvergenceWarning, match="3 components, not n_clusters=2"):
        model = plain(2, n_neighbors=5).fit(X)
    assert not model.converged_
    assert model.n_components_ == model.n_clusters_ == 3
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        plain(8, max_iter=2, n_neighbors=20).fit(X)


def test_an_interrupt_leaves_no_broken_state(monkeypatch):
    model = ANCMM(3, n_neighbors=40).fit(X)

    def stop(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bistochastic.cluster.loop.ky_fan", stop)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(n_clusters=4).fit(X[:80, :2])
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "labels_")
    model.set_params(n_clusters=3).fit(X)
    assert adjusted_rand_score(Y, model.labels_) == 1.0


def test_progress_is_printed(capsys):
    model = ANCMM(3, n_neighbors=40, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[-1].startswith(f"[ANCMM] step {model.n_iter_}: penalty")
    assert "3 components" in lines[-1]


def test_callbacks_see_every_step_and_can_stop_the_loop():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brought callbacks")

    class Watch:
        def __init__(self, stop_at=None):
            self.stop_at = stop_at
            self.seen = []

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context):
            self.down = True

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.last = context.task_name
            if context.task_name == "step":
                self.seen.append(fitted_estimator.predict(X[:5]))
                return len(self.seen) == self.stop_at
            return False

    watch = Watch()
    model = plain(3, n_neighbors=40).set_callbacks(watch).fit(X)
    assert len(watch.seen) == model.n_iter_ > 2
    assert (watch.seen[-1] == model.labels_[:5]).all()
    assert watch.down
    assert watch.last == "fit"
    watch = Watch()
    ANCMM(90).set_callbacks(watch).fit(X)
    assert len(watch.seen) == 1
    watch = Watch(stop_at=2)
    with pytest.warns(ConvergenceWarning):
        model = plain(3, n_neighbors=40).set_callbacks(watch).fit(X)
    assert model.n_iter_ == len(watch.seen) == 2


# found by people who tried to break it


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("d", [2, 20])
def test_clusters_far_apart_keep_the_digits_of_their_distances(kind, d, rng):
    moons, y = make_moons(200, noise=0.05, random_state=0)
    turned = moons @ np.linalg.qr(rng.standard_normal((d, d)))[0][:2]
    far = kind(np.concatenate([turned, turned + 1e8]))
    model = ANCMM(4).fit(far)
    assert adjusted_rand_score(np.concatenate([y, y + 2]), model.labels_) == 1.0
    assert (model.predict(far) == model.labels_).all()


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64])
def test_numbers_of_few_bits_do_not_overflow(kind):
    wanted = plain(3, n_neighbors=40).fit(X)
    model = plain(kind(3), n_neighbors=kind(40), max_iter=kind(50)).fit(X)
    assert (model.labels_ == wanted.labels_).all()
    with pytest.warns(ConvergenceWarning, match="not n_clusters=8"):
        plain(kind(8), max_iter=kind(2), n_neighbors=kind(20)).fit(X)
    most = plain(kind(1), n_neighbors=kind(127), candidates=kind(127))
    most.fit(np.repeat(X, 2, axis=0) + np.linspace(0, 1e-3, 180)[:, None])
    assert most.n_neighbors_ == 127


def test_an_outlier_leaves_the_alpha_of_other_rows_alone(recwarn):
    far = np.concatenate([X, [[1e7] * 3]])
    alone = plain(3, alpha="row", max_iter=1).fit(X).alpha_
    with_it = plain(3, alpha="row", max_iter=1).fit(far).alpha_
    np.testing.assert_allclose(with_it[:-1], alone, rtol=1e-6)


def test_the_approximation_needs_the_data_of_fit_and_no_shift():
    model = plain(3).fit(X)
    with pytest.raises(InputError, match="50 rows"):
        model.approximation(X[:50])
    lazy = plain(3, self_neighbor="lazy").fit(X)
    with pytest.raises(InputError, match="comparable"):
        lazy.approximation(X)


@pytest.mark.parametrize("metric", ["precomputed", "affinity"])
def test_unsorted_and_read_only_tables_stay_as_they_are(metric, rng):
    A = csr_array(pairwise_distances(X) if metric == "precomputed" else rbf_kernel(X))
    for row in range(90):  # columns in another order
        part = slice(A.indptr[row], A.indptr[row + 1])
        order = rng.permutation(A.indices[part].size)
        A.indices[part], A.data[part] = A.indices[part][order], A.data[part][order]
    A = csr_array((A.data, A.indices, A.indptr), shape=A.shape)
    before = A.indices.copy()
    for array in (A.indices, A.indptr, A.data):
        array.flags.writeable = False
    model = ANCMM(3, metric=metric).fit(A)
    model.predict(A)
    np.testing.assert_array_equal(A.indices, before)
    assert adjusted_rand_score(Y, model.labels_) == 1.0


def test_the_exact_update_says_what_no_digits_are_left_for():
    far = np.concatenate([X, [[1e20] * 3]])
    model = plain(3, graph_update="exact", self_neighbor=False)
    refuses(model, far, "point 90", "self_neighbor=True")
    model = plain(3, n_neighbors=40, graph_update="exact", penalty=1e20, max_iter=5)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)


def test_numbers_out_of_proportion():
    for alpha in (5e-324, 1e-200, 1.7e308):
        refuses(plain(3, alpha=alpha), X, "out of all proportion", "Eq. (19)")
    refuses(plain(3, penalty=1e200), X, "out of all proportion")
    refuses(ANCMM(3, penalty=1e200), X, "out of all proportion")
    refuses(plain(3, penalty=10**400), X, "positive, finite")
    refuses(plain(3), X * 1e-200, "so close together")
    refuses(plain(3, tol=None), X, "between 0 and 1")
    refuses(plain(3, n_jobs=0), X, "n_jobs=0")
    refuses(plain(3, verbose=-1), X, "verbose=-1")
    refuses(plain(3, self_neighbor=np.array([1, 2])), X, "self_neighbor")


def test_equal_distances_are_not_called_duplicates():
    model = plain(3, self_neighbor=False)
    refuses(model, np.eye(30), "cost the same", "pass a number as alpha")


@pytest.mark.parametrize("size", [1e-160, 1e-20, 1e200])
def test_the_cosine_does_not_see_lengths(size, recwarn):
    wanted = ANCMM(3, metric="cosine").fit(X).labels_
    assert (ANCMM(3, metric="cosine").fit(X * size).labels_ == wanted).all()


def test_a_row_of_a_table_with_too_few_candidates_is_named():
    table = csr_array(pairwise_distances(X)).tolil()
    table[7] = 0
    table[7, 3] = 1.0
    refuses(ANCMM(3, metric="precomputed"), table.tocsr(), "point 7 has 2 candidates")


def test_metrics_of_truth_values(recwarn):
    flags = np.concatenate(
        [X > q for q in np.quantile(X, [0.2, 0.4, 0.6, 0.8])], axis=1
    )
    for candidates in ("auto", None):
        model = ANCMM(2, metric="jaccard", candidates=candidates, n_neighbors=60)
        model.fit(flags)
        assert (model.predict(flags) == model.labels_).all()
    assert not any("boolean" in str(one.message) for one in recwarn)
    refuses(ANCMM(2, metric="yule"), flags, "metric")


def test_warnings_give_advice_that_can_be_followed():
    with pytest.warns(ConvergenceWarning, match="graph that was given has 30"):
        plain(3, metric="affinity").fit(np.eye(30))
    with pytest.warns(ConvergenceWarning, match="smaller penalty"):
        plain(2, n_neighbors=40, penalty=1e15, max_iter=5).fit(X)
    with pytest.warns(ConvergenceWarning, match="two points or more"):
        plain(60, self_neighbor="lazy", n_neighbors=20, max_iter=9).fit(X)
    chain = np.diag(np.ones(8), 1)
    with pytest.warns(UserWarning, match="no total support"):
        plain(2, metric="affinity").fit(chain + chain.T)


@pytest.mark.parametrize("update", ["marcus", "exact"])
def test_a_given_graph_without_loops(update, recwarn):
    moons, y = make_moons(200, noise=0.05, random_state=0)
    A = kneighbors_graph(moons, 12).toarray()
    A = np.maximum(A, A.T)
    for loops in (True, False, "lazy"):
        model = ANCMM(2, metric="affinity", self_neighbor=loops, graph_update=update)
        model.fit(A)
        np.testing.assert_allclose(model.affinity_matrix_.sum(axis=1), 1, atol=1e-8)
        assert adjusted_rand_score(y, model.labels_) == 1.0
