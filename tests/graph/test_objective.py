"""The objective and the conditions of its row problem, against their definitions."""

import numpy as np

from bistochastic.graph.objective import Objective, stationarity
from bistochastic.graph.simplex import reach, relaxed, without_traces


def test_the_parts_of_equation_10_add_up():
    value = Objective(distance=1.0, norm=2.0, penalty=4.0)
    assert value.graph == 3.0
    assert value.total == 7.0


def test_rows_solve_equation_14(rng):
    m = rng.random((6, 20)) * 3
    m[2, 7:] = np.inf
    s = relaxed(m, 0.4)

    def value(weights, row):
        on = weights > 0
        return weights[on] @ row[on] + 0.4 * weights @ weights

    for row, weights in zip(m, s, strict=True):
        for other in rng.dirichlet(np.full(20, 0.3), 200):
            other = np.where(np.isfinite(row), other, 0)
            other /= other.sum()
            assert value(weights, row) <= value(other, row) + 1e-12


def test_stationarity_is_rounding_and_sees_a_wrong_row(rng, monkeypatch):
    m = rng.random((6, 20)) * 3
    assert (np.abs(stationarity(m, 0.4)) < 1e-12).all()
    monkeypatch.setattr(
        "bistochastic.graph.objective.relaxed", lambda m, alpha: relaxed(m, 2 * alpha)
    )
    assert (stationarity(m, 0.4) > 0.01).all()


def test_a_candidate_beyond_reach_changes_nothing(rng):
    m = rng.random((50, 20)) * 3
    limit = reach(m, 0.4)
    s = relaxed(m, 0.4)
    assert ((s > 0) == (m < limit[:, None] - 1e-12)).all()
    for factor, changed in ((1.001, False), (0.98, True)):
        more = np.concatenate([m, factor * limit[:, None]], axis=1)
        new = relaxed(more, 0.4)[:, -1]
        assert (new > 0).all() if changed else (new == 0).all()


def test_traces_are_no_edges():
    s = np.array([[0.5, 0.5 - 1e-13, 1e-13], [1.0, 0.0, 1e-11]])
    made = without_traces(s)
    assert (made > 0).tolist() == [[True, True, False], [True, False, True]]
