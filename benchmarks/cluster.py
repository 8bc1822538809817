"""Fits on a Dask cluster: the same result, what it costs, and what it survives.

Run with ``python benchmarks/cluster.py``; ``--parts`` takes some of *same* (ten data
sets in 1 to 8 partitions, against one machine), *killed* (a worker dies at three
moments), *memory* (a graph larger than what a worker may hold), *overhead* (200,000
points on two workers, against one process), *bytes* (what a product sends, against
what it must) and, only if asked for, *devices* (workers that share a GPU). Workers are
processes of their own. ``BISTOCHASTIC_DATA`` may name a folder with the sets of the
paper; ``--record file.json`` keeps the numbers.
"""

import argparse
import os
import signal
import threading
import time
import warnings

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM
from bistochastic.core.progress import heard
from printed import INTO, Table


def cluster(workers, **options):
    """Start workers, one thread each, in processes of their own."""
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", **options
    )


def divided(n, number, rng):
    """Return sizes of blocks, unequal, one of them empty if there are three or more."""
    ends = np.sort(rng.choice(n - 1, number - 1, replace=False) + 1)
    sizes = np.diff(np.concatenate([[0], ends, [n]]))
    if number > 2:
        at = int(rng.integers(number - 1))
        sizes[at + 1] += sizes[at]
        sizes[at] = 0
    return tuple(int(size) for size in sizes)


def same(_):
    """Compare labels with those of one machine; partitions are not joined."""
    from bistochastic.datasets import load

    names = ["tr41", "orl", "arsmall", "letter", "yale", "wine", "feret", "movement"]
    made = Table("Ten data sets", "set", "n", "c", "partitions", "same labels", "s")
    rng = np.random.default_rng(0)
    apart = dask.config.set({"bistochastic.blocks": "chunks"})
    with cluster(2) as workers, Client(workers), apart:
        for name in [*names, "ecoli", "yeast"]:
            try:
                held = load(name)
            except (OSError, ValueError) as error:
                made.row(name, "", "", "", str(error)[:60], "")
                continue
            X = np.asarray(held.data, dtype=float)
            width = np.ptp(X, axis=0)
            X = (X - X.min(axis=0)) / np.where(width > 0, width, 1.0)
            c = len(np.unique(held.target))
            here = ANCMM(c, n_neighbors=10).fit(X)
            for number in (1, 2, 5, 8):
                sizes = divided(len(X), number, rng)
                begin = time.perf_counter()
                Z = da.from_array(X, chunks=(sizes, X.shape[1]))
                there = ANCMM(c, n_neighbors=10).fit(Z)
                equal = bool((there.labels_.compute() == here.labels_).all())
                seconds = time.perf_counter() - begin
                made.row(name, len(X), c, str(sizes), equal, seconds)


def blobs(n, spread=5.0):
    return make_blobs(n, 16, centers=20, cluster_std=spread, random_state=0)


def killed(_):
    """Kill a worker in the middle of a fit."""
    X, _y = blobs(30_000)
    made = Table("A worker killed", "when", "same labels", "s", "s, undisturbed")
    options = {"n_clusters": 20, "n_neighbors": 15, "neighbors": "exact"}
    for when in ("search", 1, 5):
        with cluster(3) as workers, Client(workers) as client:
            Z = da.from_array(X, chunks=(5_000, 16))
            begin = time.perf_counter()
            whole = ANCMM(**options).fit(Z).labels_.compute()
            quiet = time.perf_counter() - begin
            victims = list(workers.workers.values())[:1]
            done = []

            def strike(progress, victims=victims, when=when, done=done):
                if progress is None or (progress.step == when and not done):
                    done.append(progress)
                    os.kill(victims[0].process.pid, signal.SIGKILL)

            begin = time.perf_counter()
            if when == "search":
                threading.Thread(target=_when_searching, args=(client, strike)).start()
                labels = ANCMM(**options).fit(Z).labels_.compute()
            else:
                with heard(strike):
                    labels = ANCMM(**options).fit(Z).labels_.compute()
            seconds = time.perf_counter() - begin
            assert done, "nobody was killed"
            word = when if when == "search" else f"after step {when}"
            made.row(word, bool((labels == whole).all()), seconds, quiet)


def _when_searching(client, strike):
    """Strike when a worker is looking for neighbors."""
    while not any(
        "-own-" in str(key) or "-search-" in str(key)
        for keys in client.processing().values()
        for key in keys
    ):
        time.sleep(0.01)
    strike(None)


def peaks(client):
    """Return the most memory that a worker has used."""
    import resource

    used = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return max(used.values())


def spilled(client):
    """Return how much workers have written to disk, in MiB."""
    found = client.run(
        lambda dask_worker: getattr(dask_worker.data, "spilled_total", (0, 0))[1]
    )
    return sum(float(value) for value in found.values()) / 2**20


