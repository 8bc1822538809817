"""marcus_mapping as a user meets it."""

import pickle
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag
from sklearn.exceptions import ConvergenceWarning

from bistochastic import (
    Status,
    entropic_plan,
    marcus_mapping,
    project_doubly_stochastic,
)
from bistochastic.core.errors import InputError, SupportError
from bistochastic.datasets.toy import planted_graph
from matrices import EQUATION_3, PATH, SUPPORT_ONLY, row_error, sparse_symmetric


def test_the_result_says_how_it_went(rng):
    S = sparse_symmetric(rng, 30)
    result = marcus_mapping(S, tol=1e-9)
    assert result.converged
    assert result.status is Status.CONVERGED
    assert result.residual == result.residuals[-1] <= 1e-9
    assert result.n_iter == len(result.residuals)
    assert result.n_products >= result.n_iter
    assert result.support.kind == "total"
    assert result.dropped.size == 0
    assert result.shift == 0.0
    u = result.scaling
    np.testing.assert_allclose(u[:, None] * S * u, result.matrix, rtol=1e-12)
    assert str(result).startswith("Converged: ")
    assert "CONVERGED, residual=" in repr(result)
    assert len(repr(result)) < 300


@pytest.mark.parametrize("S", [SUPPORT_ONLY, np.diag([1.0, 0.0])])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_without_total_support_the_default_raises_and_names_the_cure(S, make):
    with pytest.raises(
        SupportError, match=r'unsupported="prune".*"regularize"'
    ) as caught:
        marcus_mapping(make(S))
    assert caught.value.report.kind in ("partial", "none")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.report.kind == caught.value.report.kind


def test_prune_drops_the_unsupported_entries():
    result = marcus_mapping(SUPPORT_ONLY, unsupported="prune")
    np.testing.assert_array_equal(result.matrix, [[0, 1], [1, 0]])
    assert [list(part) for part in result.support.unsupported] == [[0], [0]]
    assert result.dropped.size == 0
    pruned = marcus_mapping(sp.csr_array(SUPPORT_ONLY), unsupported="prune").matrix
    assert pruned.nnz == 2


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_prune_leaves_zero_rows_zero_and_lists_them(make, rng):
    S = sparse_symmetric(rng, 12)
    S[[3, 7]] = S[:, [3, 7]] = 0
    initial = np.ones(12)
    initial[[3, 7]] = 0
    for settings in ({}, {"initial": initial}):
        result = marcus_mapping(make(S), unsupported="prune", **settings)
        assert list(result.dropped) == [3, 7]
        assert (result.scaling[[3, 7]] == 0).all()
        sums = np.asarray(result.matrix.sum(axis=1)).ravel()
        np.testing.assert_array_equal(sums[[3, 7]], 0)
        np.testing.assert_allclose(np.delete(sums, [3, 7]), 1, atol=1e-10)
        assert "2 rows left zero: 3, 7" in str(result)


def test_prune_drops_crowded_rows_and_keeps_the_rest():
    S = np.zeros((6, 6))
    S[:3, :3] = PATH
    S[3:, 3:] = EQUATION_3
    S[0, 5] = S[5, 0] = 1
    result = marcus_mapping(S, unsupported="prune")
    assert list(result.dropped) == [3, 4, 5]
    assert row_error(result.matrix[:3, :3]) < 1e-10
    assert (result.matrix[3:] == 0).all()


@pytest.mark.parametrize("cure", ["raise", "prune"])
@pytest.mark.parametrize("S", [EQUATION_3, np.zeros((2, 2))])
def test_no_one_is_sent_to_prune_where_nothing_would_be_left(S, cure):
    with pytest.raises(SupportError, match="left after pruning") as caught:
        marcus_mapping(S, unsupported=cure)
    assert 'unsupported="prune"' not in str(caught.value)


def test_a_shift_below_all_numbers_is_not_called_nothing():
    S = 5e-324 * (EQUATION_3 > 0)
    assert marcus_mapping(S, unsupported="regularize").shift > 0


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_regularize_adds_a_stated_multiple_of_the_identity(make):
    result = marcus_mapping(make(EQUATION_3), unsupported="regularize")
    assert result.shift == pytest.approx(0.1 * EQUATION_3.sum() / 3)
    shifted = marcus_mapping(EQUATION_3 + result.shift * np.eye(3)).matrix
    matrix = result.matrix.toarray() if sp.issparse(result.matrix) else result.matrix
    np.testing.assert_allclose(matrix, shifted, atol=1e-9)
    assert "was added to the diagonal" in str(result)


def test_cures_change_nothing_where_total_support_holds():
    for cure in ("prune", "regularize"):
        result = marcus_mapping(PATH, unsupported=cure)
        assert result.shift == 0.0
        assert result.dropped.size == 0
        np.testing.assert_array_equal(result.matrix, marcus_mapping(PATH).matrix)


