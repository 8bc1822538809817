"""Bad input gets a sentence that a user can act on; good input of any kind gets in."""

import numpy as np
import pytest
import scipy.sparse as sp

from bistochastic import (
    entropic_plan,
    marcus_mapping,
    project_doubly_stochastic,
    support,
)
from bistochastic.core.errors import (
    InputError,
    InputTypeError,
    NotSymmetricError,
    SupportError,
)
from conftest import need
from matrices import PATH, as_numpy, row_error, sparse_symmetric

FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
KINDS = [f"{form}_{kind}" for form in FORMATS for kind in ("matrix", "array")]
EXPECTED = marcus_mapping(PATH).matrix


def changed(value, i=0, j=1, mirror=True):
    S = PATH.copy()
    S[i, j] = value
    if mirror:
        S[j, i] = value
    return S


BAD = {
    "nan": (changed(np.nan), InputError, r"S\[0, 1\] = nan is not a finite number"),
    "inf": (changed(np.inf), InputError, r"S\[0, 1\] = inf is not a finite number"),
    "minus inf": (changed(-np.inf), InputError, "not a finite number"),
    "negative": (changed(-3.0), InputError, r"S\[0, 1\] = -3 is negative \(2 such"),
    "not square": (np.ones((2, 3)), InputError, r"shape \(2, 3\); a square matrix"),
    "vector": (np.ones(4), InputError, r"shape \(4,\)"),
    "three axes": (np.ones((2, 2, 2)), InputError, r"shape \(2, 2, 2\)"),
    "scalar": (3.0, InputTypeError, "S is a float that does not make a matrix"),
    "none": (None, InputTypeError, "S is a NoneType that"),
    "string": ("S.npy", InputTypeError, "S is a str that"),
    "empty": (np.empty((0, 0)), InputError, "S is empty"),
    "not symmetric": (
        changed(1.5, mirror=False),
        NotSymmetricError,
        r"S\[0, 1\] = 1.5 but S\[1, 0\] = 1, a difference of 0.5.*\(S \+ S.T\) / 2",
    ),
    "complex": (PATH * 1j, InputTypeError, "element type complex128.*real numbers"),
    "object": (PATH.astype(object), InputTypeError, "element type object"),
    "text": (np.full((2, 2), "1"), InputTypeError, "element type <U1"),
    "dates": (np.zeros((2, 2), "datetime64[s]"), InputTypeError, "element type datet"),
    "ragged": ([[1, 2], [3]], InputTypeError, "list of rows of equal length"),
    "np.matrix": (np.asmatrix(PATH), InputTypeError, r"np.asarray\(S\)"),
    "masked": (np.ma.masked_equal(PATH, 0), InputTypeError, r"S.filled\(0\)"),
    "all zero": (np.zeros((3, 3)), SupportError, "3 rows are zero: 0, 1, 2"),
    "zero row": (np.diag([1.0, 0, 2]), SupportError, r"1 row is zero: 1\."),
    "1 x 1 zero": (np.zeros((1, 1)), SupportError, r"1 row is zero: 0\."),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_dense_input_gets_a_sentence(case):
    S, error, words = BAD[case]
    with pytest.raises(error, match=words) as caught:
        marcus_mapping(S)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "case",
    ["nan", "inf", "negative", "not symmetric", "complex", "all zero", "zero row"],
)
@pytest.mark.parametrize("form", ["csr", "coo", "lil"])
def test_bad_sparse_input_gets_the_same_sentence(case, form):
    S, error, words = BAD[case]
    with pytest.raises(error, match=words):
        marcus_mapping(sp.coo_array(S).asformat(form))


def test_one_triangle_is_recognized():
    with pytest.raises(NotSymmetricError, match=r"triu\(S\) \+ triu\(S, 1\).T"):
        marcus_mapping(np.triu(PATH))


