import itertools

import numpy as np
import pytest

from bistochastic.core.run import Status, run


def points(residuals):
    for t, residual in enumerate(residuals):
        yield np.array([float(t)]), residual


def test_a_run_ends_at_the_first_residual_within_the_tolerance():
    done = run(points([1.0, 0.1, 0.01, 0.001]), tol=0.05, max_iter=10)
    assert done.status is Status.CONVERGED
    assert done.residuals == (1.0, 0.1, 0.01)
    assert done.value[0] == 2
    assert done.n_iter == 3


def test_a_run_stops_at_its_limit_with_the_best_iterate():
    done = run(points([0.5, 0.2, 0.3, 0.4, 0.1]), tol=1e-3, max_iter=4)
    assert done.status is Status.LIMIT
    assert done.value[0] == 1
    assert done.residual == 0.2


def test_a_residual_that_no_longer_falls_is_a_stall():
    done = run(points(itertools.repeat(0.5)), tol=1e-3, max_iter=10_000, patience=20)
    assert done.status is Status.STALLED
    assert done.n_iter == 21


def test_two_points_in_turn_are_a_cycle():
    steps = ((np.array([float(t % 2), 1.0]), 0.5 + t % 2) for t in itertools.count())
    done = run(steps, tol=1e-3, max_iter=10_000, patience=20)
    assert done.status is Status.CYCLED


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_an_overflow_and_the_last_good_iterate_stays(bad):
    done = run(points([0.5, bad, 0.1]), tol=1e-3, max_iter=10)
    assert done.status is Status.OVERFLOW
    assert done.value[0] == 0
    assert done.residual == 0.5


def test_slow_but_steady_progress_is_not_a_stall():
    residuals = (0.9999**t for t in itertools.count())
    done = run(points(residuals), tol=0.5, max_iter=10_000, patience=20)
    assert done.status is Status.CONVERGED


def test_what_was_not_measured_counts_but_is_not_judged():
    done = run(points([1.0, None, None, 0.1, None, 0.01]), tol=0.05, max_iter=10)
    assert done.n_iter == 6
    assert done.residuals == (1.0, 0.1, 0.01)
    done = run(points([1.0, None, None, None]), tol=0.05, max_iter=3)
    assert done.status is Status.LIMIT
    assert done.n_iter == 3
    assert done.value[0] == 0


def test_every_status_is_a_sentence():
    words = {status.name: str(status) for status in Status}
    assert words["CYCLED"].startswith("cycled: ")
    assert all(len(sentence.split()) > 5 for sentence in words.values())
