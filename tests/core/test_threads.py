"""Limits of threads belong to the process, and end when the last caller leaves."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from bistochastic import ANCMM, DSDC, DoublyStochasticSpectral
from bistochastic.cluster.trials import Trials
from bistochastic.core.threads import OneThread, one_blas_thread


class Pool:
    """Stands for a library with threads."""

    num_threads = 8

    def set_num_threads(self, number):
        self.num_threads = number


@pytest.fixture
def limit(monkeypatch):
    """Return a limit on one library, and the library."""
    pool = Pool()

    class Controller:
        lib_controllers = (pool,)

        def select(self, user_api):
            return self

    monkeypatch.setattr("threadpoolctl.ThreadpoolController", Controller)
    return OneThread("blas"), pool


def test_the_last_to_leave_restores_what_the_first_found(limit):
    one, pool = limit
    first, second = one(), one()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert pool.num_threads == 1  # the second is still inside
    second.__exit__(None, None, None)
    assert pool.num_threads == 8


def test_a_number_that_others_set_meanwhile_stays(limit):
    one, pool = limit
    with one():
        pool.num_threads = 3
    assert pool.num_threads == 3


def test_an_error_inside_restores_the_number(limit):
    one, pool = limit
    with pytest.raises(KeyError), one():
        raise KeyError
    assert pool.num_threads == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_finds_nobody_inside(limit):
    one, _ = limit
    with one():
        one.forget()
        assert not one._process.inside


@pytest.mark.usefixtures("two_threads")
def test_the_last_to_leave_may_be_another_thread():
    with suppress(ImportError):
        import faiss  # noqa: F401  brings a BLAS whose threads are OpenMP's
    before = numbers()
    entered, left = threading.Event(), threading.Event()

    def outlast():
        with one_blas_thread():
            entered.set()
            left.wait(10)
            assert set(numbers()) == {1}

    with ThreadPoolExecutor(1) as pool:
        with one_blas_thread():
            last = pool.submit(outlast)
            entered.wait(10)
        left.set()
        last.result()
    assert numbers() == before


@pytest.fixture
def two_threads():
    """Let every BLAS have two threads, however many the environment gives it."""
    with threadpool_limits(2, user_api="blas"):
        yield


def numbers():
    return [
        library.num_threads
        for library in ThreadpoolController().select(user_api="blas").lib_controllers
    ]


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    "model",
    [
        ANCMM(4, n_neighbors=10),
        ANCMM(4, n_neighbors=10, candidates=None, refine=None),
        DSDC(4),
        DoublyStochasticSpectral(4),
    ],
    ids=["ANCMM", "all candidates", "DSDC", "spectral"],
)
def test_fits_in_threads_are_those_of_one_to_the_bit_and_leave_blas_as_it_was(model):
    X = np.random.default_rng(0).normal(size=(700, 12))
    X[:, 0] += 4 * (np.arange(700) % 4)
    before = numbers()
    alone = _fitted(model, X)
    start = threading.Barrier(4)

    def fit(_):
        start.wait()
        return _fitted(model, X)

    with ThreadPoolExecutor(4) as pool:
        for labels, graph in pool.map(fit, range(4)):
            np.testing.assert_array_equal(labels, alone[0])
            np.testing.assert_array_equal(graph, alone[1])
    assert numbers() == before


def _fitted(model, X):
    model = type(model)(**model.get_params()).fit(X)
    S = getattr(model, "affinity_matrix_", model.embedding_)
    return model.labels_, S.toarray() if hasattr(S, "toarray") else S


def test_methods_of_a_fitted_model_compute_in_one_thread_of_blas(monkeypatch):
    """Others that limit it meanwhile would change the last digits."""
    X = np.random.default_rng(0).normal(size=(120, 4))
    X[::2] += 4
    model = ANCMM(2, n_neighbors=8).fit(X)
    monkeypatch.delitem(model._later, "_memberships")  # as after a file
    seen = []
    again = Trials.again

    def noted(self, X):
        seen.append(set(numbers()))
        return again(self, X)

    monkeypatch.setattr(Trials, "again", noted)
    model.approximation(X)
    model.memberships(X)
    assert seen == [{1}, {1}]
