"""Clusters that are lost while they are needed: closed, cut off, or short of a worker.

Every call has a limit of time: what nobody answers must not be waited for.
"""

import asyncio
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from bistochastic import (
    ANCMM,
    entropic_plan,
    marcus_mapping,
    project_doubly_stochastic,
    support,
)
from bistochastic.core.errors import ClusterError, InputError
from conftest import local_cluster
from matrices import sparse_symmetric

pytest.importorskip("distributed")
import dask
import dask.array as da
from distributed import Client

from bistochastic.places.dask_workers.client import Recorder
from bistochastic.places.dask_workers.workers import _check_device

LIMIT = 60  # seconds, of which a loaded machine takes a few
CLOSED = "The Dask client is closed"
LOST = f"The connection to the Dask scheduler is lost|{CLOSED}"  # as Dask does then


@pytest.fixture
def cluster():
    """Return a cluster of two workers inside this process, and a client."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        local_cluster(silence_logs=60) as made,
        Client(made) as client,
    ):
        yield made, client


def within_limit(call):
    """Return what a call returns or raises, if it does before the limit."""
    done = []

    def run():
        try:
            done.append((call(), None))
        except Exception as error:
            done.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert done, "it is still waiting"
    (value, error), *_ = done
    if error is not None:
        raise error
    return value


def points(n=30):
    X, y = make_blobs(n, 2, centers=[[0, 0], [9, 9]], random_state=0)
    return da.from_array(X, chunks=(n // 3, 2)), y


def matrix():
    A = sparse_symmetric(np.random.default_rng(0), 12, density=0.4)
    return da.from_array(A, chunks=(4, 12))


CALLS = {
    "fit": lambda: ANCMM(2, n_neighbors=5).fit(points()[0]),
    "marcus_mapping": lambda: marcus_mapping(matrix()),
    "support": lambda: support(matrix()),
    "entropic_plan": lambda: entropic_plan(matrix(), omega=2.0),
    "project": lambda: project_doubly_stochastic(matrix()),
}


def close_client(cluster, client):
    client.close()


def close_scheduler(cluster, client):
    cluster.sync(cluster.scheduler.close)


@pytest.mark.parametrize(
    ("name", "after", "accident"),
    [
        *((name, 8, close_client) for name in CALLS),
        ("fit", 60, close_client),
        ("fit", 60, close_scheduler),
        ("marcus_mapping", 8, close_scheduler),
    ],
)
def test_what_happened_is_said(cluster, monkeypatch, name, after, accident):
    count, threads, submit = [], [], Recorder.submit

    def watched(*given, **options):
        count.append(1)
        if len(count) == after:
            threads.append(threading.Thread(target=accident, args=cluster))
            threads[0].start()
        elif threads:
            time.sleep(0.01)  # the rest of the call must not be over before it happens
        return submit(*given, **options)

    monkeypatch.setattr(Recorder, "submit", watched)
    said = CLOSED if accident is close_client else LOST
    with pytest.raises(ClusterError, match=said) as raised:
        within_limit(CALLS[name])
    threads[0].join(LIMIT)
    assert isinstance(raised.value, ConnectionError)
    assert isinstance(raised.value, InputError)


def test_what_a_model_left_is_out_of_reach_without_a_scheduler(cluster):
    model = CALLS["fit"]()
    close_scheduler(*cluster)
    for name in ("affinity_matrix_", "scaling_", "embedding_", "_points"):
        with pytest.raises(ClusterError, match=LOST):
            within_limit(lambda name=name: getattr(model, name))


def test_tasks_that_are_cancelled(cluster):
    client = Recorder(cluster[1])
    future = client.submit(time.sleep, 0.2)
    cluster[1].cancel([future])
    with pytest.raises(ClusterError, match="Dask cancelled tasks"):
        within_limit(lambda: client.gather([future]))


def test_errors_of_tasks_are_passed_on(cluster):
    def read(block):
        raise FileNotFoundError("x.npy")

    X = points()[0].map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(FileNotFoundError, match=r"x\.npy"):
        within_limit(lambda: ANCMM(2).fit(X))


def lose(cluster, asked):
    """Let a worker go the moment it is asked for something."""
    worker = next(iter(cluster.workers.values()))
    gone = []

    async def go(comm, **given):
        comm.abort()
        gone.append(asyncio.ensure_future(worker.close()))

    worker.handlers[asked] = go
    return gone


@pytest.mark.parametrize("asked", ["plugin-add", "plugin-remove"])
def test_a_worker_may_go_when_memory_is_to_be_kept_or_given_back(cluster, asked):
    gone = lose(cluster[0], asked)
    X, y = points()
    labels = within_limit(lambda: ANCMM(2, n_neighbors=5).fit(X).labels_.compute())
    assert gone
    assert len(set(zip(y.tolist(), labels.tolist(), strict=True))) == 2


def test_a_worker_may_go_when_it_is_asked_for_its_device(cluster):
    pytest.importorskip("torch")
    gone = lose(cluster[0], "run")
    within_limit(lambda: _check_device(Recorder(cluster[1]), "cpu"))
    assert gone
