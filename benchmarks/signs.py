"""What the page's verdict says of clouds without clusters, and of sets with some.

    python benchmarks/signs.py

96 clouds, uniform and normal, of 2 to 10 dimensions, cut into 2 to 6 clusters: how many
are called good? And how are sets called that have clusters?
"""

import warnings
from collections import Counter

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.preprocessing import scale

from bistochastic import ANCMM
from bistochastic.report.geometry import sureness
from bistochastic.report.subject import Run
from bistochastic.report.verdict import signs, verdict


def judged(X, c):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ANCMM(c, random_state=0).fit(X)
    found = signs(Run(model, X), sureness(model, X))
    return verdict(found)[0], ", ".join(f"{s['name']} {s['value']}" for s in found)


def clouds():
    for kind in ("uniform", "normal"):
        for d in (2, 3, 5, 10):
            for n in (400, 1500):
                for c in (2, 4, 6):
                    for seed in (0, 1):
                        rng = np.random.default_rng([seed, n, c, d])
                        draw = rng.random if kind == "uniform" else rng.standard_normal
                        yield kind, draw((n, d)), c


def sets():
    yield "wine", scale(load_wine().data), 3
    yield "digits", load_digits().data, 10
    yield "breast cancer", scale(load_breast_cancer().data), 2
    yield "iris, 3", scale(load_iris().data), 3
    yield "iris, 2", scale(load_iris().data), 2
    yield "moons .08", make_moons(400, noise=0.08, random_state=0)[0], 2
    yield "moons .13", make_moons(400, noise=0.13, random_state=0)[0], 2
    yield "circles", make_circles(600, factor=0.5, noise=0.05, random_state=0)[0], 2
    yield "blobs", make_blobs(1000, 5, centers=5, random_state=0)[0], 5
    yield "5 blobs cut into 8", make_blobs(1000, 5, centers=5, random_state=0)[0], 8
    overlapping = make_blobs(2000, 16, centers=20, cluster_std=5, random_state=0)[0]
    yield "overlapping blobs", overlapping, 20


def main():
    counts = {}
    for kind, X, c in clouds():
        counts.setdefault(kind, Counter())[judged(X, c)[0]] += 1
    for kind, found in counts.items():
        print(f"{kind} clouds: {dict(found)}")
    for name, X, c in sets():
        level, said = judged(X, c)
        print(f"{name}: {level} ({said})")


if __name__ == "__main__":
    main()