def test_the_shift_is_stated_in_the_units_of_S():
    result = marcus_mapping(1e-200 * EQUATION_3, unsupported="regularize")
    assert result.shift == pytest.approx(1e-200 * 0.4 / 3)


def test_marginals_are_the_row_sums(rng):
    S = sparse_symmetric(rng, 20)
    m = rng.uniform(0.5, 2000, 20)
    for make in (np.asarray, sp.csr_array):
        M = marcus_mapping(make(S), marginals=m).matrix
        np.testing.assert_allclose(M.sum(axis=1), m, rtol=1e-9)
    twice = marcus_mapping(S, marginals=np.full(20, 2.0)).matrix
    np.testing.assert_allclose(twice, 2 * marcus_mapping(S).matrix, rtol=1e-6)


def test_marginals_decide_where_the_diagonal_has_zeros():
    reached = marcus_mapping(SUPPORT_ONLY, marginals=[2.0, 1.0])
    np.testing.assert_allclose(reached.matrix, SUPPORT_ONLY, atol=1e-9)
    with pytest.warns(ConvergenceWarning, match="no matrix with this pattern"):
        missed = marcus_mapping([[0.0, 1], [1, 0]], marginals=[1.0, 2.0])
    assert not missed.converged
    assert missed.n_products < 10_000
    S = np.diag([1.0, 0.0, 2.0])
    with pytest.raises(SupportError, match=r"1 row is zero: 1"):
        marcus_mapping(S, marginals=[1.0, 2.0, 3.0])
    pruned = marcus_mapping(S, marginals=[1.0, 2.0, 3.0], unsupported="prune")
    np.testing.assert_allclose(np.diag(pruned.matrix), [1, 0, 3])


@pytest.mark.parametrize("method", ["auto", "newton", "damped", "alternating"])
@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-6])
def test_the_residual_is_that_of_the_matrix(method, tol):
    # on weakly linked clusters D1 S D2 can be right while DSD is not
    S, _ = planted_graph(400, 5, bridges=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = marcus_mapping(S, method=method, tol=tol, max_iter=3000)
    error = np.abs(result.matrix.sum(axis=1) - 1).max()
    assert result.residual == pytest.approx(error, rel=1e-6, abs=1e-13)
    assert result.converged == (error <= tol)


@pytest.mark.parametrize("far", [200, 300, 700])
@pytest.mark.parametrize("n", [3, 5, 11])
def test_odd_cycles_converge_from_far_away(n, far):
    cycle = np.roll(np.eye(n), 1, axis=0)
    start = np.exp(far * (-1.0) ** np.arange(n))
    for method in ("auto", "newton"):
        result = marcus_mapping(cycle + cycle.T, method=method, initial=start)
        assert result.converged
        np.testing.assert_allclose(result.matrix, (cycle + cycle.T) / 2, atol=1e-9)


def test_a_warm_start_saves_products(rng):
    S = sparse_symmetric(rng, 40)
    first = marcus_mapping(S)
    S2 = S * (1 + 1e-6 * (S > S.mean()))
    again = marcus_mapping(S2, initial=first.scaling)
    assert again.converged
    assert again.n_products < marcus_mapping(S2).n_products


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "sinkhorn"}, "method='sinkhorn': method must be one of 'auto', "),
        ({"method": None}, "method=None"),
        ({"method": ["auto"]}, "method must be one of"),
        ({"unsupported": "ignore"}, "unsupported must be one of 'raise', "),
        ({"tol": 0}, "tol=0: tol must lie strictly between 0 and 1"),
        ({"tol": -1e-3}, "tol must lie"),
        ({"tol": np.nan}, "tol must lie"),
        ({"tol": "1e-3"}, "tol must lie"),
        ({"max_iter": 0}, "max_iter=0: max_iter must be a whole number >= 1"),
        ({"max_iter": 2.5}, "max_iter must be"),
        ({"initial": [1, 2]}, "initial must be a vector of 3 positive numbers"),
        ({"initial": [1, 0, 2]}, r"initial\[1\] is 0 \(1 such"),
        ({"initial": [1, np.nan, 2]}, r"initial\[1\] is nan"),
        ({"initial": "abc"}, "initial must be a vector"),
        ({"initial": [1, 2j, 3]}, "initial must be a vector"),
        ({"marginals": [10**400, 1, 1]}, "marginals must be a vector"),
        ({"marginals": [1, -1, 2]}, r"marginals\[1\] is -1"),
        ({"marginals": [[1, 1, 2]]}, "marginals must be a vector of 3"),
        ({"marginals": [1, np.inf, 2]}, r"marginals\[1\] is inf"),
    ],
)
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(InputError, match=words):
        marcus_mapping(PATH, **settings)