def test_a_sparse_matrix_that_is_not_square_or_empty_is_refused():
    with pytest.raises(InputError, match="square"):
        marcus_mapping(sp.csr_array((2, 3)))
    with pytest.raises(InputError, match="empty"):
        marcus_mapping(sp.csr_array((0, 0)))
    with pytest.raises(SupportError, match="4 rows are zero"):
        marcus_mapping(sp.csr_array((4, 4)))


@pytest.mark.parametrize("index", [10**7, -5])
def test_coordinates_outside_the_shape_are_refused(index):
    S = sp.coo_array(np.eye(1000))
    S.coords[0][:] = index
    with pytest.raises(InputError, match="outside its shape"):
        support(S)


def test_a_tiny_entry_among_others():
    S = sp.csr_array(np.diag([1.0, 1e-310]))
    np.testing.assert_allclose(marcus_mapping(S).matrix.toarray(), np.eye(2))


@pytest.mark.parametrize("value", [1.7e308, 4e307])
def test_the_largest_numbers(value):
    M = marcus_mapping(np.full((2, 2), value)).matrix
    np.testing.assert_allclose(M, 0.5)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_broken_sparse_matrix_is_refused_before_it_is_read(form):
    S = sp.csr_array(PATH).asformat(form)
    S.indices = S.indices.copy()
    S.indices[0] = 99
    with pytest.raises(InputError, match="not a valid sparse matrix"):
        marcus_mapping(S)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_asymmetry_by_rounding_is_averaged_out(make):
    S = PATH.copy()
    S[0, 1] *= 1 + 1e-11
    M = as_numpy(marcus_mapping(make(S)).matrix)
    assert (M == M.T).all()
    np.testing.assert_allclose(M, EXPECTED, atol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_asymmetry_is_measured_against_the_rows_it_stands_in(make):
    # 1e-12 is nothing beside the first block and everything in the second
    S = np.zeros((4, 4))
    S[:2, :2] = [[1, 0.5], [0.5, 1]]
    S[2:, 2:] = [[1e-12, 5e-13], [2e-13, 1e-12]]
    with pytest.raises(NotSymmetricError, match=r"S\[2, 3\]|S\[3, 2\]"):
        marcus_mapping(make(S))


def test_the_largest_asymmetry_is_found_in_any_tile(rng):
    S = np.ones((1100, 1100))
    S[1050, 20] += 0.25
    with pytest.raises(NotSymmetricError, match=r"S\[20, 1050\] = 1 but S\[1050, 20\]"):
        marcus_mapping(S)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_sparse_kinds_come_back_as_they_went_in(name, dtype):
    S = getattr(sp, name)(PATH.astype(dtype))
    before = as_numpy(S).copy()
    M = marcus_mapping(S).matrix
    assert type(M) is type(S)
    assert M.format == S.format
    single = dtype == np.float32
    assert M.dtype == (np.float32 if single else np.float64)
    np.testing.assert_array_equal(as_numpy(S), before)
    np.testing.assert_allclose(as_numpy(M), EXPECTED, atol=1e-5 if single else 1e-10)


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", "g", ">f8", ">f4", "i1", "i8", "u8", "?"]
)
def test_dense_element_types(dtype):
    S = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=dtype)
    M = marcus_mapping(S).matrix
    single = np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize <= 4
    assert M.dtype == (np.float32 if single else np.float64)
    assert row_error(M) < (1e-5 if single else 1e-10)


def test_int64_indices_stay_int64():
    S = sp.csr_array(PATH)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    M = marcus_mapping(S).matrix
    assert M.indices.dtype == M.indptr.dtype == np.int64


def test_single_precision_reaches_its_tolerance_on_a_large_row(rng):
    n = 3000
    S = rng.random((n, n), dtype=np.float32)
    S = S + S.T
    result = marcus_mapping(S)
    assert result.converged
    assert np.abs(result.matrix.sum(axis=1, dtype=np.float64) - 1).max() <= 1e-5
    hub = sp.csr_array(np.where(np.eye(n) + (np.arange(n) == 0) > 0, S, 0))
    hub = sp.csr_array(hub.maximum(hub.T))
    M = marcus_mapping(hub).matrix
    assert M.dtype == np.float32
    assert np.abs(M.astype(np.float64).sum(axis=1) - 1).max() <= 1e-5


