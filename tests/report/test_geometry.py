"""What pictures show, against brute force."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from bistochastic import ANCMM, InputError
from bistochastic.report import geometry
from matrices import sparse_symmetric


def contrast(one, other):
    parts = [
        geometry.luminance([int(c[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        for c in (one, other)
    ]
    return (max(parts) + 0.05) / (min(parts) + 0.05)


def test_colors_are_told_from_white_and_black_and_from_each_other():
    colors = [geometry.color(at) for at in range(200)]
    assert len(set(colors)) == 200
    for color in colors:
        assert contrast(color, "#ffffff") >= 3  # WCAG, for graphics
        assert contrast(color, "#15171b") >= 3


def test_the_heaviest_edges():
    S = csr_array(sparse_symmetric(np.random.default_rng(0), 40, 0.2))
    A = np.triu(S.toarray(), 1)
    i, j, weights, every = geometry.strongest(S, 10)
    assert every == np.count_nonzero(A)
    np.testing.assert_allclose(weights, np.sort(A[A > 0])[::-1][:10])
    np.testing.assert_allclose(A[i, j], weights)
    labels = np.arange(40) % 3
    i, j, weights, _ = geometry.spread_edges(S, labels, 12)
    assert set(labels[i]) == {0, 1, 2}
    for label in range(3):
        own = A[labels == label]
        top = np.sort(own[own > 0])[::-1]
        held = weights[labels[i] == label]
        np.testing.assert_allclose(held, top[: held.size])
    assert geometry.spread_edges(S, labels, 10**6)[0].size == every


def test_the_matrix_is_ordered_and_binned():
    S = csr_array(sparse_symmetric(np.random.default_rng(1), 50, 0.2))
    labels = np.random.default_rng(0).integers(0, 4, 50)
    held = geometry.ordered(S, labels)
    A = S.toarray()[np.ix_(held.order, held.order)]
    np.testing.assert_allclose(held.means, A)
    assert (np.diff(labels[held.order]) >= 0).all()
    np.testing.assert_array_equal(held.ends, np.cumsum(np.bincount(labels)))
    coarse = geometry.ordered(S, labels, 7)
    edges = coarse.edges
    for a in range(7):
        for b in range(7):
            block = A[edges[a] : edges[a + 1], edges[b] : edges[b + 1]]
            assert coarse.means[a, b] == pytest.approx(block.mean())


def test_planes():
    X, _ = make_blobs(100, 6, centers=3, random_state=0)
    model = ANCMM(3).fit(X)
    flat = geometry.plane(model, X, layout="pca")
    np.testing.assert_allclose(
        np.abs(flat.xy), np.abs(PCA(2).fit_transform(X)), atol=1e-8
    )
    assert "principal" in flat.how
    curved = geometry.plane(model, X, layout="tsne")
    assert curved.xy.shape == (100, 2)
    assert "mean little" in curved.how
    again = geometry.plane(model, X, layout="tsne")
    np.testing.assert_array_equal(curved.xy, again.xy)
    sparse = geometry.plane(model, csr_array(X), layout="pca")
    np.testing.assert_allclose(np.abs(sparse.xy), np.abs(flat.xy), atol=1e-6)
    assert sparse.names == flat.names
    two = csr_array(X[:, :2])
    found = geometry.plane(ANCMM(3).fit(two), two)
    np.testing.assert_array_equal(found.xy, X[:, :2])
    same = np.ones((9, 3))
    same[0] = 2
    found = geometry.plane(ANCMM(2, n_neighbors=4).fit(same), same)
    assert np.isfinite(found.xy).all()
    round_, _ = np.random.default_rng(0).normal(size=(2, 200, 8))
    assert "t-SNE" in geometry.plane(ANCMM(2).fit(round_), round_).how
    with pytest.raises(InputError, match="layout"):
        geometry.plane(model, X, layout="umap")


def test_sureness_by_hand():
    class Model:
        labels_ = np.array([0, 0, 1, 2])

        def memberships(self, X):
            return csr_array(
                [[0.7, 0.1, 0.2], [1.0, 0, 0], [0.3, 0.4, 0.3], [0, 0.5, 0.5]]
            )

    sure = geometry.sureness(Model(), None)
    np.testing.assert_allclose(sure.own, [0.7, 1.0, 0.4, 0.5])
    np.testing.assert_array_equal(sure.second, [2, -1, 0, 1])
    np.testing.assert_allclose(sure.share, [0.2, 0, 0.3, 0.5])


def test_valleys_are_where_it_is_sparse():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-2, 1, 600), rng.normal(2, 1, 600)])
    X = np.c_[x, rng.normal(size=1200)]
    model = ANCMM(2).fit(X)
    assert geometry.valley(model, X, geometry.sureness(model, X)) > 1.2
    X = rng.normal(size=(1200, 2))
    model = ANCMM(2).fit(X)
    assert geometry.valley(model, X, geometry.sureness(model, X)) < 1.2
    few, _ = make_blobs(12, random_state=0)
    model = ANCMM(2).fit(few)
    assert geometry.valley(model, few, geometry.sureness(model, few)) is None
