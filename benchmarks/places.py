"""Every method with the rank constraint, on every place, against the host.

    python benchmarks/places.py cuda            a GPU, by torch
    python benchmarks/places.py cpu             torch on the CPU
    python benchmarks/places.py dask            two workers of Dask in this process

For 20 problems: how often labels are those of the host, and the seconds of one larger
fit as a ratio to ANCMM with one number of neighbors, in the same place and run.
"""

import argparse
import time
import warnings
from functools import partial

import numpy as np
from sklearn.datasets import make_blobs, make_moons

from bistochastic import ANCMM, CAN, CLR, ERCAN, PCAN

K = 10
METHODS = {
    "ANCMM": partial(ANCMM, n_neighbors=K),
    "CAN": partial(CAN, n_neighbors=K),
    "CAN global": partial(CAN, n_neighbors=K, candidates="global"),
    "CLR": partial(CLR, n_neighbors=K),
    "CLR l1": partial(CLR, n_neighbors=K, norm="l1"),
    "CLR global": partial(CLR, n_neighbors=K, candidates="global"),
    "ERCAN": partial(ERCAN, eta=0.1),
    "PCAN": partial(PCAN, n_neighbors=K),
    "PCAN local": partial(PCAN, n_neighbors=K, candidates="local"),
}
LARGE = ("ANCMM", "CAN", "CLR", "ERCAN")  # those whose memory grows like n


def problem(seed):
    """Return points and a number of clusters."""
    n, c = 300 + 10 * seed, 2 + seed % 4
    if seed % 5 == 4:
        return make_moons(n, noise=0.06, random_state=seed)[0], 2
    std = 1.0 + 0.1 * (seed % 5)
    return make_blobs(n, 4, centers=c, cluster_std=std, random_state=seed)[0], c


def fit(place, make, X, c, client):
    """Return labels from a place, and the seconds."""
    options = {} if place in ("host", "dask") else {"device": place}
    if place == "dask":
        import dask.array as da

        X = da.from_array(X, chunks=(-(-len(X) // 2), X.shape[1]))
    start = time.perf_counter()
    labels = make(c, **options).fit(X).labels_
    labels = labels.compute() if place == "dask" else labels
    return np.asarray(labels), time.perf_counter() - start


def main():
    """Print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("place", choices=["cuda", "cpu", "dask"])
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--points", type=int, default=100_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    client = None
    if given.place == "dask":
        from distributed import Client

        client = Client(processes=False, n_workers=2, threads_per_worker=1,
                        dashboard_address=None)  # fmt: skip
    X, _ = make_blobs(given.points, 16, centers=20, cluster_std=2.5, random_state=0)
    unit = None
    for name, make in METHODS.items():
        same = 0
        for seed in range(given.problems):
            points, c = problem(seed)
            here, _ = fit("host", make, points, c, None)
            there, _ = fit(given.place, make, points, c, client)
            same += np.array_equal(here, there)
        line = (
            f"{name:11} {given.place}: {same}/{given.problems} with the host's labels"
        )
        if name in LARGE and given.points:
            fit(given.place, make, X, 20, client)  # what is compiled once
            _, seconds = fit(given.place, make, X, 20, client)
            unit = unit or seconds
            line += (
                f"; {len(X):,} points {seconds:.2f} s, {seconds / unit:.2f} of ANCMM"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
