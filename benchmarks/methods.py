"""The other methods beside what the paper prints for them.

Run with ``BISTOCHASTIC_DATA=folder python benchmarks/methods.py``, where the folder has
wine, ecoli, movement and yale as npz files (X, y); Wine comes with scikit-learn. Each
method gets what the paper's protocol gives it: the best accuracy over columns as they
are, in [0, 1] and z-scored, and over its own parameters, found with the labels. CLR is
not in the paper.
"""

import os
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler, minmax_scale

from bistochastic import CAN, CLR, DSDC, ERCAN
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)

KS = (5, 7, 10, 15, 20, 25, 30, 40)
SCALINGS = {
    "as they are": np.asarray,
    "[0, 1]": minmax_scale,
    "z-scores": lambda X: StandardScaler().fit_transform(X),
}
METHODS = {
    "CAN": [
        CAN(n_neighbors=k, candidates=candidates)
        for k, candidates in product(KS, ("local", "global"))
    ],
    "ERCAN": [
        ERCAN(n_neighbors=k, eta=eta)
        for k, eta in product((3, *KS), (0.05, 0.2, 1.05, 10.0))
    ],
    "DSDC": [DSDC(random_state=seed) for seed in range(30)],
    "CLR": [CLR(n_neighbors=k, norm=norm) for k, norm in product(KS, ("l2", "l1"))],
}
PRINTED = {  # ACC, NMI, PUR
    ("wine", "CAN"): (97.2, 89.0, 97.2),
    ("wine", "ERCAN"): (47.8, 83.0, 94.9),
    ("wine", "DSDC"): (89.9, 73.2, 89.9),
    ("ecoli", "CAN"): (83.6, 71.3, 84.8),
    ("ecoli", "ERCAN"): (57.4, 51.9, 81.9),
    ("ecoli", "DSDC"): (54.2, 51.2, 82.1),
    ("movement", "CAN"): (50.2, 63.5, 51.9),
    ("movement", "ERCAN"): (47.8, 62.4, 51.1),
    ("movement", "DSDC"): (41.4, 52.8, 46.1),
    ("yale", "CAN"): (52.1, 60.5, 52.7),
    ("yale", "ERCAN"): (47.9, 54.3, 50.3),
    ("yale", "DSDC"): (50.3, 53.9, 51.5),
}
SCORES = clustering_accuracy, normalized_mutual_information, purity


def data(name):
    """Return X and y of a set, or None."""
    file = Path(os.environ.get("BISTOCHASTIC_DATA", ".")) / f"{name}.npz"
    if file.is_file():
        held = np.load(file)
        return held["X"].astype(float), held["y"]
    return load_wine(return_X_y=True) if name == "wine" else None


def scored(model, scaling, X, y):
    """Return the scores of one run, its components, and what it was."""
    warnings.simplefilter("ignore")
    model = model.set_params(n_clusters=len(np.unique(y)))
    labels = model.fit(SCALINGS[scaling](X)).labels_
    scores = tuple(round(100 * score(y, labels), 1) for score in SCORES)
    exact = int(labels.max()) + 1 == model.n_clusters
    changed = {
        key: value
        for key, value in model.get_params().items()
        if key in ("n_neighbors", "eta", "candidates", "norm", "random_state")
        and value is not None
    }
    return scores, exact, f"{scaling}, {changed}"


def main():
    print(
        "| set | method | ACC / NMI / PUR | printed | of all runs c clusters | with |"
    )
    print("|---|---|---|---|---|---|")
    for name in ("wine", "ecoli", "movement", "yale"):
        held = data(name)
        if held is None:
            print(f"{name}: not there; set BISTOCHASTIC_DATA")
            continue
        for method, models in METHODS.items():
            runs = Parallel(n_jobs=2)(
                delayed(scored)(model, scaling, *held)
                for model, scaling in product(models, SCALINGS)
            )
            best, _, options = max(run for run in runs if run[1])
            share = np.mean([exact for _, exact, _ in runs])
            printed = PRINTED.get((name, method))
            cells = [
                " / ".join(f"{value:.1f}" for value in scores) if scores else "-"
                for scores in (best, printed)
            ]
            print(
                f"| {name} | {method} | {cells[0]} | {cells[1]} | {100 * share:.0f} % "
                f"| {options} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
