"""What workers keep while a fit goes on, and give back."""

import os

import numpy as np
import pytest
from sklearn.datasets import make_moons

from bistochastic import ANCMM

pytest.importorskip("distributed")
import dask.array as da
from distributed import Client

from conftest import local_cluster


def test_workers_give_back_what_a_fit_kept(client):
    from bistochastic.places.dask_workers.block import SCRATCH

    X, _ = make_moons(200, noise=0.05, random_state=0)
    ANCMM(2, n_neighbors=8).fit(da.from_array(X, chunks=(100, 2)))
    assert not SCRATCH


def test_memory_is_kept_only_while_a_fit_goes_on():
    from bistochastic.places.dask_workers.worker_memory import ASKED, keeping

    def worked():
        """Return how many pages were needed anew, and what is held after all."""
        import resource

        import psutil

        def pages():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

        for _ in range(50):
            np.ones(1 << 17)
        before = pages()
        for _ in range(200):
            np.ones(1 << 17)
        found = pages() - before
        many = [np.ones(1 << 17) for _ in range(40)]
        del many
        return found, psutil.Process().memory_info().rss

    with (
        local_cluster(n_workers=1, processes=True, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        (asked,) = client.run(os.environ.get, ASKED).values()
        if asked is None:
            pytest.skip("Dask does not tell the C library to give memory back")
        before, _ = client.submit(worked, pure=False).result()
        with keeping(client, freed=True):
            kept, held = client.submit(worked, pure=False).result()
        (after,) = client.run(
            lambda dask_worker: dask_worker.monitor.proc.memory_info().rss
        ).values()
    assert before > 20_000  # 256 pages of 4 kB each time
    assert kept < before / 10
    assert after < held - 30 * 2**20