def test_input_is_never_changed_nor_shared(rng):
    for make in (np.array, sp.csr_array, sp.csc_matrix):
        S = make(sparse_symmetric(rng, 10))
        before = as_numpy(S).copy()
        M = marcus_mapping(S).matrix
        np.testing.assert_array_equal(as_numpy(S), before)
        if sp.issparse(M):
            for part in ("data", "indices", "indptr"):
                assert not np.shares_memory(getattr(S, part), getattr(M, part))


def test_read_only_and_memory_mapped_arrays(tmp_path):
    S = PATH.copy()
    S.flags.writeable = False
    np.testing.assert_array_equal(marcus_mapping(S).matrix, EXPECTED)
    np.save(tmp_path / "S.npy", PATH)
    mapped = np.load(tmp_path / "S.npy", mmap_mode="r")
    np.testing.assert_array_equal(marcus_mapping(mapped).matrix, EXPECTED)
    frozen = sp.csr_array(PATH)
    for part in (frozen.data, frozen.indices, frozen.indptr):
        part.flags.writeable = False
    np.testing.assert_allclose(as_numpy(marcus_mapping(frozen).matrix), EXPECTED)


def test_any_memory_layout(rng):
    S = sparse_symmetric(rng, 12)
    big = np.zeros((24, 36))
    big[::2, ::3] = S
    expected = marcus_mapping(S).matrix
    for view in (np.asfortranarray(S), big[::2, ::3], S[::-1, ::-1][::-1, ::-1]):
        np.testing.assert_allclose(marcus_mapping(view).matrix, expected, atol=1e-9)


def test_duplicates_are_summed_unsorted_indices_sorted_stored_zeros_dropped():
    rows = [0, 0, 1, 1, 1, 2, 2, 0, 2]
    columns = [1, 0, 0, 2, 1, 2, 1, 0, 0]
    data = [1.0, 1.5, 1.0, 1.0, 2.0, 2.0, 1.0, 0.5, 0.0]
    S = sp.coo_array((data, (rows, columns)), shape=(3, 3))
    np.testing.assert_array_equal(as_numpy(S), PATH)
    M = marcus_mapping(S).matrix
    assert M.nnz == 7
    np.testing.assert_allclose(as_numpy(M), EXPECTED, atol=1e-9)
    shuffled = sp.csr_array(
        ([1.0, 2, 1, 1, 2, 2, 1], [1, 0, 0, 2, 1, 2, 1], [0, 2, 5, 7]), shape=(3, 3)
    )
    order = shuffled.indices.copy()
    np.testing.assert_allclose(as_numpy(marcus_mapping(shuffled).matrix), EXPECTED)
    np.testing.assert_array_equal(shuffled.indices, order)


def test_only_the_sums_of_duplicates_need_to_be_positive():
    S = sp.csr_array(([3.0, -1, 1, 1, 1], [0, 0, 1, 0, 1], [0, 3, 5]), shape=(2, 2))
    expected = marcus_mapping([[2.0, 1], [1, 1]]).matrix
    np.testing.assert_allclose(as_numpy(marcus_mapping(S).matrix), expected, atol=1e-9)


