"""Clusters without tuning: the default beside its label-tuned best and its peers.

Run with ``BISTOCHASTIC_DATA=folder python benchmarks/quality.py results.json``, where
the folder has the paper's sets as npz files (X, y); without it only the shapes are run.
Rules fixed in advance: tables are z-scored, faces divided by 255, text is
(1 + ln tf) ln(n / df) with unit rows; shapes come with seeds 0 to 9. *Tuned* is the
best of k = 5 ... 60, found with the labels. With ``--ablation`` the parts of the
default are taken away one by one; ``--held-out`` has sets that no rule was chosen by:
shapes with seeds 20 to 29, the same with a third and with four times as many points,
and mixtures in 10 and 50 dimensions. A record is written after each set; ``--table``
prints tables of records that are there.
"""

import argparse
import json
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler, normalize

from bistochastic import ANCMM
from bistochastic.cluster.refinements import refined
from bistochastic.metrics import clustering_accuracy, normalized_mutual_information

TABLES = ("letter", "wine", "movement", "ecoli", "yeast", "yeast_1470")
FACES = ("orl", "yale", "yale_32x32", "feret", "feret_dup", "arsmall")
LARGEST = 1500  # rows
KS = range(5, 61)
REFINED = "bistochastic.cluster.trials.refined"


def spirals(rng, n):
    t = np.sqrt(rng.uniform(0.05, 1, n)) * 3 * np.pi
    y = np.arange(n) % 2
    X = np.c_[t * np.cos(t + np.pi * y), t * np.sin(t + np.pi * y)] / 10
    return X + 0.02 * rng.standard_normal(X.shape), y


def shapes(seed, times=1):
    """Return the shapes by name, with so many times as many points."""
    rng = np.random.default_rng(seed)
    n, m, sizes = 400 * times, 450 * times, [300 * times, 60 * times, 30 * times]
    made = {
        "moons .08": make_moons(n, noise=0.08, random_state=seed),
        "moons .13": make_moons(n, noise=0.13, random_state=seed),
        "circles": make_circles(n, noise=0.06, factor=0.5, random_state=seed),
        "spirals": spirals(rng, n),
        "varied": make_blobs(m, cluster_std=[0.5, 1.0, 2.5], random_state=seed),
        "unequal": make_blobs(sizes, cluster_std=1.0, random_state=seed),
    }
    X, y = make_blobs(n, centers=3, random_state=seed)
    made["anisotropic"] = X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y
    made["t(2) noise"] = X + rng.standard_t(2, X.shape) * 0.5, y
    far = rng.uniform(X.min() - 5, X.max() + 5, (20 * times, 2))
    near = ((far[:, None] - X[None]) ** 2).sum(-1).argmin(axis=1)
    made["outliers"] = np.concatenate([X, far]), np.concatenate([y, y[near]])
    return made


def prepared(name, X):
    """Scale a set by the rule for its kind."""
    X = np.asarray(X, dtype=float)
    if name in FACES:
        return X / 255
    if name in TABLES:
        return StandardScaler().fit_transform(X)
    X = X[:, (X > 0).any(axis=0)]
    idf = np.log(X.shape[0] / (X > 0).sum(axis=0))
    return normalize(np.where(X > 0, 1 + np.log(np.maximum(X, 1)), 0) * idf)


def scored(y, labels):
    score = clustering_accuracy(y, labels), normalized_mutual_information(y, labels)
    return [round(100 * value, 2) for value in score]


def timed(model, X, y):
    start = time.perf_counter()
    labels = model.fit(X).labels_
    return [*scored(y, labels), round(time.perf_counter() - start, 3)]


def peers(c, neighbors=10):
    return {
        "K-Means": KMeans(c, n_init=30, random_state=0),
        "Spectral": SpectralClustering(
            c, affinity="nearest_neighbors", n_neighbors=neighbors, random_state=0
        ),
        "HDBSCAN": HDBSCAN(copy=True),
    }


VARIANTS = {
    "default": {},
    "both": {"refine": "both"},
    "triangles": {"refine": "triangles"},
    "local": {"refine": "local"},
    "no unit rows": {},
    "no floor": {"min_cluster_size": 1},
    "k = 15": {"n_neighbors": 15},
    "paper's rows": {"refine": None},
    "and lambda = alpha": {"refine": None},
}
PAIRS = (("paper's rows", "and lambda = alpha"),)  # besides those with the first


def without_unit_rows(problem, way, making):
    problem, way = refined(problem, way, making)
    return replace(problem, unit=False), way


def varied(variant, c, X):
    """Make the estimator of an ablation."""
    options = dict(VARIANTS[variant])
    if variant == "and lambda = alpha":
        first = ANCMM(c, exact=False, refine=None, n_neighbors=15, max_iter=1)
        options["penalty"] = float(first.fit(X).alpha_[0])
    return ANCMM(c, **options)


