"""Compiled bodies beside the plain texts, and approximate neighbors beside exact ones.

Run with ``python benchmarks/same.py [number]``: the partitions of 50 random problems by
the plain array texts and by the compiled bodies, then quality against the recall of the
search, on three sets (letter_full.npz is found through ``BISTOCHASTIC_DATA``).
"""

import sys
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM, InputError
from bistochastic.metrics import clustering_accuracy, normalized_mutual_information
from bistochastic.places.host import csr
from bistochastic.spectrum.ky_fan import SMALL
from random_problems import problem
from speed import data

ALWAYS, NEVER = 0, 10**12


def partitions(number):
    """Print how many partitions are the same with and without compiled bodies."""
    same = tried = seed = 0
    usual = csr.COMPILED
    while tried < number:
        _, X, c, options = problem(seed)
        seed += 1
        if len(X) <= SMALL:  # where there is nothing to compile
            continue
        labels = []
        try:
            for least in (ALWAYS, NEVER):
                csr.COMPILED = least
                labels.append(ANCMM(c, **options).fit(X).labels_)
        except InputError:
            continue
        tried += 1
        same += bool(adjusted_rand_score(*labels) == 1.0)
    csr.COMPILED = usual
    print(f"{same} of {tried} partitions are the same with and without compiled bodies")


def recalls():
    """Print quality against recall."""
    print("| set | wanted | recall | ACC | NMI | ARI to exact |")
    print("|---|---|---|---|---|---|")
    for name in ("blobs 20000 5 16 20", "letter", "blobs 20000 4 64 20"):
        try:
            X, y, c = data(name)
        except FileNotFoundError:
            print(f"| {name} | not found |")
            continue
        exact = None
        for how in ("exact", 0.99, 0.95, 0.9, 0.8):
            model = ANCMM(c, n_neighbors=15, neighbors=how).fit(X)
            exact = model.labels_ if exact is None else exact
            print(
                f"| {name} | {how} | {model.history_[0]['recall']:.3f} "
                f"| {100 * clustering_accuracy(y, model.labels_):.2f} "
                f"| {100 * normalized_mutual_information(y, model.labels_):.2f} "
                f"| {adjusted_rand_score(exact, model.labels_):.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    partitions(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    recalls()
