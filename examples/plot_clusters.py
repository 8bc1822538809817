"""
Clusters that are the components of a graph
===========================================

Two moons and three rings, clustered by ANCMM: the learned graph is doubly stochastic
and falls apart into the clusters. The lines are its edges.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM, adaptive_neighbors_graph


def rings(rng, sizes=(60, 120, 180)):
    """Draw points on circles around one another."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    angle = rng.uniform(0, 2 * np.pi, labels.size)
    radius = 1 + labels + 0.09 * rng.standard_normal(labels.size)
    return radius[:, None] * np.c_[np.cos(angle), np.sin(angle)], labels


sets = {
    "Two moons": (*make_moons(300, noise=0.07, random_state=0), 2),
    "Three rings": (*rings(np.random.default_rng(0)), 3),
}
models = {}
figure, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")

for row, (name, (X, y, c)) in zip(axes, sets.items(), strict=True):
    model = models[name] = ANCMM(c).fit(X)
    print(f"{name}: {model.n_components_} components in {model.n_iter_} steps,")
    print(f"  adjusted Rand index {adjusted_rand_score(y, model.labels_):.2f}")
    first = adaptive_neighbors_graph(X, model.n_neighbors_)
    for axis, graph, labels in (
        (row[0], first, np.zeros(len(X))),
        (row[1], model.affinity_matrix_, model.labels_),
    ):
        i, j = graph.tocoo().coords
        axis.add_collection(LineCollection(X[np.c_[i, j]], colors="0.6", lw=0.5))
        axis.scatter(*X.T, s=9, c=labels, cmap="tab10", vmax=9, zorder=2)
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
    row[0].set_title(f"{name}: the first graph")
    row[1].set_title(f"The learned graph: {c} components")
    lam = [max(record["penalty"], 1e-12) for record in model.history_[1:]]
    row[2].plot(range(2, model.n_iter_ + 1), lam, "o-", color="#0072b2")
    row[2].set(yscale="log", xlabel="step", title="The way there")
    row[2].set_ylabel("penalty", color="#0072b2")
    number = row[2].twinx()
    found = [record["n_components"] for record in model.history_]
    number.step(range(1, model.n_iter_ + 1), found, where="mid", color="#d55e00")
    number.set_ylabel("components", color="#d55e00")
    number.set_yticks(range(1, c + 1))

# The first graph is connected; the penalty pulls it apart where it is thinnest.
plt.show()
