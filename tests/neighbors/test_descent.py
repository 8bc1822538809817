"""One round of the descent by hand, and by its kernel."""

import numpy as np

from bistochastic.neighbors.descent import (
    Lists,
    leaves,
    offer_leaves,
    offer_neighbors,
    standing_in,
)


def _points(n=1500, d=9):
    return np.random.default_rng(1).standard_normal((n, d)).astype(np.float32)


def test_rounds_of_the_descent_by_text_and_by_body():
    from bistochastic.places.host import kernels

    x, made = _points(), []
    for body in (None, kernels.ON_TABLES):
        fast = (body or {}).get
        rng = np.random.default_rng(0)
        lists = Lists.empty(1500, 12, x.dtype)
        for _ in range(2):
            order = leaves(x @ rng.standard_normal((9, 4)).astype(np.float32))
            fast(offer_leaves, offer_leaves)(x, order, 100, lists)
        assert lists.fresh.all()
        for _ in range(2):
            back = fast(standing_in, standing_in)(lists)
            lists = fast(offer_neighbors, offer_neighbors)(x, lists, back)
        made.append((lists, back))
    (ours, back), (theirs, other) = made
    np.testing.assert_array_equal(ours.columns, theirs.columns)
    np.testing.assert_array_equal(ours.fresh, theirs.fresh)
    np.testing.assert_allclose(ours.costs, theirs.costs, rtol=1e-5)
    for one, two in zip(back, other, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_round_is_what_the_definition_says():
    x = _points(200)
    lists = Lists.empty(200, 6, x.dtype)
    offer_leaves(x, np.arange(200), 20, lists)
    columns, _ = standing_in(lists)
    near = [
        {*lists.columns[i].tolist(), *columns[i].tolist()} - {-1} for i in range(200)
    ]
    after = offer_neighbors(x, lists, standing_in(lists))
    D = ((x[:, None] - x) ** 2).sum(axis=2)
    for i in range(200):
        offered = set().union(*(near[p] for p in near[i])) | set(lists.columns[i])
        best = sorted(offered - {i}, key=lambda j: D[i, j])[:6]
        assert list(after.columns[i]) == best
    new = (after.columns[:, :, None] != lists.columns[:, None, :]).all(axis=2)
    np.testing.assert_array_equal(after.fresh, new)
