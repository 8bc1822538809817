"""
A graph with hubs, before and after scaling
===========================================

In many columns some points are among the nearest neighbors of very many others: hubs.
Their rows of the graph sum to several times what others sum to. The Marcus mapping
multiplies row and column i by the same number, so that all rows sum to one: the edges
are the same, every point counts the same, and the edges of a hub become weak.

Does it help spectral clustering? On a plain graph of neighbors, no: the adjusted Rand
index is about the same. SpectralClustering divides by the roots of the row sums itself,
which is one step of the scaling. It helps where the weights of each point carry a
factor of its own, as those of sensors with different gains do: the mapping takes out
such factors exactly, one division does not. ANCMM, which learns its graph, does better
than both here, and K-Means better than all of them: the clusters are round, and most
neighbors of a point of the widest one lie in the others, where the hubs are. No scaling
repairs such a graph.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from bistochastic import ANCMM, marcus_mapping, plot

SPREADS = np.array([0.5, 1.0, 2.0])
DRAWS = 3


def drawn(seed):
    """Draw three clusters of unequal density in 30 columns."""
    rng = np.random.default_rng(seed)
    centers = 0.6 * rng.standard_normal((3, 30))
    y = np.repeat(np.arange(3), 200)
    return centers[y] + SPREADS[y, None] * rng.standard_normal((y.size, 30)), y


def neighbors(X):
    """Return the symmetric graph of the 10 nearest, each point its own first.

    The diagonal makes sure that the mapping exists.
    """
    A = kneighbors_graph(X, 10, include_self=True)
    return csr_array((A + A.T) / 2)


# %%
# One draw. The heaviest rows before and after.

X, y = drawn(1)
S = neighbors(X)
result = marcus_mapping(S)
M = result.matrix
print(result)
degree = S.sum(axis=1)
heaviest = np.argsort(-degree)[:5]
print(f"row sums before: {degree.min():.1f} to {degree.max():.1f}")
print(f"heaviest before: rows {heaviest}, sums {degree[heaviest]}")
print(f"the same after: {M.sum(axis=1)[heaviest].round(6)}")
shares = [graph[heaviest].sum() / graph.sum() for graph in (S, M)]
print(f"their share of all weight: {shares[0]:.1%} before, {shares[1]:.1%} after")
assert M.nnz == S.nnz
i, j = S.tocoo().coords
apart = (i != j) & (y[i] == 2)
print(f"of the edges of the widest cluster {np.mean(y[j[apart]] != 2):.0%} leave it")

# %%
# SpectralClustering on the graph, on the mapped one, and on the graph after every point
# got a factor. The mapping is unique: that of the graph with factors is that of the
# graph without them, so that what it gives there is known. ANCMM and K-Means see the
# points.

ways = {name: [] for name in ("graph", "mapped", "factors", "ANCMM", "K-Means")}
for seed in range(DRAWS):
    points, classes = drawn(seed)
    plain = neighbors(points)
    mapped = marcus_mapping(plain).matrix
    factor = np.exp(np.random.default_rng(seed).standard_normal(len(points)))
    uneven = csr_array(plain.multiply(factor[:, None]).multiply(factor))
    assert abs(marcus_mapping(uneven).matrix - mapped).max() < 1e-6
    spectral = SpectralClustering(3, affinity="precomputed", random_state=0)
    found = [spectral.fit_predict(graph) for graph in (plain, mapped, uneven)]
    found.append(ANCMM(3, random_state=0).fit_predict(points))
    found.append(KMeans(3, n_init=10, random_state=0).fit_predict(points))
    for values, labels in zip(ways.values(), found, strict=True):
        values.append(adjusted_rand_score(classes, labels))
for name, values in ways.items():
    shown = " ".join(f"{value:.2f}" for value in values)
    print(f"{name:<8} adjusted Rand index {shown}, mean {np.mean(values):.2f}")

# %%
# The picture.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
plot.scaling(S, result, ax=axes[0])
centered = X - X.mean(axis=0)
plane = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
axes[1].scatter(*plane.T, s=degree**2 / 20, c=y, cmap="tab10", vmax=9, alpha=0.6)
axes[1].set(
    title="Hubs: large circles have large row sums",
    xlabel="component 1",
    ylabel="component 2",
)
for values in zip(*ways.values(), strict=True):
    axes[2].plot(range(len(ways)), values, "o", color="0.4", ms=4, zorder=2)
means = [np.mean(values) for values in ways.values()]
colors = ["0.8", "#a6cee3", "0.8", "#fdbf6f", "#b2df8a"]
axes[2].bar(range(len(ways)), means, color=colors)
axes[2].set_xticks(range(len(ways)), ways)
axes[2].set(title=f"Agreement with the classes, {DRAWS} draws", xlabel="clustering of")
axes[2].set_ylabel("adjusted Rand index")
plt.show()