def test_numpy_scalars_are_settings_too():
    result = marcus_mapping(PATH, tol=np.float32(1e-6), max_iter=np.int64(50))
    assert result.converged


@pytest.mark.parametrize(
    ("method", "settings", "status"),
    [
        ("fixed_point", {}, Status.CYCLED),
        ("alternating", {"max_iter": 2}, Status.LIMIT),
        ("auto", {"max_iter": 2}, Status.LIMIT),
        ("damped", {"tol": 1e-20}, Status.STALLED),
        ("newton", {"tol": 1e-20}, Status.STALLED),
        ("auto", {"tol": 1e-20}, Status.STALLED),
    ],
)
def test_what_does_not_converge_warns_and_says_how_it_ended(method, settings, status):
    S = sparse_symmetric(np.random.default_rng(0), 30)
    with pytest.warns(ConvergenceWarning, match="row sums are not within") as caught:
        result = marcus_mapping(S, method=method, **settings)
    assert result.status is status
    assert not result.converged
    assert result.n_products < 2000
    assert caught[0].filename == __file__
    assert str(status).capitalize()[1:] in str(caught[0].message)


def test_overflow_is_a_status_not_a_crash():
    S = np.array([[1e-320, 1e-310], [1e-310, 1e250]])
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        result = marcus_mapping(S, method="fixed_point")
    assert isinstance(result.status, Status)
    assert np.isfinite(result.scaling).all()


def test_components_of_different_scale_are_scaled_apart():
    blocks = [PATH, 1e-90 * PATH, 1e90 * PATH]
    M = marcus_mapping(sp.csr_array(block_diag(*blocks))).matrix
    expected = block_diag(*[marcus_mapping(PATH).matrix] * 3)
    np.testing.assert_allclose(M.toarray(), expected, atol=1e-9)


def test_the_same_input_gives_the_same_bits():
    S, _ = planted_graph(12_000, 3)
    one, two = marcus_mapping(S), marcus_mapping(S)
    np.testing.assert_array_equal(one.matrix.data, two.matrix.data)


@pytest.mark.parametrize("method", ["auto", "newton", "damped"])
def test_a_large_sparse_graph_is_never_made_dense(method):
    S, _ = planted_graph(20_000, 5)
    marcus_mapping(S, method=method)  # compilers allocate too
    size = S.data.nbytes + S.indices.nbytes + S.indptr.nbytes
    tracemalloc.start()
    marcus_mapping(S, method=method)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * size  # the result, and twice the input beyond it


def test_many_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    S, _ = planted_graph(12_000, 3)
    expected = marcus_mapping(S).matrix.data
    with ThreadPoolExecutor(4) as pool:
        for M in pool.map(lambda _: marcus_mapping(S).matrix, range(8)):
            np.testing.assert_array_equal(M.data, expected)


FORKED = """
import multiprocessing as mp
from bistochastic import marcus_mapping
from bistochastic.datasets.toy import planted_graph

S, _ = planted_graph(12_000, 3)

def work(_):
    return marcus_mapping(S).residual

marcus_mapping(S)
with mp.get_context("fork").Pool(2) as pool:
    print(pool.map_async(work, range(4)).get(timeout=120))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_process_can_scale_after_its_parent_did():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("e-") == 4


def test_marginals_out_of_reach_leave_finite_numbers(rng):
    R = rng.random((50, 40)) < 0.1
    R[:40] |= np.eye(40, dtype=bool)
    R[40:, 0] = True
    S = np.block([[np.zeros((50, 50)), R], [R.T, np.zeros((40, 40))]])
    m = np.concatenate([np.full(50, 4.0), np.full(40, 0.1)])
    with pytest.warns(ConvergenceWarning, match="these marginals"):
        result = marcus_mapping(S, marginals=m)
    assert np.isfinite(result.matrix).all()
    off = np.abs(result.matrix.sum(axis=1) / m - 1).max()
    np.testing.assert_allclose(off, result.residual, rtol=1e-6)


@pytest.mark.parametrize(
    "function", [marcus_mapping, entropic_plan, project_doubly_stochastic]
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix])
@pytest.mark.parametrize("tol", [None, 1e-6, 1e-10])
def test_the_residual_is_that_of_what_is_returned_in_single_precision_too(
    function, make, tol, rng
):
    S = make(sparse_symmetric(rng, 60).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = function(S, tol=tol)
    M = result.plan if function is entropic_plan else result.matrix
    assert M.dtype == np.float32
    M = M.toarray() if sp.issparse(M) else M
    measured = row_error(M.astype(np.float64))
    assert result.residual == pytest.approx(measured, rel=1e-6)
    assert result.converged == (measured <= (tol or 1e-5))
