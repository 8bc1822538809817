"""Bridges between parts, and cuts of them, against their definitions."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bistochastic.graph.bridges import Links, bridges, sweep
from bistochastic.neighbors.exact import nearest
from bistochastic.neighbors.points import Points


@pytest.mark.parametrize("table", [True, False])
def test_the_cheapest_pair_that_leaves_a_part(rng, table):
    X = rng.random((60, 2))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    labels = (X[:, 0] > 0.5).astype(int) + 2 * (X[:, 1] > 0.7)
    labels = np.unique(labels, return_inverse=True)[1]
    points = Points.of(X, "euclidean")
    if table:  # so short that most points see their own part only
        columns, costs = nearest(points, 3)
        links = Links(60, [(np.arange(60), columns, costs)], points)
    else:
        links = Links(60, [(np.arange(60), None, D)])
    q = labels.max() + 1
    cost, inside, outside = links.leaving(labels, np.ones(q, dtype=bool))
    for part in range(q):
        wanted = np.where((labels == part)[:, None] & (labels != part), D, np.inf)
        assert cost[part] == pytest.approx(wanted.min())
        assert labels[inside[part]] == part != labels[outside[part]]


def test_the_smallest_crumbs_are_joined_first():
    X = np.array([0.0, 1, 2, 3, 10, 11, 13, 30])[:, None]
    links = Links(8, [(np.arange(8), None, (X - X.T) ** 2)])
    labels = np.array([0, 0, 0, 0, 1, 1, 2, 3])
    pairs, made = bridges(labels, links, floor=3)
    assert sorted(map(sorted, pairs)) == [[5, 6], [6, 7]]
    assert made.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    pairs, made = bridges(labels, links, most=2)
    assert made.max() == 1


def test_ranks_follow_the_costs_whatever_the_order(rng):
    X = rng.random((30, 2))
    D = ((X[:, None] - X[None]) ** 2).sum(-1)
    order = rng.permutation(30)
    ranks = Links(30, [(np.arange(30), None, D)]).ranks()
    moved = Links(30, [(np.arange(30), None, D[np.ix_(order, order)])]).ranks()
    np.testing.assert_array_equal(moved, ranks[order])
    np.testing.assert_array_equal(np.sort(ranks), np.arange(30))
    apart = np.where(D < np.median(D), D, np.inf)  # no candidates
    assert Links(30, [(np.arange(30), None, apart)]).ranks().size == 30


def test_the_sweep_cuts_where_least_is_lost():
    A = np.zeros((9, 9))
    A[:5, :5] = A[5:, 5:] = 1.0
    A[4, 5] = A[5, 4] = 0.1
    v = np.r_[-np.arange(1, 6), np.arange(1, 5)].astype(float)
    assert sweep(csr_array(A), v, 1).sum() in (4, 5)
    side = sweep(csr_array(A), np.arange(9.0), 1)
    assert side.tolist() == [True] * 5 + [False] * 4
    assert sweep(csr_array(A), np.arange(9.0), 4).sum() == 5
