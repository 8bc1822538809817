"""Matrices that lie on Dask workers: mapped, projected, refused."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, issparse

from bistochastic import (
    ANCMM,
    InputError,
    entropic_plan,
    marcus_mapping,
    project_doubly_stochastic,
    support,
)
from bistochastic.core.errors import InputTypeError
from matrices import sparse_symmetric

pytest.importorskip("distributed")
import dask
import dask.array as da


def graph(rng, n=40):
    return sparse_symmetric(rng, n, density=0.15)


@pytest.mark.parametrize("sparse", [True, False])
def test_marcus_mapping_of_a_graph_on_workers(client, rng, sparse):
    A = graph(rng)
    here = marcus_mapping(csr_array(A))
    if sparse:
        S = da.from_array(csr_array(A), chunks=((15, 0, 25), 40), asarray=False)
    else:
        S = da.from_array(A, chunks=(15, 20))
    there = marcus_mapping(S)
    assert there.converged
    assert there.matrix.shape == (40, 40)
    assert abs(there.matrix.compute() - here.matrix).max() < 1e-12
    np.testing.assert_allclose(there.scaling.compute(), here.scaling)
    assert there.n_products == here.n_products
    assert support(S).kind == "total"


def made(result):
    return result.plan if hasattr(result, "plan") else result.matrix


@pytest.mark.parametrize(
    ("function", "kind", "chunks"),
    [
        (marcus_mapping, np.float64, (3, 5)),
        (marcus_mapping, np.float32, (3, 8)),
        (entropic_plan, int, (3, 8)),
        (project_doubly_stochastic, np.float32, (8, 5)),
    ],
)
def test_dense_blocks_come_back_for_dense_blocks(client, rng, function, kind, chunks):
    A = np.ceil(graph(rng, 8)).astype(kind)
    S, here = da.from_array(A, chunks=chunks), made(function(A))
    M = made(function(S))
    assert isinstance(M._meta, np.ndarray)
    assert M.chunks == S.chunks
    whole = M.compute()
    assert type(whole) is np.ndarray
    assert M.dtype == whole.dtype == here.dtype
    np.testing.assert_allclose(whole, here, atol=1e-5)
    np.testing.assert_allclose(M.sum(axis=1).compute(), 1, atol=1e-5)
    np.testing.assert_array_equal(M[2:7, :3].compute(), whole[2:7, :3])
    np.testing.assert_allclose((M + S).compute(), whole + A, rtol=1e-6)


def in_blocks(A, *kinds):
    """Return a Dask array of two blocks of rows, each of a kind."""
    rows = [kind(part) for kind, part in zip(kinds, (A[:5], A[5:]), strict=True)]
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(row), row.shape, row.dtype, meta=row[:0, :0])
            if hasattr(row, "tocsr") and row.format != "coo"
            else da.from_delayed(dask.delayed(row), row.shape, row.dtype)
            for row in rows
        ]
    )


@pytest.mark.parametrize(
    ("kinds", "back"),
    [
        ((csr_array, csr_array), csr_array),
        ((csc_matrix, csc_matrix), csc_matrix),
        ((coo_array, coo_array), csr_array),  # Dask cannot slice these
        ((np.array, csr_array), csr_array),
    ],
)
def test_sparse_blocks_come_back_for_sparse_blocks(client, rng, kinds, back):
    A = graph(rng, 12)
    M = marcus_mapping(in_blocks(A, *kinds)).matrix
    assert type(M._meta) is back
    assert type(M.blocks[1].compute()) is back
    assert issparse(M.compute())
    assert abs(M.compute() - marcus_mapping(A).matrix).max() < 1e-12


def test_zeros_of_dense_blocks_may_become_positive(client):
    K = 0.2 * np.eye(4)
    there = project_doubly_stochastic(da.from_array(K, chunks=(2, 4))).matrix.compute()
    assert there.min() > 0.1
    np.testing.assert_allclose(there, project_doubly_stochastic(K).matrix, atol=1e-9)


LIES = {
    r"Block \(1, 0\) of {} has shape \(4, 12\), but .* say \(5, 12\)": (
        lambda x: x[:-1] if x[0, 0] == 5 else x,
        (5, 12),
    ),
    r"Block \(0, 1\) of {} has shape \(12, 4\), but .* say \(12, 5\)": (
        lambda x: x[:, 1:] if x[0, 0] == 5 else x,
        (12, (5, 5, 2)),
    ),
    r"Block \(0, 0\) of {} has shape \(12,\), but .* say \(5, 12\)": (
        lambda x: x[0] if x[0, 0] == 0 else x,
        (5, 12),
    ),
    r"Block \(1, 0\) of {} has element type complex128": (
        lambda x: x + 1j if x[0, 0] == 5 else x,
        (5, 12),
    ),
    "The chunks of {} are masked": (np.ma.masked_equal, (5, 12)),
}


@pytest.mark.parametrize("lie", LIES, ids=range(len(LIES)))
@pytest.mark.parametrize(
    ("function", "name"),
    [(support, "S"), (project_doubly_stochastic, "K"), (ANCMM(2).fit, "X")],
    ids=["support", "project", "fit"],
)
def test_blocks_are_what_the_array_declares(client, lie, function, name):
    change, chunks = LIES[lie]
    A = da.from_array(np.add.outer(np.arange(12.0), np.arange(12.0)), chunks=chunks)
    given = (0,) if change is np.ma.masked_equal else ()
    A = A.map_blocks(change, *given, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(InputError, match=lie.format(name)):
        function(A)


def test_blocks_of_other_libraries_are_refused(client):
    class Odd:
        shape, dtype = (4, 4), np.dtype(float)

    S = da.from_delayed(dask.delayed(Odd)(), (4, 4), float)
    with pytest.raises(InputTypeError, match="The chunks of S are of Odd"):
        marcus_mapping(S)


def test_what_marcus_mapping_refuses(client, rng):
    A = graph(rng)
    lost = A.copy()
    lost[0], lost[:, 0] = 0, 0
    S = da.from_array(lost, chunks=(15, 40))
    with pytest.raises(InputError, match="1 row is zero"):
        marcus_mapping(S)
    there = marcus_mapping(S, unsupported="prune")
    here = marcus_mapping(lost, unsupported="prune")
    assert abs(there.matrix.compute() - here.matrix).max() < 1e-12
    np.testing.assert_array_equal(there.dropped, [0])
    for bad, said in (
        (np.triu(A), "not symmetric"),
        (A - 1, "negative"),
        (np.where(A > A.max() / 2, np.nan, A), "not a finite number"),
        (A[:20], "square"),
        (np.ma.masked_greater(A, 1.0), "masked"),
    ):
        with pytest.raises(InputError, match=said):
            marcus_mapping(da.from_array(bad, chunks=(15, 40)))
    with pytest.raises(InputError, match="shape"):
        marcus_mapping(da.ones(15))
    nearly = A * (1 + 1e-13 * rng.random(A.shape))
    there = marcus_mapping(da.from_array(nearly, chunks=(15, 40)))
    M = there.matrix.compute()
    assert abs(M - M.T).max() == 0
    huge = marcus_mapping(da.from_array(A * 1e130, chunks=(15, 40)))
    assert abs(huge.matrix.compute() - marcus_mapping(A).matrix).max() < 1e-9


def test_graphs_in_many_chunks_exchange_only_what_they_share(client, rng, monkeypatch):
    from bistochastic.places.dask_workers import given_graphs as block_graphs
    from bistochastic.places.dask_workers.layout import Layout

    n = 120
    i = np.arange(n - 1)
    A = np.diag(2 + rng.random(n))
    A[i, i + 1] = A[i + 1, i] = rng.random(n - 1)
    pieces, submit = [], Layout.submit

    def counted(self, name, home, task, *given):
        pieces.append(task is block_graphs._piece)
        return submit(self, name, home, task, *given)

    monkeypatch.setattr(Layout, "submit", counted)
    S = da.from_array(csr_array(A), chunks=(10, n), asarray=False)
    there = marcus_mapping(S)
    assert sum(pieces) == 12 + 2 * 11  # a chunk and its neighbors, not all 144 pairs
    assert (
        abs(there.matrix.compute() - marcus_mapping(csr_array(A)).matrix).max() < 1e-9
    )
