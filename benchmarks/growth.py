"""How the cost of each stage of ANCMM grows with the number of points.

Run with ``python benchmarks/growth.py [largest]``, 1,000,000 by default, some ten
minutes: blobs in 16 dimensions, 20 clusters, k = 15, at 1,000, 10,000, ... points. Each
fit runs in a process of its own. A stage is named after the function that does it;
those of the loop are seconds a step, since the number of steps is not the same.
``--profile n`` prints the costliest compiled loops of one fit instead, the bytes that
each has to move at least, and how fast that is beside a plain copy by the same threads.
"""

import argparse
import cProfile
import json
import math
import pstats
import resource
import subprocess
import sys
import time
import warnings

import numpy as np

STAGES = {
    "order": ["ancmm.py:_ordered"],
    "search": ["search.py:neighbors_of"],
    "rows": ["costs.py:weigh", "costs.py:plus"],
    "symmetrized": ["costs.py:symmetrized"],
    "scaling": ["steps.py:diagonal_of"],
    "spectrum": ["ky_fan.py:ky_fan"],
    "components": ["components.py:components"],
    "objective": ["steps.py:objective"],
}
LOOP = ("rows", "symmetrized", "scaling", "spectrum", "components", "objective")


def fit(n, spread):
    """Fit once under a profiler; return the model, its seconds and the profile."""
    from sklearn.datasets import make_blobs

    from bistochastic import ANCMM

    warnings.simplefilter("ignore")
    X, _ = make_blobs(n, 16, centers=20, cluster_std=spread, random_state=0)
    few, _ = make_blobs(12_000, 16, centers=5, random_state=0)
    ANCMM(5, n_neighbors=15).fit(few)  # loads what is compiled
    profile = cProfile.Profile()
    start = time.perf_counter()
    model = profile.runcall(ANCMM(20, n_neighbors=15).fit, X)
    return model, time.perf_counter() - start, pstats.Stats(profile).stats


def _named(stats):
    for (file, _, name), (_, calls, own, total, _) in stats.items():
        yield f"{file.rsplit('/', 1)[-1]}:{name}", calls, own, total


def one(n, spread):
    """Print a record of one fit."""
    model, whole, stats = fit(n, spread)
    totals = {}
    for name, _, _, total in _named(stats):
        totals[name] = totals.get(name, 0.0) + total
    seconds = {k: sum(totals.get(f, 0.0) for f in v) for k, v in STAGES.items()}
    seconds["rest"] = whole - sum(seconds.values())
    seconds["whole"] = whole
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for name in LOOP:
        seconds[f"{name} a step"] = seconds.pop(name) / model.n_iter_
    record = {"n": n, "steps": model.n_iter_, "number": model.n_components_}
    record |= {"recall": model.history_[0]["recall"], "gigabytes": peak}
    print(json.dumps(record | seconds))


def table(largest, spread):
    """Print the seconds of each stage, and the exponents of their growth."""
    records = []
    for power in range(3, round(math.log10(largest)) + 1):
        command = [sys.executable, __file__, "--one", str(10**power)]
        command += ["--spread", str(spread)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        records.append(json.loads(done.stdout.splitlines()[-1]))
    counts = [f"{record['n']:,}" for record in records]
    print("| stage | " + " | ".join(counts) + " | last tenfold | exponent |")
    print("|---|" + "---|" * (len(records) + 2))
    loop = [f"{name} a step" for name in LOOP]
    for name in ["order", "search", *loop, "rest", "whole", "gigabytes"]:
        values = [record[name] for record in records]
        cells = " | ".join(f"{value:.3g}" for value in values)
        late = [(r["n"], r[name]) for r in records if r["n"] >= 10_000 and r[name] > 0]
        slope = np.polyfit(*np.log(np.array(late)).T, 1)[0] if len(late) > 1 else 0.0
        last = values[-1] / values[-2] if values[-2] else math.nan
        print(f"| {name} | {cells} | {last:.1f} | {slope:.2f} |")
    for name in ("steps", "number", "recall"):
        cells = " | ".join(f"{record[name]:.4g}" for record in records)
        print(f"| {name} | {cells} | | |")


def bandwidth(size=1 << 27):
    """Return the bytes a second that all threads copy, reads and writes."""
    from numba import njit, prange

    @njit(parallel=True)
    def copy(a, b):
        for i in prange(a.size):
            b[i] = a[i]

    a, b = np.ones(size // 8), np.ones(size // 8)
    copy(a, b)
    best = math.inf
    for _ in range(7):
        start = time.perf_counter()
        copy(a, b)
        best = min(best, time.perf_counter() - start)
    return 2 * size / best


def profile(n, spread):
    """Print the costliest functions of one fit, and the traffic they cannot avoid."""
    copied = bandwidth()
    model, whole, stats = fit(n, spread)
    nnz = model.affinity_matrix_.nnz
    single, double = 4 * 24 * n, 8 * 23 * n  # a block
    table = 15 * n
    moved = {  # bytes a call: every array once, and if every row looked up is a miss
        "_three_term": (8 * nnz + 3 * single, nnz * 128),
        "_products": (12 * nnz + 2 * double, nnz * 192),
        "_offer_neighbors": (n * (2 * 18 * 9 + 15 * 5 + 64), n * (500 * 64 + 33 * 256)),
        "_offer_leaves": (n * (2 * 18 * 9 + 64 + 8), n * (128 * 64)),
        "_distances": (12 * table + 8 * 20 * n, table * 192),
        "_fill_halves": (nnz * (4 + 2 + 12) + 8 * table, 2 * nnz * 64),
        "_basis": (5 * double / 2, 0),
    }
    print(f"{n:,} points: {whole:.1f} s; a copy moves {copied / 1e9:.1f} GB/s")
    print("| function | calls | seconds | share | GB/s, arrays once | and lookups |")
    print("|---|---|---|---|---|---|")
    rows = sorted(_named(stats), key=lambda row: -row[2])[:10]
    for name, calls, own, _ in rows:
        once, lookups = moved.get(name.split(":")[1], (math.nan, math.nan))
        rates = (once * calls / own / 1e9, (once + lookups) * calls / own / 1e9)
        cells = " | ".join("" if math.isnan(rate) else f"{rate:.1f}" for rate in rates)
        print(f"| {name} | {calls} | {own:.1f} | {100 * own / whole:.0f} % | {cells} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("largest", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--one", type=int)
    parser.add_argument("--profile", type=int)
    parser.add_argument("--spread", type=float, default=2.5)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.spread)
    elif given.profile:
        profile(given.profile, given.spread)
    else:
        table(given.largest, given.spread)


if __name__ == "__main__":
    main()
