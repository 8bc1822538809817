"""The transformer: scikit-learn's contract, new rows, pipelines."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from bistochastic import (
    DoublyStochasticScaler,
    InputError,
    SupportError,
    marcus_mapping,
    project_doubly_stochastic,
)
from bistochastic.scaler import NORMALIZATIONS
from conftest import need
from matrices import as_numpy, row_error, sparse_symmetric


@pytest.mark.filterwarnings("ignore:With S for K. S has no support:UserWarning")
@parametrize_with_checks(
    [DoublyStochasticScaler(), DoublyStochasticScaler("frobenius")]
)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def kernel():
    X, _ = make_blobs(60, centers=3, random_state=0)
    return rbf_kernel(X, gamma=0.1)


@pytest.mark.parametrize("name", NORMALIZATIONS)
@pytest.mark.parametrize("kind", [np.asarray, csr_array, csr_matrix, coo_matrix])
def test_every_normalization_of_every_kind(kernel, name, kind):
    scaler = DoublyStochasticScaler(name, tol=1e-8)
    made = scaler.fit_transform(kind(kernel))
    assert type(made) is type(kind(kernel))
    F = as_numpy(made)
    assert row_error(F) <= 1e-8
    assert (F == F.T).all()
    assert scaler.residual_ <= 1e-8
    assert scaler.n_iter_ >= 1


def test_the_names_stand_for_their_functions(kernel):
    made = {
        name: DoublyStochasticScaler(name).fit_transform(kernel)
        for name in NORMALIZATIONS
    }
    M = marcus_mapping(kernel).matrix
    np.testing.assert_allclose(made["marcus"], M, atol=1e-9)
    np.testing.assert_allclose(made["zass_shashua_2005"], M, atol=1e-8)
    F = project_doubly_stochastic(kernel).matrix
    np.testing.assert_allclose(made["frobenius"], F, atol=1e-9)
    assert np.abs(made["zass_shashua_2006"] - F).max() > 1e-4


@pytest.mark.parametrize("name", ["marcus", "zass_shashua_2005", "frobenius"])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_old_rows_give_the_fitted_matrix_and_new_ones_sum_to_one(name, kind, rng):
    X = rng.standard_normal((80, 2))
    K = rbf_kernel(X)
    K *= K > 0.05
    scaler = DoublyStochasticScaler(name)
    fitted = as_numpy(scaler.fit_transform(kind(K[:60, :60])))
    again = scaler.transform(kind(K[:60, :60]))
    assert type(again) is type(kind(K))
    np.testing.assert_allclose(as_numpy(again), fitted, atol=1e-8)
    new = as_numpy(scaler.transform(kind(K[60:, :60])))
    np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-12)
    assert (new >= 0).all()
    assert (new[K[60:, :60] == 0] == 0).all() or kind is np.asarray


def test_new_rows_of_the_projection_are_the_nearest_on_the_simplex(rng):
    K = rbf_kernel(rng.standard_normal((12, 2)))
    scaler = DoublyStochasticScaler("frobenius").fit(K)
    new = scaler.transform(K[:3] + 0.1)
    wanted = K[:3] + 0.1 + scaler.potential_
    for row, want in zip(new, wanted, strict=True):
        for other in rng.dirichlet(np.ones(12), 200):
            assert ((row - want) ** 2).sum() <= ((other - want) ** 2).sum() + 1e-12


def test_a_pipeline_from_data_to_clusters():
    X, y = make_circles(300, noise=0.04, factor=0.4, random_state=0)
    pipeline = make_pipeline(
        FunctionTransformer(rbf_kernel, kw_args={"gamma": 30.0}),
        DoublyStochasticScaler(),
        SpectralClustering(2, affinity="precomputed", random_state=0),
    )
    assert adjusted_rand_score(y, pipeline.fit_predict(X)) == 1.0


def test_a_pipeline_on_a_sparse_graph():
    X, y = make_blobs(400, centers=3, cluster_std=1.3, random_state=3)
    G = kneighbors_graph(X, 20, include_self=True)
    pipeline = make_pipeline(
        DoublyStochasticScaler(),
        SpectralClustering(3, affinity="precomputed", random_state=0),
    )
    labels = pipeline.fit_predict((G + G.T) / 2)
    assert adjusted_rand_score(y, labels) > 0.9


def test_cross_validation_takes_rows_and_columns(kernel):
    def score(estimator, K, y=None):
        assert K.shape[1] == estimator.n_features_in_ < 60
        return -estimator.residual_

    grid = {"normalization": ["marcus", "frobenius"]}
    search = GridSearchCV(DoublyStochasticScaler(), grid, scoring=score, cv=3)
    search.fit(kernel)
    assert search.best_score_ > -1e-9


def test_zero_rows_are_dropped_or_refused(rng):
    K = sparse_symmetric(rng, 12)
    K[3] = K[:, 3] = 0
    new = csr_array(np.vstack([K[0], np.zeros(12)]))
    for name in ("marcus", "frobenius"):
        strict = DoublyStochasticScaler(name, unsupported="raise")
        with pytest.raises(SupportError, match="1 row is zero: 3"):
            strict.fit(csr_array(K))
        scaler = DoublyStochasticScaler(name)
        with pytest.warns(UserWarning, match=r"Left zero: 1 row and 0 entries"):
            F = as_numpy(scaler.fit_transform(csr_array(K)))
        np.testing.assert_allclose(F.sum(axis=1), np.arange(12) != 3)
        assert scaler.dropped_.tolist() == [3]
        np.testing.assert_allclose(scaler.transform(new).sum(axis=1), [1, 0])
        lone = csr_array(np.eye(12)[3:4])  # near to a dropped sample only
        assert as_numpy(scaler.transform(lone)).sum() == 0
        np.testing.assert_allclose(
            as_numpy(scaler.transform(csr_array(K))), F, atol=1e-9
        )
        with pytest.raises(InputError, match=r"1 row of K \(1\)"):
            strict.fit(np.eye(12)).transform(new)
    with pytest.raises(ValueError, match="Negative values"):
        DoublyStochasticScaler().fit(np.eye(12)).transform(-K)


def test_what_it_refuses(kernel):
    with pytest.raises(InputError, match="'frobenius'"):
        DoublyStochasticScaler("sinkhorn").fit(kernel)
    with pytest.raises(InputError, match="no rule for new rows"):
        DoublyStochasticScaler("zass_shashua_2006").fit(kernel).transform(kernel)
    with pytest.raises(ValueError, match="square"):
        DoublyStochasticScaler().fit(kernel[:10])
    with pytest.raises(ValueError, match="features"):
        DoublyStochasticScaler().fit(kernel).transform(kernel[:, :10])


def test_a_second_fit_forgets_the_first(kernel):
    scaler = DoublyStochasticScaler().fit(kernel)
    scaler.set_params(normalization="frobenius").fit(kernel)
    assert not hasattr(scaler, "scaling_")
    np.testing.assert_allclose(scaler.transform(kernel).sum(axis=1), 1)
    assert clone(scaler).get_params()["normalization"] == "frobenius"


def test_data_frames_in_and_out(kernel):
    need("pandas")
    import pandas as pd

    names = [f"p{i}" for i in range(60)]
    frame = pd.DataFrame(kernel, index=names, columns=names)
    scaler = DoublyStochasticScaler().set_output(transform="pandas").fit(frame)
    assert list(scaler.feature_names_in_) == names
    out = scaler.transform(frame)
    assert list(out.index) == names
    assert out.columns[0] == "doublystochasticscaler0"


def test_new_rows_of_any_size_sum_to_one():
    large = np.array([[1e16, 0, 0], [1e17, 1e17, 0]])
    made = DoublyStochasticScaler("frobenius").fit(np.eye(3)).transform(large)
    np.testing.assert_allclose(made, [[1, 0, 0], [0.5, 0.5, 0]])
    marcus = DoublyStochasticScaler().fit(np.eye(3))
    np.testing.assert_allclose(marcus.transform(np.full((1, 3), 1e-320)), 1 / 3)
    spread = DoublyStochasticScaler().fit(np.diag([1e300, 1e-300]))
    np.testing.assert_allclose(spread.transform([[1e300, 1e300]]), [[1e-300, 1]])
    single = DoublyStochasticScaler().fit(np.eye(3, dtype="f4") * np.float32(1e-38))
    np.testing.assert_allclose(single.transform(np.full((1, 3), 1e30, "f4")), 1 / 3)


@pytest.mark.parametrize("name", ["marcus", "frobenius"])
def test_new_rows_in_any_format_with_duplicates(name):
    scaler = DoublyStochasticScaler(name).fit(np.eye(3))
    twice = coo_matrix(([0.5, 0.5, 0.3], ([0, 0, 0], [1, 1, 0])), shape=(1, 3))
    once = scaler.transform(csr_array(np.array([[0.3, 1.0, 0]]))).toarray()
    np.testing.assert_allclose(scaler.transform(twice).toarray(), once)


@pytest.mark.parametrize("name", ["marcus", "frobenius"])
def test_new_rows_are_left_as_they_were(name):
    scaler = DoublyStochasticScaler(name).fit(np.eye(3))
    parts = np.array([4.0, 1, 4, 1]), np.array([2, 0, 0, 0]), np.array([0, 2, 4])
    K = csr_array(tuple(part.copy() for part in parts), shape=(2, 3))
    scaler.transform(K)
    for part, now in zip(parts, (K.data, K.indices, K.indptr), strict=True):
        np.testing.assert_array_equal(now, part)


def test_tags_follow_the_normalization():
    tags = {
        name: DoublyStochasticScaler(name).__sklearn_tags__().input_tags.positive_only
        for name in NORMALIZATIONS
    }
    assert [name for name, positive in tags.items() if not positive] == [
        "frobenius", "zass_shashua_2006",
    ]  # fmt: skip


def test_a_fit_that_fails_leaves_nothing_half_new(kernel):
    scaler = DoublyStochasticScaler("frobenius").fit(kernel)
    with pytest.raises(ValueError, match="symmetric"):
        scaler.fit(np.triu(np.ones((5, 5))))
    with pytest.raises(NotFittedError):
        scaler.transform(kernel)
    fitted = DoublyStochasticScaler().fit(kernel)
    fitted.set_params(normalization="bogus")
    assert fitted.transform(kernel).shape == (60, 60)
    for bad in ({"normalization": ["a"]}, {"unsupported": "x"}):
        with pytest.raises(InputError, match="must be one of"):
            clone(DoublyStochasticScaler()).set_params(**bad).fit(kernel)


def test_a_frame_whose_labels_differ_is_refused():
    need("pandas")
    import pandas as pd

    frame = pd.DataFrame(np.eye(2), index=["a", "b"], columns=["b", "a"])
    with pytest.raises(InputError, match="differ"):
        DoublyStochasticScaler().fit(frame)
