"""The nearest doubly stochastic matrix: KKT conditions and independent solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from bistochastic import (
    InputError,
    NotSymmetricError,
    Status,
    SupportError,
    project_doubly_stochastic,
)
from bistochastic.scaling import dual, frobenius
from matrices import as_numpy, row_error


def symmetric(rng, n, scale=1.0):
    A = scale * rng.standard_normal((n, n))
    return (A + A.T) / 2


def on_pattern(K, mask):
    """Return K as a CSR array that stores the entries of the mask, zeros included."""
    rows, columns = np.nonzero(mask)
    return csr_array((K[rows, columns], (rows, columns)), shape=K.shape)


def random_mask(rng, n, density):
    mask = rng.random((n, n)) < density
    return mask | mask.T | np.eye(n, dtype=bool)


def dykstra(K, mask, passes=20_000):
    """Project stacks of matrices by Dykstra's algorithm, the independent solver.

    On the row sums by a linear system on each pattern, on the cone with Dykstra's
    correction; the first set is affine and needs none.
    """
    n = K.shape[-1]
    degrees = mask.sum(axis=-1)
    system = mask + degrees[..., None] * np.eye(n)
    inverse = np.linalg.pinv(system)
    F, correction = np.where(mask, K, 0.0), np.zeros_like(K)
    for _ in range(passes):
        b = (inverse @ (1 - F.sum(axis=-1))[..., None])[..., 0]
        F = F + mask * (b[..., :, None] + b[..., None, :])
        corrected = F + correction
        F = np.maximum(corrected, 0)
        correction = corrected - F
    return F


def test_200_problems_meet_KKT_and_dykstra_dense_and_sparse(rng):
    for density in (1.0, 0.4):
        K = np.stack([symmetric(rng, 7, rng.uniform(0.1, 2)) for _ in range(100)])
        masks = np.stack([random_mask(rng, 7, density) for _ in range(100)])
        K[::10] *= 1e-3
        theirs = dykstra(K, masks)
        for k, mask, far in zip(K, masks, theirs, strict=True):
            given_k = k if mask.all() else on_pattern(k, mask)
            result = project_doubly_stochastic(given_k, tol=1e-12)
            assert result.converged
            F, a = as_numpy(result.matrix), result.potential
            # stationarity, dual feasibility and complementarity in one, then sums
            wanted = np.where(mask, np.maximum(k + a[:, None] + a[None, :], 0), 0)
            np.testing.assert_allclose(F, wanted, atol=1e-12)
            assert row_error(F) <= 1e-11
            assert (F == F.T).all()
            np.testing.assert_allclose(F, far, atol=2e-7)
            assert abs(result.gap) < 1e-9
            nearer = ((F - k)[mask] ** 2).sum() <= ((far - k)[mask] ** 2).sum() + 1e-6
            assert nearer


def test_a_general_optimizer_finds_the_same(rng):
    K = symmetric(rng, 5)
    upper = np.triu_indices(5)

    def full(x):
        F = np.zeros((5, 5))
        F[upper] = x
        return F + np.triu(F, 1).T

    found = minimize(
        lambda x: ((full(x) - K) ** 2).sum(),
        np.full(15, 0.2),
        bounds=[(0, None)] * 15,
        constraints=[
            {"type": "eq", "fun": lambda x, i=i: full(x)[i].sum() - 1} for i in range(5)
        ],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    ours = project_doubly_stochastic(K).matrix
    np.testing.assert_allclose(ours, full(found.x), atol=1e-6)


def test_every_holder_finds_the_same(hold, rng):
    K = symmetric(rng, 30)
    K[K == 0] = 1e-3
    scores = hold(K)
    done = frobenius.nearest(scores, tol=1e-11)
    F = as_numpy(scores.clipped(1.0, done.value).native())
    expected = project_doubly_stochastic(K).matrix
    np.testing.assert_allclose(F, expected, atol=1e-9)
    F = next(f for f, _ in frobenius.alternating(scores))
    J = np.full((30, 30), 1 / 30)
    eye = np.eye(30)
    published = np.maximum((eye - J) @ K @ (eye - J) + J, 0)
    np.testing.assert_allclose(as_numpy(F.native()), published, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("n", [1, 2, 3, 50, 400])
def test_any_scale_and_size(scale, n, rng):
    result = project_doubly_stochastic(symmetric(rng, n, scale), tol=1e-9)
    assert result.converged
    assert row_error(result.matrix) <= 1.1e-9
    assert result.n_iter < 120


def test_a_doubly_stochastic_matrix_is_its_own_projection(rng):
    F = project_doubly_stochastic(symmetric(rng, 20, 0.1)).matrix
    np.testing.assert_allclose(project_doubly_stochastic(F).matrix, F, atol=1e-9)
    np.testing.assert_allclose(
        project_doubly_stochastic(np.zeros((4, 4))).matrix, np.full((4, 4), 0.25)
    )


def test_it_is_the_exact_step_of_equation_13(rng):
    """No feasible direction lowers sum m_ij s_ij + alpha |S|^2."""
    X = rng.standard_normal((12, 3))
    M = ((X[:, None] - X[None]) ** 2).sum(-1)
    alpha = 0.7
    S = project_doubly_stochastic(-M / (2 * alpha)).matrix

    def objective(S):
        return (M * S).sum() + alpha * (S**2).sum()

    for _ in range(200):
        other = project_doubly_stochastic(symmetric(rng, 12)).matrix
        for t in (1e-6, 1e-3, 1.0):
            assert objective(S + t * (other - S)) >= objective(S) - 1e-9


def test_the_published_alternation_misses_the_nearest(rng):
    K = rbf_kernel(rng.standard_normal((40, 2)))
    nearest = project_doubly_stochastic(K)
    published = project_doubly_stochastic(K, method="alternating")
    assert published.converged
    assert row_error(published.matrix) <= 1e-9
    far, near = (((r.matrix - K) ** 2).sum() / 2 for r in (published, nearest))
    assert far > near + 1e-4
    np.testing.assert_allclose(published.gap, far - near, rtol=1e-6)
    assert abs(nearest.gap) < 1e-9
    distance = ((published.matrix - nearest.matrix) ** 2).sum()
    assert distance <= 2 * published.gap + 1e-9
    assert (published.matrix > 0).sum() > (nearest.matrix > 0).sum()


def test_the_alternation_on_a_pattern_stays_on_it(rng):
    K, mask = symmetric(rng, 12), random_mask(rng, 12, 0.3)
    result = project_doubly_stochastic(on_pattern(K, mask), method="alternating")
    F = as_numpy(result.matrix)
    assert row_error(F) <= 1e-9
    assert (F[~mask] == 0).all()


def test_patterns_without_a_full_diagonal(rng):
    """Partial support is enough: what lacks it is zero in any case."""
    K = csr_array(np.array([[1.0, 1], [1, 0]]))
    result = project_doubly_stochastic(K)
    np.testing.assert_allclose(as_numpy(result.matrix), [[0, 1], [1, 0]], atol=1e-12)
    assert result.support.kind == "partial"
    mask = np.ones((6, 6), dtype=bool)
    np.fill_diagonal(mask, False)
    K = symmetric(rng, 6)
    F = as_numpy(project_doubly_stochastic(on_pattern(K, mask)).matrix)
    np.testing.assert_allclose(F, dykstra(K, mask), atol=1e-7)
    assert np.diag(F).tolist() == [0] * 6


def test_patterns_that_hold_no_doubly_stochastic_matrix(rng):
    star = np.zeros((4, 4), dtype=bool)
    star[0] = star[:, 0] = True
    star[0, 0] = False
    star[3, 3] = True
    K = on_pattern(symmetric(rng, 4), star)
    with pytest.raises(SupportError, match="pattern of K") as error:
        project_doubly_stochastic(K)
    assert error.value.report.kind == "none"
    for method in ("newton", "alternating"):
        isolated = on_pattern(symmetric(rng, 4), np.diag([True, True, True, False]))
        with pytest.raises(SupportError, match="1 row is zero: 3"):
            project_doubly_stochastic(isolated, method=method)
    with pytest.raises(InputError, match="newton"):
        project_doubly_stochastic(isolated, method="alternating", unsupported="prune")
    result = project_doubly_stochastic(isolated, unsupported="prune")
    assert "1 row left zero: 3" in str(result)
    np.testing.assert_allclose(as_numpy(result.matrix), np.diag([1, 1, 1, 0]))
    assert result.dropped.tolist() == [3]
    assert result.potential[3] == -np.inf
    with pytest.raises(SupportError, match="pattern of K"):
        project_doubly_stochastic(csr_array((3, 3)), unsupported="prune")


def test_stored_zeros_belong_to_the_pattern():
    K = coo_array(([2.0, 0, 0, 2], ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2))
    for scale in (1.0, 0.1):
        dense = project_doubly_stochastic(scale * K.toarray()).matrix
        result = project_doubly_stochastic((scale * K).tocsr())
        np.testing.assert_allclose(as_numpy(result.matrix), dense, atol=1e-12)
    one_sided = csr_array(
        (np.array([0.1, 0.0, 0.1]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2)
    )
    F = as_numpy(project_doubly_stochastic(one_sided).matrix)
    np.testing.assert_allclose(F, [[0.55, 0.45], [0.45, 0.55]])


@pytest.mark.parametrize("kind", [csr_matrix, csr_array, coo_array])
def test_sparse_kinds_come_back_without_zeros(kind, rng):
    K = kind(symmetric(rng, 30))
    result = project_doubly_stochastic(K)
    assert type(result.matrix) is kind
    assert (result.matrix.data > 0).all()
    assert result.matrix.nnz < K.nnz


@given(
    hnp.arrays(float, (5, 5), elements=st.floats(-10, 10)),
    st.floats(-100, 100),
)
def test_properties(A, shift):
    K = (A + A.T) / 2
    F = project_doubly_stochastic(K, tol=1e-9).matrix
    assert row_error(F) <= 1e-8
    assert (F >= 0).all()
    moved = project_doubly_stochastic(K + shift, tol=1e-9).matrix
    np.testing.assert_allclose(moved, F, atol=1e-6)  # constants do not matter
    order = [3, 0, 4, 1, 2]
    permuted = project_doubly_stochastic(K[np.ix_(order, order)], tol=1e-9).matrix
    np.testing.assert_allclose(permuted, F[np.ix_(order, order)], atol=1e-6)


def test_bad_input(rng):
    K = symmetric(rng, 5)
    cases = [
        (K[:3], InputError, "K has shape"),
        (np.where(K == K[1, 2], np.nan, K), InputError, r"K\[1, 2\] = nan"),
        (np.where(K == K[1, 2], -np.inf, K), InputError, "left out of a sparse"),
        (np.triu(K), NotSymmetricError, "K is not symmetric"),
        (K * 1j, InputError, "K has element type"),
        (csr_array(np.triu(K, 1) - np.tril(K, -1)), NotSymmetricError, "K"),
    ]
    for bad, error, said in cases:
        with pytest.raises(error, match=said):
            project_doubly_stochastic(bad)
    with pytest.raises(InputError, match="method"):
        project_doubly_stochastic(K, method="dykstra")
    with pytest.raises(InputError, match="unsupported"):
        project_doubly_stochastic(K, unsupported="regularize")
    with pytest.raises(InputError, match="tol"):
        project_doubly_stochastic(K, tol=0)


def test_kinds_of_numbers(rng):
    K = symmetric(rng, 10)
    assert project_doubly_stochastic(K.astype(np.float32)).matrix.dtype == np.float32
    ints = np.rint(3 * K).astype(int)
    F = project_doubly_stochastic(ints).matrix
    assert F.dtype == np.float64
    frozen = K.copy()
    frozen.flags.writeable = False
    project_doubly_stochastic(frozen)
    np.testing.assert_array_equal(frozen, K)
    fortran = project_doubly_stochastic(np.asfortranarray(symmetric(rng, 400)))
    assert fortran.converged


def test_a_limit_is_a_status_and_a_warning(rng):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        result = project_doubly_stochastic(symmetric(rng, 20), max_iter=1)
    assert result.status is Status.LIMIT
    assert "ProjectionResult" in repr(result)
    assert "duality gap" in str(result)
    assert np.isnan(result.gap)


def far_apart(rng, n, low, high):
    A = rng.uniform(low, high, (n, n))
    return 10.0 ** ((A + A.T) / 2)


def test_what_no_double_can_hold_is_refused_at_once(rng):
    """Beyond 2^53 doubles are even, and no sum of them is one."""
    for bad in (
        far_apart(rng, 30, -90, 90),
        np.diag([1e90, 0.0, 0.0]),
        np.full((5, 5), 1e90),
        -np.full((5, 5), 1e16),
        csr_array(np.diag([1.0, 1e17])),
        1e17 * symmetric(rng, 30),
    ):
        for method in ("newton", "alternating"):
            with pytest.raises(InputError, match="lost in rounding"):
                project_doubly_stochastic(bad, method=method)


def test_entries_that_no_plan_uses_may_be_of_any_size(rng):
    K = symmetric(rng, 60)
    forbidden = np.triu(rng.random((60, 60)) < 0.5, 1)
    forbidden |= forbidden.T
    sparse = project_doubly_stochastic(on_pattern(K, ~forbidden))
    for size in (1e6, 1e20, 1e90):
        result = project_doubly_stochastic(np.where(forbidden, -size, K))
        assert result.converged
        assert result.n_iter < 60  # the path leaps where nothing happens
        np.testing.assert_allclose(result.matrix, as_numpy(sparse.matrix), atol=1e-9)
    result = project_doubly_stochastic(-far_apart(rng, 60, -90, 90))
    assert result.converged
    assert result.n_iter < 60


@pytest.mark.parametrize("size", [1e8, 1e12, 8e15])
def test_sizes_that_rounding_blurs_end_soon_and_say_so(size, rng):
    K = symmetric(rng, 100)
    K *= size / np.abs(K).max()
    with pytest.warns(ConvergenceWarning, match="Stalled"):
        result = project_doubly_stochastic(K)
    assert result.residual <= 1e-15 * size
    assert result.n_products < 3000


def test_a_step_that_failed_twice_is_not_searched_again():
    with pytest.warns(ConvergenceWarning, match="Stalled"):
        result = project_doubly_stochastic(np.full((3, 3), 1e10))
    assert result.n_products < 300  # and not 40 for each of 30


def test_the_path_is_bounded_by_work_unless_max_iter_allows_more(rng, monkeypatch):
    K = symmetric(rng, 50, 1e4)
    full = project_doubly_stochastic(K)
    monkeypatch.setattr(dual, "WORK", full.n_products / 2)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        result = project_doubly_stochastic(K)
    assert result.status is Status.LIMIT
    assert result.n_products < full.n_products
    assert project_doubly_stochastic(K, max_iter=200 * 100).converged


def test_the_published_alternation_looks_at_a_bounded_number_of_entries(
    rng, monkeypatch
):
    monkeypatch.setattr(frobenius, "LOOKED", 50 * 30**2)
    monkeypatch.setattr(frobenius, "LEAST", 10)
    K = symmetric(rng, 30)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        result = project_doubly_stochastic(K, method="alternating")
    assert result.n_iter == 50
    assert project_doubly_stochastic(K, method="alternating", max_iter=9999).converged
