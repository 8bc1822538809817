"""A few points of every aggregate speak for its row of the first graph."""

import numpy as np
import pytest

from bistochastic import ANCMM
from bistochastic.cluster import sampled_rows
from bistochastic.cluster.coarse import gathered_graph
from bistochastic.cluster.graphs import GraphMaker
from bistochastic.cluster.problem import of_data
from bistochastic.cluster.sampled_rows import SampledRows
from bistochastic.graph.aggregates import Aggregates, aggregates
from bistochastic.places.host.host import Host

MAKER = GraphMaker(True, "marcus", "auto", 1e-10, affine=False)


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((600, 3))
    return of_data(
        Host(), X, 3, n_neighbors=12, most=12, candidates="auto", alpha="mean",
        metric="euclidean", loops=True, n_jobs=None,
    )  # fmt: skip


@pytest.fixture
def held(problem):
    return aggregates(MAKER.first(problem).S, [40])[0]


def sampled(problem, held):
    return SampledRows.of(problem.all_costs, held, 13, MAKER)


def test_all_rows_give_the_sums_of_the_first_graph(problem, held, monkeypatch):
    monkeypatch.setattr(sampled_rows, "ROWS", 10**6)
    weights, pairs = (g.native() for g in sampled(problem, held).gathered(12, False))
    true, count = (g.native() for g in gathered_graph(MAKER.first(problem), held))
    np.testing.assert_allclose(weights.sum(), 600)
    np.testing.assert_allclose(weights.sum(axis=1), held.sizes, rtol=0.25)
    gap = abs(weights - true).sum() / 600
    assert gap < 0.05  # the mapping moves that much
    assert abs(pairs.sum() / count.sum() - 1) < 0.1
    assert (weights.indices == pairs.indices).all()


def test_a_few_rows_stand_for_all(problem, held):
    rows = sampled(problem, held)
    np.testing.assert_allclose(np.bincount(held.groups, rows.shares), held.sizes)
    number = np.bincount(held.groups[rows.shares > 0])
    np.testing.assert_array_equal(number, np.minimum(held.sizes, sampled_rows.ROWS))


def test_the_choice_of_rows_does_not_look_at_their_order(rng, monkeypatch):
    monkeypatch.setattr(sampled_rows, "ROWS", 4)
    groups, scales = np.repeat(np.arange(10), 9), rng.random(90)
    shares = sampled_rows._shares(Aggregates(groups, np.full(10, 9.0)), scales)
    order = rng.permutation(90)
    again = sampled_rows._shares(
        Aggregates(groups[order], np.full(10, 9.0)), scales[order]
    )
    np.testing.assert_array_equal(again, shares[order])
    assert np.count_nonzero(shares) == 40


@pytest.mark.parametrize("neighbor", [False, "lazy"])
def test_points_without_loops_can_be_sampled(neighbor, rng, monkeypatch):
    monkeypatch.setattr(sampled_rows, "ROWS", 1)
    X = rng.standard_normal((1800, 2)) + np.repeat([[0, 0], [9, 0]], 900, axis=0)
    model = ANCMM(2, self_neighbor=neighbor).fit(X)
    assert model.n_components_ == 2
    assert np.unique(model.labels_[:900]).size == 1
