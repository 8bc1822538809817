"""Seconds, memory and quality beside the clusterers that people use now.

Run with ``python benchmarks/speed.py`` (``--sets digits moons``, ``--methods ...``,
``--repeats 3``, ``--record file.json``); ``BISTOCHASTIC_DATA`` may name a folder with
letter_full.npz. The million of points: ``--sets "blobs 1000000 2.5 16 20" "blobs
1000000 5 16 20" --methods ANCMM "faiss IVF" --repeats 1 --limit 3600``.
Every fit runs in a process of its own, with the same threads for all; the first fit of
a process, on 12,000 points, is not counted, so that nothing is compiled in it.
A peer that is not installed is left out, and said.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np

K = 15


def data(name):
    """Return points, labels and the number of clusters."""
    from sklearn.datasets import (
        load_digits,
        make_blobs,
        make_circles,
        make_moons,
        make_swiss_roll,
    )

    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "moons":
        X, y = make_moons(5_000, noise=0.05, random_state=0)
    elif name == "rings":
        X, y = make_circles(20_000, noise=0.05, factor=0.5, random_state=0)
    elif name == "swiss roll":
        X, t = make_swiss_roll(20_000, noise=0.2, random_state=0)
        y = np.digitize(t, np.quantile(t, [0.25, 0.5, 0.75]))
    elif name == "letter":
        file = Path(os.environ.get("BISTOCHASTIC_DATA", ".")) / "letter_full.npz"
        held = np.load(file)
        X, y = held["X"].astype(float), held["y"]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    else:  # "blobs 20000 2.5 16 20": points, spread, columns, clusters
        _, n, spread, d, c = name.split()
        X, y = make_blobs(
            int(n), int(d), centers=int(c), cluster_std=float(spread), random_state=0
        )
    return np.ascontiguousarray(X), y, len(np.unique(y))


def made(method, c):
    """Return an estimator, or a function of the data."""
    from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering

    from bistochastic import ANCMM, CAN

    if method.startswith("Spectral"):
        return SpectralClustering(
            c,
            affinity="nearest_neighbors",
            n_neighbors=K,
            eigen_solver=method.split()[1],
            random_state=0,
            n_jobs=-1,
        )
    if method == "fast_hdbscan":
        import fast_hdbscan

        return fast_hdbscan.HDBSCAN()
    if method == "genieclust":
        from genieclust import Genie

        return Genie(n_clusters=c)
    if method == "Leiden":
        return Leiden(c)
    if method == "faiss IVF":
        return InvertedFile()
    return {
        "ANCMM": lambda: ANCMM(c, n_neighbors=K),
        "ANCMM auto": lambda: ANCMM(c),
        "K-Means": lambda: KMeans(c, n_init=10, random_state=0),
        "HDBSCAN": lambda: HDBSCAN(copy=True, n_jobs=-1),
        "CAN": lambda: CAN(c, n_neighbors=K, candidates="global"),
    }[method]()


class Leiden:
    """Leiden on the graph of the nearest neighbors that ANCMM starts with.

    It has no number of clusters: the resolution is found by bisection, and only the
    last run is counted by `seconds_`.
    """

    def __init__(self, c):
        self.c = c

    def fit(self, X):
        """Find communities, as many as wanted if a resolution gives them."""
        import igraph
        import leidenalg
        from scipy.sparse import csr_array

        from bistochastic.neighbors.choose import neighbors_of
        from bistochastic.neighbors.points import Points

        begin = time.perf_counter()
        n = len(X)
        found = neighbors_of(Points.of(X, "euclidean"), min(K, n - 1))
        ends = np.arange(n + 1) * found.columns.shape[1]
        ones = np.ones(found.columns.size)
        A = csr_array((ones, found.columns.ravel(), ends), shape=(n, n))
        A = (A + A.T).tocoo()
        upper = A.row < A.col
        graph = igraph.Graph(n, np.c_[A.row[upper], A.col[upper]])
        made = time.perf_counter() - begin
        low, high = 1e-4, 10.0
        for _ in range(20):
            middle = (low * high) ** 0.5
            begin = time.perf_counter()
            parts = leidenalg.find_partition(
                graph,
                leidenalg.RBConfigurationVertexPartition,
                resolution_parameter=middle,
                seed=0,
            )
            self.seconds_ = made + time.perf_counter() - begin
            if len(parts) == self.c:
                break
            low, high = (middle, high) if len(parts) < self.c else (low, middle)
        self.labels_ = np.array(parts.membership)
        return self


class InvertedFile:
    """A search for neighbors by faiss with a recall of 0.95; no clusters."""

    def fit(self, X):
        """Search, and measure the distances."""
        from bistochastic.neighbors import choose
        from bistochastic.neighbors.points import Points

        choose.LISTED = 10**12
        found = choose.neighbors_of(Points.of(X, "euclidean"), K, how=0.95)
        self.labels_, self.recall_ = np.zeros(len(X), dtype=int), found.recall
        return self


METHODS = (
    "ANCMM", "ANCMM auto", "Spectral arpack", "Spectral lobpcg", "Spectral amg",
    "K-Means", "HDBSCAN", "fast_hdbscan", "genieclust", "Leiden",
)  # fmt: skip
SETS = (
    "digits", "moons", "blobs 20000 2.5 16 20", "blobs 20000 5 16 20", "letter",
    "rings", "swiss roll", "blobs 20000 5 64 20", "blobs 20000 5 256 20",
    "blobs 100000 2.5 16 20", "blobs 100000 5 16 20",
)  # fmt: skip


def one(name, method):
    """Fit once and print a record."""
    warnings.simplefilter("ignore")
    from bistochastic.metrics import (
        clustering_accuracy,
        normalized_mutual_information,
    )

    X, y, c = data(name)
    few = np.random.default_rng(0).permutation(len(X))[:12_000]
    made(method, min(c, 10)).fit(X[few])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    model = made(method, c).fit(X)
    seconds = getattr(model, "seconds_", time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = {
        "set": name,
        "method": method,
        "seconds": seconds,
        "megabytes": peak // 1024,
        "megabytes_before": before // 1024,
        "acc": 100 * clustering_accuracy(y, model.labels_),
        "nmi": 100 * normalized_mutual_information(y, model.labels_),
    }
    if hasattr(model, "history_"):
        record["components"] = model.n_components_
        record["steps"] = model.n_iter_
        record["recall"] = model.history_[0].get("recall")
    if hasattr(model, "recall_"):
        record["recall"] = model.recall_
    print(json.dumps(record))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, default=900, help="seconds a fit may take")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    if given.one:
        return one(*given.one)
    records = []
    stamp = datetime.now(UTC).strftime("%Y-%m-%d")
    print(f"{stamp}, {os.cpu_count()} cores, median of {given.repeats}")
    print("| set | method | seconds | MB | ACC | NMI | components |")
    print("|---|---|---|---|---|---|---|")
    needs = {"Spectral amg": "pyamg", "Leiden": "leidenalg", "faiss IVF": "faiss"}
    needs |= {m: m for m in ("fast_hdbscan", "genieclust")}
    for name in given.sets:
        for method in given.methods:
            if not find_spec(needs.get(method, "sklearn")):
                print(f"| {name} | {method} | not installed |", flush=True)
                continue
            runs = []
            for _ in range(given.repeats):
                try:
                    done = subprocess.run(
                        [sys.executable, __file__, "--one", name, method],
                        capture_output=True,
                        text=True,
                        check=True,
                        timeout=given.limit,
                    )
                except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
                    said = (getattr(e, "stderr", "") or str(e)).strip().splitlines()[-1]
                    print(f"| {name} | {method} | {said[:80]} |", flush=True)
                    break
                runs.append(json.loads(done.stdout.strip().splitlines()[-1]))
            if not runs:
                continue
            middle = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
            records.append(middle)
            print(
                f"| {name} | {method} | {middle['seconds']:.2f} "
                f"| {middle['megabytes']} | {middle['acc']:.1f} | {middle['nmi']:.1f} "
                f"| {middle.get('components', '')} |",
                flush=True,
            )
            if given.record:
                given.record.write_text(json.dumps({stamp: records}, indent=1))
    return None


if __name__ == "__main__":
    main()
