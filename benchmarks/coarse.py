"""The loop on aggregates first, beside the loop on all points from the start.

Run with ``python benchmarks/coarse.py`` (``--problems 50``): random problems with known
clusters, 1,500 to 12,000 points, by both; how many partitions are the same, a table of
those that differ with the accuracy of each, and the seconds of both.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons, make_swiss_roll
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM
from bistochastic.cluster import coarse


def problem(seed):
    """Return a name, points, labels and the number of clusters."""
    rng = np.random.default_rng(seed)
    n = int(1500 * 8 ** rng.random())
    kind = ("blobs", "uneven", "moons", "circles", "roll", "overlap")[seed % 6]
    if kind == "moons":
        return kind, *make_moons(n, noise=rng.uniform(0.03, 0.12), random_state=seed), 2
    if kind == "circles":
        noise = rng.uniform(0.03, 0.09)
        return kind, *make_circles(n, noise=noise, factor=0.5, random_state=seed), 2
    if kind == "roll":
        X, t = make_swiss_roll(n, noise=0.2, random_state=seed)
        return kind, X, np.digitize(t, np.quantile(t, [0.25, 0.5, 0.75])), 4
    c, d = int(rng.integers(3, 25)), int(rng.integers(2, 20))
    shares = rng.dirichlet(np.full(c, 3.0 if kind == "uneven" else 1e6))
    sizes = np.maximum(20, (n * shares).astype(int)).tolist()
    spread = rng.uniform(2.5, 4.0) if kind == "overlap" else rng.uniform(0.8, 2.0)
    centers = rng.uniform(-10, 10, (c, d))
    X, y = make_blobs(sizes, d, centers=centers, cluster_std=spread, random_state=seed)
    return kind, X, y, c


def fitted(X, c, worth):
    """Return labels and seconds."""
    coarse.WORTH = worth
    begin = time.perf_counter()
    labels = ANCMM(c).fit(X).labels_
    return labels, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=50)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    usual, same, rows, seconds, scores = coarse.WORTH, 0, [], [], []
    for seed in range(given.problems):
        kind, X, y, c = problem(seed)
        (here, fast), (there, slow) = (fitted(X, c, w) for w in (usual, np.inf))
        seconds.append((fast, slow))
        index = adjusted_rand_score(here, there)
        quality = adjusted_rand_score(y, here), adjusted_rand_score(y, there)
        scores.append(quality)
        same += index == 1
        if index < 1:
            rows.append((seed, kind, len(X), X.shape[1], c, index, *quality))
    coarse.WORTH = usual
    print(f"{same} of {given.problems} partitions are the same")
    print("| problem | kind | n | d | c | ARI of both | to the truth | without |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(f"{x:.3f}" if isinstance(x, float) else str(x)
                                for x in row) + " |")  # fmt: skip
    mean = np.mean(scores, axis=0)
    total = np.sum(seconds, axis=0)
    print(f"mean ARI to the truth {mean[0]:.4f}, without aggregates {mean[1]:.4f}")
    print(f"{total[0]:.1f} s, without aggregates {total[1]:.1f} s")


if __name__ == "__main__":
    main()