def test_lists_and_one_point():
    assert marcus_mapping([[5]]).matrix.tolist() == [[pytest.approx(1.0)]]
    assert marcus_mapping(sp.csr_array([[0.3]])).matrix.data == pytest.approx(1.0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("factor", [5e-324, 1e-300, 1e-150, 1e150, 1e300, 1e307])
def test_entries_of_any_size_are_scaled(make, factor):
    S = np.array([[4.0, 1.0], [1.0, 4.0]]) * factor
    result = marcus_mapping(make(S))
    np.testing.assert_allclose(as_numpy(result.matrix), [[0.8, 0.2], [0.2, 0.8]])


def test_entries_from_tiny_to_huge_in_one_matrix(rng):
    P = marcus_mapping(sparse_symmetric(rng, 8)).matrix
    e = 10.0 ** np.linspace(-150, 150, 8)
    S = e[:, None] * P * e[None, :]
    np.testing.assert_allclose(marcus_mapping(S).matrix, P, atol=1e-9)
    np.testing.assert_allclose(
        as_numpy(marcus_mapping(sp.csr_array(S)).matrix), P, atol=1e-9
    )


def test_data_frames_keep_their_labels():
    need("pandas")
    import pandas as pd

    frame = pd.DataFrame(PATH, index=list("abc"), columns=list("abc"))
    M = marcus_mapping(frame).matrix
    assert isinstance(M, pd.DataFrame)
    assert list(M.index) == list(M.columns) == ["a", "b", "c"]
    np.testing.assert_allclose(M.to_numpy(), EXPECTED, atol=1e-9)
    with pytest.raises(InputError, match=r"S.loc\[labels, labels\]"):
        marcus_mapping(frame[["b", "a", "c"]])
    with pytest.raises(InputTypeError, match="element type"):
        marcus_mapping(frame.astype(object))


def test_tensors_come_back_as_tensors():
    need("torch")
    import torch

    for dtype in (torch.float64, torch.float32, torch.float16, torch.int32, torch.bool):
        S = torch.asarray(PATH > 0).to(dtype)
        single = dtype in (torch.float32, torch.float16)
        for kind in (S, S.to_sparse_csr()):
            result = marcus_mapping(kind)
            assert result.matrix.layout is kind.layout
            assert result.matrix.dtype is (torch.float32 if single else torch.float64)
            assert row_error(as_numpy(result.matrix)) < (1e-5 if single else 1e-10)


def test_tensors_that_cannot_be_scaled_get_a_sentence():
    need("torch")
    import torch

    S = torch.asarray(PATH)
    with pytest.raises(InputTypeError, match=r"S.to_sparse_csr\(\)"):
        marcus_mapping(S.to_sparse_coo())
    with pytest.raises(InputTypeError, match=r"S.detach\(\)"):
        marcus_mapping(S.clone().requires_grad_())
    with pytest.raises(InputTypeError, match="real numbers"):
        marcus_mapping(S.to(torch.complex64))
    with pytest.raises(NotSymmetricError, match=r"S\[0, 1\] = 9"):
        marcus_mapping(torch.asarray(changed(9.0, mirror=False)).to_sparse_csr())
    with pytest.raises(InputError, match="not a finite number"):
        marcus_mapping(torch.asarray(changed(np.nan)))


def test_other_array_libraries_keep_their_kind():
    import array_api_strict

    S = array_api_strict.asarray(PATH)
    result = marcus_mapping(S)
    assert type(result.matrix) is type(S)
    np.testing.assert_allclose(np.asarray(result.matrix), EXPECTED, atol=1e-9)
    with pytest.raises(NotSymmetricError):
        marcus_mapping(array_api_strict.asarray(changed(9.0, mirror=False)))


def test_support_looks_at_its_input_as_well():
    with pytest.raises(NotSymmetricError):
        support(changed(9.0, mirror=False))
    with pytest.raises(InputError, match="negative"):
        support(changed(-1.0))


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_matrix])
def test_rounding_beside_an_empty_last_row(make, rng):
    A = rng.random((5, 5))
    A = A + A.T
    A[0, 1] *= 1 + 1e-13
    A[4] = A[:, 4] = 0
    for function in (marcus_mapping, entropic_plan, project_doubly_stochastic):
        with pytest.raises(SupportError, match="1 row is zero: 4"):
            function(make(A))
        result = function(make(A), unsupported="prune")
        assert result.dropped.tolist() == [4]


def test_entries_too_far_apart_or_too_large():
    S = np.array([[5e-324, 1.7e308], [1.7e308, 5e-324]])
    for function in (marcus_mapping, entropic_plan):
        with pytest.raises(InputError, match="too far apart"):
            function(S)
    with pytest.raises(InputError, match="entries of size 1e\\+300"):
        project_doubly_stochastic(np.diag([1e300, 1.0]))