def record(name, X, y, ablation, tune):
    """Run everything on one set."""
    warnings.simplefilter("ignore")
    c = len(np.unique(y))
    made = {"set": name, "n": len(X), "c": c}
    if ablation:
        for variant in VARIANTS:
            model = varied(variant, c, X)
            plain = variant == "no unit rows"
            with patch(REFINED, without_unit_rows if plain else refined):
                made[variant] = timed(model, X, y)
            made[variant].append(model.n_iter_)
        return made
    made["ANCMM"] = timed(ANCMM(c), X, y)
    for peer, model in peers(c).items():
        made[peer] = timed(model, X, y)
    if not tune:
        return made
    tuned = np.array(
        [
            scored(y, ANCMM(c, n_neighbors=k).fit(X).labels_)
            for k in KS
            if k < len(X) - 1
        ]
    )
    made["tuned"] = [*tuned.max(axis=0).tolist(), 0.0]
    return made


def sets():
    """Yield name, X and y of every set, the slow ones last."""
    for seed in range(10):
        for name, (X, y) in shapes(seed).items():
            yield f"{name}, {seed}", X, y
    folder = os.environ.get("BISTOCHASTIC_DATA")
    for name in (
        *TABLES,
        "yale",
        "yale_32x32",
        "orl",
        "tr41",
        "feret",
        "feret_dup",
        "arsmall",
    ):
        file = Path(folder or ".") / f"{name}.npz"
        if folder and file.is_file():
            held = np.load(file)
            if len(held["y"]) <= LARGEST:
                yield name, prepared(name, held["X"]), held["y"]
        else:
            print(f"{name}: not there; set BISTOCHASTIC_DATA")


def mixture(seed, d, c, n=800):
    """Draw unequal Gaussian clusters that overlap a little."""
    rng = np.random.default_rng(seed)
    y = rng.choice(c, n, p=rng.dirichlet(np.full(c, 3.0)))
    y[:c] = np.arange(c)
    return 2 * rng.standard_normal((c, d))[y] / d**0.25 + rng.standard_normal((n, d)), y


def held_out():
    """Yield sets that no rule was chosen by."""
    for seed in range(20, 30):
        rng = np.random.default_rng(seed)
        for name, (X, y) in shapes(seed).items():
            yield f"{name}, {seed}", X, y
            few = np.sort(rng.permutation(len(X))[: len(X) // 3])
            yield f"{name} (a third), {seed}", X[few], y[few]
        for d, c in ((10, 6), (50, 20)):
            yield f"mixture d={d}, {seed}", *mixture(seed, d, c)
        if seed < 23:
            for name, (X, y) in shapes(seed, times=4).items():
                yield f"{name} (four times), {seed}", X, y


def tabulated(records):
    """Print means over the sets, shapes and data apart, and paired differences."""
    columns = [key for key in records[0] if key not in ("set", "n", "c")]
    groups = {}
    for made in records:
        name = made["set"].rsplit(", ", 1)[0]
        groups.setdefault(name, []).append(made)
    print("| set | n | c | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 3) + "|")
    means = []
    for name, group in groups.items():
        row = [np.mean([made[key][:2] for made in group], axis=0) for key in columns]
        means.append(row)
        cells = " | ".join(f"{a:.1f} / {b:.1f}" for a, b in row)
        print(f"| {name} | {group[0]['n']} | {group[0]['c']} | {cells} |")
    cells = " | ".join(f"{a:.1f} / {b:.1f}" for a, b in np.mean(means, axis=0))
    print(f"| **mean** |  |  | {cells} |")
    means = np.array(means)  # sets, methods, (ACC, NMI)
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(means), (10_000, len(means)))
    print("\nDifferences, means over the sets with 95 % intervals:")
    pairs = [(columns[0], other) for other in columns[1:]]
    for one, other in (*pairs, *(pair for pair in PAIRS if pair[1] in columns)):
        gap = means[:, columns.index(one)] - means[:, columns.index(other)]
        low, high = np.quantile(gap[draws].mean(axis=1), [0.025, 0.975], axis=0)
        middle = gap.mean(axis=0)
        print(
            f"  {one + ' less ' + other:<36} "
            f"ACC {middle[0]:+5.1f} [{low[0]:+.1f}, {high[0]:+.1f}]   "
            f"NMI {middle[1]:+5.1f} [{low[1]:+.1f}, {high[1]:+.1f}]"
        )
    if len(records[0][columns[0]]) > 3:
        steps = [np.mean([made[key][3] for made in records]) for key in columns]
        pairs = zip(columns, steps, strict=True)
        print("Steps: " + ", ".join(f"{key} {value:.1f}" for key, value in pairs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if not given.table:
        records, chosen = [], held_out() if given.held_out else sets()
        runs = Parallel(n_jobs=given.jobs, return_as="generator_unordered")(
            delayed(record)(name, X, y, given.ablation, not given.held_out)
            for name, X, y in chosen
        )
        for made in runs:
            records.append(made)
            given.file.write_text(json.dumps(records, indent=0))
            print(f"{len(records)}: {made['set']}", flush=True)
    tabulated(json.loads(given.file.read_text()))


if __name__ == "__main__":
    main()
