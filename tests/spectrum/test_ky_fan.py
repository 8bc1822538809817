"""The eigensolver: every copy of an eigenvalue, against a dense solver."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse import block_diag, csr_array

from bistochastic import Status, marcus_mapping
from bistochastic.core.arrays import on_cpu
from bistochastic.graph.components import components
from bistochastic.places.host.csr import Csr
from bistochastic.spectrum.ky_fan import SMALL, ky_fan, smoothness
from selection import some


def clusters(rng, sizes, coupling=0.0, degree=8):
    """Make a doubly stochastic graph of random clusters, coupled weakly or not."""
    n = sum(sizes)
    parts = []
    for size in sizes:
        i = np.repeat(np.arange(size), degree)
        j = rng.integers(0, size, size * degree)
        W = csr_array((rng.random(i.size) + 0.1, (i, j)), shape=(size, size))
        ring = csr_array(
            (np.full(size, 0.5), (np.arange(size), (np.arange(size) + 1) % size)),
            shape=(size, size),
        )
        parts.append(W + W.T + ring + ring.T)
    S = csr_array(block_diag(parts))
    if coupling:
        k = max(len(sizes), n // 20)
        i, j = rng.integers(0, n, (2, k))
        first = np.cumsum([0, *sizes[:-1]])
        i = np.concatenate([i, first])
        j = np.concatenate([j, np.roll(first, 1)])
        B = csr_array((np.full(i.size, coupling), (i, j)), shape=(n, n))
        S = S + B + B.T
    S = csr_array(S)
    S.setdiag(1.0)
    return csr_array(marcus_mapping(csr_array(S)).matrix)


def sizes_of(c, n, equal, rng):
    if equal:
        return [n // c] * c
    share = rng.dirichlet(np.full(c, 2.0))
    return [max(12, int(s * n)) for s in share]


@pytest.mark.parametrize("n", [60, 900])
def test_a_graph_that_is_not_doubly_stochastic(hold, n, rng):
    S = clusters(rng, [n // 3] * 3, 1e-2).toarray()
    u = rng.uniform(0.5, 2, n)
    S = u[:, None] * S * u
    graph = hold(S)
    found = ky_fan(graph, 3, components(graph)[1])
    values, vectors = np.linalg.eigh(np.diag(S.sum(axis=1)) - S)
    np.testing.assert_allclose(found.values, values[:3], atol=1e-9)
    assert subspace_angles(on_cpu(found.F), vectors[:, :3]).max() < 1e-4


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("coupling", some([0.0, 1e-8, 1e-4, 1e-2], 2))
@pytest.mark.parametrize("c", some([20, 2, 1], 1))
def test_the_subspace_of_a_dense_solver(c, coupling, equal, rng):
    S = clusters(rng, sizes_of(c, 1500, equal, rng), coupling)
    graph = Csr(S)
    number, labels = components(graph)
    assert number == (c if coupling == 0 else 1)
    found = ky_fan(graph, c, labels)
    assert found.status is Status.CONVERGED
    values, vectors = np.linalg.eigh(S.toarray())
    exact = vectors[:, -c:]
    assert np.abs(subspace_angles(found.F, exact)).max() < 1e-5
    np.testing.assert_allclose(1 - found.values, values[::-1][:c], atol=1e-10)
    np.testing.assert_allclose(found.F.T @ found.F, np.eye(c), atol=1e-10)


def test_more_vectors_than_components(rng):
    S = clusters(rng, [400, 300, 500])
    graph = Csr(S)
    _, labels = components(graph)
    found = ky_fan(graph, 7, labels)
    values = np.linalg.eigvalsh(S.toarray())[::-1][:7]
    np.testing.assert_allclose(1 - found.values, values, atol=1e-10)
    np.testing.assert_array_equal(found.values[:3], 0)
    assert found.n_products > 0


def test_more_components_than_vectors(rng):
    S = clusters(rng, [40, 30, 50, 20])
    found = ky_fan(Csr(S), 2, components(Csr(S))[1])
    assert found.trace == 0.0
    assert sorted(np.flatnonzero((found.F != 0).any(axis=1))) == [
        *range(40), *range(70, 120),
    ]  # fmt: skip


def test_every_holder_finds_the_same(hold, rng):
    S = clusters(rng, [250, 250], 1e-3)
    graph = hold(S.toarray())
    number, labels = components(graph)
    found = ky_fan(graph, 3, labels)
    exact = np.linalg.eigh(S.toarray())[1][:, -3:]
    assert S.shape[0] > SMALL
    assert np.abs(subspace_angles(on_cpu(found.F), exact)).max() < 1e-5
    small = clusters(rng, [60, 50])
    graph = hold(small.toarray())
    number, labels = components(graph)
    assert number == 2
    found = ky_fan(graph, 4, labels)
    values = np.linalg.eigvalsh(small.toarray())[::-1][:4]
    np.testing.assert_allclose(1 - found.values, values, atol=1e-10)


def test_a_warm_start_saves_products_and_hides_nothing(rng):
    S = clusters(rng, [150] * 8, 1e-2)
    graph = Csr(S)
    _, labels = components(graph)
    cold = ky_fan(graph, 8, labels)
    warm = ky_fan(graph, 8, labels, last=cold)
    assert warm.n_products < cold.n_products
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-12)
    # a start that is exact but not the best: eigenvectors from further down
    vectors = np.linalg.eigh(S.toarray())[1]
    for guards in (None, vectors[:, -40:-30], vectors[:, -21:-17]):
        lower = replace(cold, F=vectors[:, -30:-22], guards=guards)
        misled = ky_fan(graph, 8, labels, last=lower)
        np.testing.assert_allclose(misled.values, cold.values, atol=1e-10)
    # one that lacks a single vector
    lower = replace(cold, F=np.delete(vectors[:, -9:], 3, axis=1))
    misled = ky_fan(graph, 8, labels, last=lower)
    np.testing.assert_allclose(misled.values, cold.values, atol=1e-10)


def test_equations_9_and_12(rng):
    S = clusters(rng, [60, 60], 1e-2)
    graph = Csr(S)
    found = ky_fan(graph, 3, components(graph)[1])
    A = S.toarray()
    laplacian = np.diag(A.sum(axis=1)) - A
    trace = np.trace(found.F.T @ laplacian @ found.F)
    np.testing.assert_allclose(found.trace, trace, atol=1e-9)
    F = rng.standard_normal((120, 4))
    distances = ((F[:, None] - F[None]) ** 2).sum(-1)
    np.testing.assert_allclose(smoothness(graph, F), (distances * A).sum())
    for _ in range(100):  # no other F is better
        other = np.linalg.qr(found.F + 0.1 * rng.standard_normal((120, 3)))[0]
        assert smoothness(graph, other) >= 2 * found.trace - 1e-12


def test_components_are_numbered_by_first_appearance(hold):
    A = np.zeros((6, 6))
    for i, j in ((5, 1), (1, 3), (0, 4)):
        A[i, j] = A[j, i] = 1.0
    A[2, 2] = 1.0
    number, labels = components(hold(A))
    assert number == 3
    assert labels.tolist() == [0, 1, 2, 1, 0, 1]


def test_ritz_vectors_are_orthonormal_even_if_their_basis_is_not_quite(rng):
    from bistochastic.spectrum.filtered import _ritz

    n, q, b = 60, 2, 5
    A, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.concatenate([np.ones(q), rng.uniform(-0.5, 0.9, n - q)])
    S, Q = (A * values) @ A.T, A[:, :q]
    X, _ = np.linalg.qr(A[:, q:] @ rng.standard_normal((n - q, b)))
    exact = np.linalg.eigvalsh(X.T @ S @ X)[::-1]
    X = X @ (np.eye(b) + 1e-3 * rng.standard_normal((b, b)))
    X += Q @ (1e-3 * rng.standard_normal((q, b)))
    theta, W, C = _ritz(X, S @ X, Q)
    Z = X @ W - Q @ C
    np.testing.assert_allclose(theta, exact, atol=1e-12)
    np.testing.assert_allclose(Z.T @ Z, np.eye(b), atol=1e-12)
    np.testing.assert_allclose(Q.T @ Z, 0.0, atol=1e-12)
    np.testing.assert_allclose(Z.T @ S @ Z, np.diag(theta), atol=1e-12)
    np.testing.assert_allclose((S @ X) @ W - Q @ C, S @ Z, atol=1e-12)
