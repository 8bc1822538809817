"""
A million points
================

Twenty clusters of a million points in 16 columns, on a laptop's worth of memory. What
keeps it small: 15 neighbors of each point, found by an approximate search, and no
matrix that is not sparse. float32 in, float32 kept.

Set the environment variable ``BISTOCHASTIC_POINTS`` for another number of points. The
gallery is built with 100,000; a million takes one to three minutes and some 3 GB on two
cores.
"""

import os
import resource
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from bistochastic import ANCMM
from bistochastic.metrics import clustering_accuracy

n = int(os.environ.get("BISTOCHASTIC_POINTS", "1_000_000"))
X, y = make_blobs(n, 16, centers=20, cluster_std=4.0, random_state=0)
X = X.astype(np.float32)
print(f"{n:,} points, {X.nbytes / 2**20:.0f} MB")


def peak():
    """Return the largest memory of this process so far, in MB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)


# %%
# One number of neighbors is given: ``"auto"`` would fit several, for some four times
# as long. K-Means stands by. These clusters are round and of equal size: for such it is
# made, is as accurate, and far faster. A graph pays where clusters are not round.

ANCMM(20, n_neighbors=15).fit(X[:12_000])  # compiles and loads, and is not counted
before = peak()
results = {}
for name, model in {
    "ANCMM": ANCMM(20, n_neighbors=15, random_state=0),
    "K-Means": KMeans(20, n_init=3, random_state=0),
}.items():
    start = time.perf_counter()
    labels = model.fit_predict(X)
    seconds = time.perf_counter() - start
    results[name] = model
    right = clustering_accuracy(y, labels)
    print(f"{name:<8} {seconds:6.1f} s, accuracy {right:.3f}, peak {peak():.0f} MB")
model = results["ANCMM"]
print(f"{before:.0f} MB before; {model.n_components_} components")

# %%
# Where the time goes. ``history_`` has the seconds of each step: the first one has the
# search for neighbors in it, and the others make a graph each, with a larger penalty,
# until it falls apart.

history = model.history_
for number, record in enumerate(history, 1):
    what = "search and first graph" if number == 1 else "a graph"
    print(
        f"step {number}: {record['seconds']:6.2f} s, {what}, "
        f"components: {record['n_components']}"
    )
print(f"share of the true neighbors that the search found: {history[0]['recall']:.3f}")

# %%
# A picture of 20,000 of the rows.

rng = np.random.default_rng(0)
some = rng.choice(n, min(n, 20_000), replace=False)
plane = PCA(2, random_state=0).fit_transform(X[some])
figure, (left, right) = plt.subplots(
    1, 2, figsize=(12, 4.8), layout="constrained", width_ratios=(1.3, 1)
)
left.scatter(*plane.T, c=model.labels_[some], s=2, cmap="tab20", linewidths=0)
left.set(
    title=f"{some.size:,} of {n:,} points, in two of 16 dimensions",
    xticks=[],
    yticks=[],
)
steps = np.arange(1, len(history) + 1)
right.bar(steps, [record["seconds"] for record in history], color="0.75")
right.set(xlabel="step", ylabel="seconds", title="Seconds and components by step")
other = right.twinx()
number = [record["n_components"] for record in history]
other.step(steps, number, where="mid", color="#d9660a")
other.set_ylabel("components", color="#d9660a")
other.set_ylim(0, 21)
other.yaxis.get_major_locator().set_params(integer=True)
plt.show()