def memory(_):
    """Fit a graph that no worker could hold."""
    n, limit, number = 600_000, 500 * 2**20, 20
    head = ["n", "graph, MiB", "limit of a worker, MiB", "workers", "largest, MiB"]
    made = Table("Memory", *head, "client grew by, MiB", "on disk, MiB", "s")
    import psutil

    with cluster(number, memory_limit=limit) as workers, Client(workers) as client:
        X = da.concatenate([_moons(seed, n // 24) for seed in range(24)])
        own = psutil.Process()
        before = own.memory_info().rss
        begin = time.perf_counter()
        model = ANCMM(2, n_neighbors=60, refine=None).fit(X)
        seconds = time.perf_counter() - begin
        grew = (own.memory_info().rss - before) / 2**20
        most, disk = peaks(client), spilled(client)
        S = model.affinity_matrix_  # fetched only now
        graph = (S.data.nbytes + S.indices.nbytes) / 2**20
        made.row(n, graph, limit / 2**20, number, most, grew, disk, seconds)


def _moons(seed, rows):
    """Return points of two half circles, drawn by a task."""
    from dask import delayed

    def drawn(seed, rows):
        from sklearn.datasets import make_moons

        return make_moons(rows, noise=0.04, random_state=seed)[0]

    return da.from_delayed(delayed(drawn)(seed, rows), (rows, 2), float)


def overhead(_):
    """Time 200,000 points, and more partitions."""
    n = 200_000
    X, y = blobs(n)
    head = ["vectors", "partitions", "blocks", "s", "times one process"]
    made = Table("Overhead", *head, "steps", "recall", "ARI to the truth")
    alone, here, score = _clocked(X, X[:30_000], y)
    recall = float(here.history_[0]["recall"])
    made.row("one process", "", "", alone, 1.0, here.n_iter_, recall, score)
    for number, where, blocks in (
        (2, "workers", "auto"),
        (2, "caller", "auto"),
        (4, "workers", "auto"),
        (8, "workers", "auto"),
        (4, "workers", "chunks"),
        (8, "workers", "chunks"),
        (16, "workers", "chunks"),
        (2, "workers", "auto"),
    ):
        with (
            cluster(2) as workers,
            Client(workers),
            dask.config.set(
                {"bistochastic.vectors": where, "bistochastic.blocks": blocks}
            ),
        ):
            few = da.from_array(X[:30_000], chunks=(15_000, 16))
            Z = da.from_array(X, chunks=(n // number, 16))
            seconds, there, score = _clocked(Z, few, y)
            recall = float(there.history_[0]["recall"])
            ratio = seconds / alone
            steps = there.n_iter_
            made.row(where, number, blocks, seconds, ratio, steps, recall, score)


def devices(_):
    """Time workers that share a GPU, against one process on it, and without it."""
    head = ["n", "where", "device", "s", "steps", "ARI to the truth"]
    made = Table("Workers with GPUs", *head)
    for n, device in ((100_000, None), (100_000, "cuda"), (1_000_000, "cuda")):
        X, y = blobs(n)
        seconds, model, score = _clocked(X, X[:30_000], y, device=device)
        made.row(n, "one process", str(device), seconds, model.n_iter_, score)
        with cluster(2) as workers, Client(workers):
            Z = da.from_array(X, chunks=(n // 2, 16))
            seconds, model, score = _clocked(Z, Z[:30_000], y, device=device)
        made.row(n, "workers", str(device), seconds, model.n_iter_, score)


def _clocked(X, few, y, **options):
    """Return the seconds of a fit after one that compiles, the model, its quality."""
    ANCMM(20, n_neighbors=15, **options).fit(few)
    begin = time.perf_counter()
    model = ANCMM(20, n_neighbors=15, **options).fit(X)
    seconds = time.perf_counter() - begin
    return seconds, model, float(adjusted_rand_score(y, np.asarray(model.labels_)))


def sent_by_products(_):
    """Count what products send."""
    from bistochastic.places.dask_workers.blocks import Blocks
    from bistochastic.places.dask_workers.layout import Layout

    head = ["partitions", "rows", "entries sent", "entries that must be"]
    made = Table(
        "Bytes of a product", *head, "bytes measured", "times 8 bytes of these"
    )
    X, _y = blobs(200_000, 2.5)
    S = ANCMM(20, n_neighbors=15).fit(X).affinity_matrix_
    order = np.argsort(ANCMM(20, n_neighbors=15).fit(X).labels_, kind="stable")
    S = S[order][:, order]
    for number in (2, 4, 8):
        with cluster(number) as workers, Client(workers) as client:
            sizes = np.diff(np.linspace(0, S.shape[0], number + 1).astype(int))
            held = Blocks.of(Layout(client, sizes), S)
            u = held.apply(held.ones())
            float(u.T @ u)
            least = _boundary(S, sizes)
            before = _outgoing(client)
            for _ in range(20):
                u = held.apply(u)
            client.gather([held.layout.submit("wait", k, len, block)
                           for k, block in enumerate(u.blocks())])  # fmt: skip
            time.sleep(1.0)
            moved = (_outgoing(client) - before) / 20
            must = 8.0 * max(least, 1)
            sent = held.exchange.sent
            made.row(number, S.shape[0], sent, least, moved, moved / must)


def _boundary(S, sizes):
    """Count the rows that blocks need of others, by brute force."""
    ends = np.cumsum(sizes)
    number = 0
    for a, b in zip(ends - sizes, ends, strict=True):
        columns = np.unique(S[a:b].indices)
        number += int(((columns < a) | (columns >= b)).sum())
    return number


def _outgoing(client):
    sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(sent.values())


def main():
    """Run what is asked for."""
    parts = {
        "overhead": overhead,
        "bytes": sent_by_products,
        "killed": killed,
        "memory": memory,
        "same": same,
        "devices": devices,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts)[:-1])
    parser.add_argument("--record")
    asked = parser.parse_args()
    INTO.extend([asked.record] if asked.record else [])
    warnings.simplefilter("ignore")
    for part in asked.parts:
        parts[part](asked)


if __name__ == "__main__":
    main()
