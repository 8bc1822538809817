"""Support against brute force, and what it says."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from bistochastic import marcus_mapping, support
from bistochastic.scaling.matching import greedy_matching, maximum_matching
from bistochastic.scaling.support import analyze
from matrices import EQUATION_3, SUPPORT_ONLY, as_numpy


def random_pattern(rng):
    n = int(rng.integers(1, 7))
    upper = np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.9))
    return upper | upper.T


def on_a_diagonal(A):
    """Mark the entries on positive diagonals by trying all permutations, Eq. (4)."""
    n = len(A)
    marked = np.zeros_like(A)
    for permutation in itertools.permutations(range(n)):
        if A[range(n), permutation].all():
            marked[range(n), permutation] = True
    return marked


def violates_hall(A):
    """List every row of a set with fewer columns than rows, and those columns."""
    n = len(A)
    rows, columns = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    worst = 0
    for size in range(1, n + 1):
        for some in itertools.combinations(range(n), size):
            seen = A[list(some)].any(axis=0)
            worst = max(worst, size - seen.sum())
    for size in range(1, n + 1):  # the smallest set of largest deficiency is unique
        for some in itertools.combinations(range(n), size):
            seen = A[list(some)].any(axis=0)
            if worst and size - seen.sum() == worst:
                rows[list(some)] = True
                columns |= seen
                return rows, columns
    return rows, columns


def test_support_equals_brute_force_on_3000_patterns(rng):
    kinds = []
    for _ in range(3000):
        A = random_pattern(rng)
        report = analyze(csr_array(A.astype(float)))
        marked = on_a_diagonal(A)
        if not marked.any():
            kind = "none"
        else:
            kind = "total" if (marked == A).all() else "partial"
        assert report.kind == kind, A
        if kind != "none":
            lost = np.zeros_like(A)
            lost[report.unsupported] = True
            assert (lost == A & ~marked).all(), A
        kinds.append(kind)
    assert min(kinds.count(kind) for kind in ("total", "partial", "none")) > 200


def test_crowded_rows_and_contested_columns_equal_brute_force(rng):
    seen = 0
    for _ in range(1000):
        A = random_pattern(rng)
        report = analyze(csr_array(A.astype(float)))
        if report.kind != "none":
            continue
        rows, columns = violates_hall(A)
        assert set(report.crowded) | set(report.zero_rows) == set(np.flatnonzero(rows))
        assert set(report.contested) == set(np.flatnonzero(columns))
        inside = ~(rows | columns)
        kept = np.zeros_like(A)
        kept[np.ix_(inside, inside)] = on_a_diagonal(A[np.ix_(inside, inside)])
        lost = np.zeros_like(A)
        lost[report.unsupported] = True
        assert (lost == A & ~kept).all(), A
        seen += inside.any() and kept.any()
    assert seen > 20


def test_the_matching_is_as_large_as_scipy_s(rng):
    for _ in range(300):
        n = int(rng.integers(1, 40))
        A = rng.random((n, n)) < rng.uniform(0.25, 1.5) / n
        A = csr_array((A | A.T).astype(float))
        start = greedy_matching(A.indptr, A.indices, A.diagonal() > 0)
        paired = np.flatnonzero(start >= 0)
        assert (start[start[paired]] == paired).all()
        column_of, _ = maximum_matching(A.indptr, A.indices, start)
        rows = np.flatnonzero(column_of >= 0)
        assert np.unique(column_of[rows]).size == rows.size
        assert all(A[i, column_of[i]] > 0 for i in rows)
        theirs = maximum_bipartite_matching(A, perm_type="column")
        assert rows.size == (theirs >= 0).sum()


def test_a_ladder_on_which_scipy_takes_exponential_time_is_searched_at_once():
    # two vertices a level, both joined to both of the next, and a dead end
    levels = 400
    n = 2 * levels
    A = np.zeros((n, n))
    for a in range(0, n - 2, 2):
        A[a : a + 2, a + 2 : a + 4] = 1
    A = A + A.T
    A[-1] = A[:, -1] = 0
    A[-1, -2] = A[-2, -1] = 1
    report = support(A)
    assert report.kind in ("none", "partial")


def test_only_patterns_with_a_zero_on_the_diagonal_are_searched():
    def never(text):
        raise AssertionError("searched")

    loops = csr_array(np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1))
    assert analyze(loops, fast=never).kind == "total"
    loopless = csr_array(np.ones((5, 5)) - np.eye(5))
    assert analyze(loopless, fast=never).kind == "total"


def test_equation_3_has_no_support_and_names_the_rows():
    report = support(EQUATION_3)
    assert report.kind == "none"
    assert list(report.crowded) == [0, 1]
    assert list(report.contested) == [2]
    assert "2 rows (0, 1) have positive entries only in 1 column (2)" in str(report)


def test_support_only_names_the_entry():
    report = support(SUPPORT_ONLY)
    assert report.kind == "partial"
    assert [list(part) for part in report.unsupported] == [[0], [0]]
    assert "(0, 0)" in str(report)


def test_zero_rows_are_named_and_the_rest_is_judged_without_them():
    report = support([[1, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert report.kind == "none"
    assert list(report.zero_rows) == [1]
    assert report.unsupported[0].size == 0
    assert "1 row is zero: 1." in str(report)


def test_a_long_path_of_odd_length_is_diagnosed_in_one_sweep():
    n = 100_001
    report = support(diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]).tocsr())
    assert report.kind == "none"
    assert report.crowded.size == n // 2 + 1
    assert len(str(report)) < 500


def test_support_is_judged_component_by_component():
    S = csr_array(block_diag(SUPPORT_ONLY, np.ones((2, 2)), [[0, 1], [1, 0]]))
    report = support(S)
    assert report.kind == "partial"
    assert [list(part) for part in report.unsupported] == [[0], [0]]


def test_support_is_the_same_on_every_holder(hold, rng):
    from bistochastic.scaling.feasibility import support as diagnose

    for _ in range(50):
        A = random_pattern(rng).astype(float)
        ours, theirs = diagnose(hold(A)), analyze(csr_array(A))
        assert ours.kind == theirs.kind
        for a, b in zip(ours.unsupported, theirs.unsupported, strict=True):
            np.testing.assert_array_equal(a, b)


@given(st.integers(0, 2**32 - 1))
def test_pruning_gives_the_limit_of_algorithm_1(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5))
    A = A + A.T
    if support(A).kind != "partial":
        return
    M = marcus_mapping(A, unsupported="prune").matrix
    d2 = np.ones(n)
    for _ in range(3000):
        d1 = 1 / (A @ d2)
        d2 = 1 / (A @ d1)
    u = np.sqrt(d1 * d2)
    np.testing.assert_allclose(u[:, None] * A * u, as_numpy(M), atol=2e-2)


@pytest.mark.parametrize("kind", ["total", "partial", "none"])
def test_every_report_is_a_sentence(kind):
    S = {"total": np.eye(2), "partial": SUPPORT_ONLY, "none": EQUATION_3}[kind]
    assert str(support(S)).endswith(".")
