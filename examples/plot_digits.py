"""
Handwritten digits
==================

1,797 images of 8 x 8 pixels, clustered without their labels into ten clusters. What is
a cluster? The mean image of each says so, and the table of classes and clusters says
where it went wrong. The labels are used only to name the clusters and to count.

Most of the mistakes are one: the ones that are a plain stroke go with the eights, and
the ones with a foot are a cluster of their own. The other methods have this trouble
too, for a hundred of the ones. SpectralClustering also joins most nines with the
threes, and K-Means takes many fives and eights for nines.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix

from bistochastic import ANCMM, plot
from bistochastic.metrics import clustering_accuracy, normalized_mutual_information

X, y = load_digits(return_X_y=True)

# %%
# ANCMM warns if the columns have very different spreads. Here they have, and it is
# right so: all pixels are measured on one scale, and those at the rim hardly vary. To
# scale them would blow up their noise.

warnings.filterwarnings("ignore", message="The spread of column")

# %%
# Nothing is tuned: each method gets the number of clusters and no more, K-Means and
# SpectralClustering a seed, and SpectralClustering its usual sparse graph.

methods = {
    "ANCMM": ANCMM(10, random_state=0),
    "SpectralClustering": SpectralClustering(
        10, affinity="nearest_neighbors", random_state=0
    ),
    "K-Means": KMeans(10, n_init=10, random_state=0),
}
for name, model in methods.items():
    labels = model.fit_predict(X)
    accuracy = clustering_accuracy(y, labels)
    information = normalized_mutual_information(y, labels)
    print(f"{name:<19} ACC {accuracy:.3f}  NMI {information:.3f}")
model = methods["ANCMM"]
print(f"ANCMM chose {model.n_neighbors_} neighbors, stability {model.stability_:.2f}")

# %%
# Clusters are numbered by first appearance. To compare, each is named after a class,
# so that the most points agree (the Hungarian method, as ACC does).


def named(labels):
    """Return the cluster of each class, and the table with columns in this order."""
    table = confusion_matrix(y, labels)
    order = linear_sum_assignment(table, maximize=True)[1]
    return order, table[:, order]


table = named(model.labels_)[1]
for digit in np.argsort(table.diagonal() / table.sum(axis=1))[:2]:
    row = table[digit]
    other = np.where(np.arange(10) == digit, 0, row).argmax()
    print(
        f"{digit}s: {row[digit]} of {row.sum()} in the cluster named after them, "
        f"{row[other]} in that of the {other}s"
    )

# %%
# The mean image of each cluster, under the class it is named after.

figure, axes = plt.subplots(3, 10, figsize=(11, 4), layout="constrained")
for row, (name, fitted) in zip(axes, methods.items(), strict=True):
    order = named(fitted.labels_)[0]
    for digit, (ax, cluster) in enumerate(zip(row, order, strict=True)):
        members = fitted.labels_ == cluster
        ax.imshow(X[members].mean(axis=0).reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{digit}: {members.sum()}", fontsize="medium")
    row[0].set_ylabel(name)
figure.suptitle("Mean image of each cluster; class it is named after: rows in it")

# %%
# Classes and clusters, and the graph. Two principal components hold little of the 64
# columns, so that clusters overlap in the picture which do not in the graph.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
left.imshow(np.sqrt(table), cmap="Blues")
for i, j in np.argwhere(table):
    shade = "w" if table[i, j] > 60 else "k"
    left.text(j, i, table[i, j], ha="center", va="center", color=shade)
left.set(
    xlabel="cluster, by the class it is named after",
    ylabel="class",
    xticks=range(10),
    yticks=range(10),
    title="ANCMM: digits in each cluster",
)
plot.graph(model, X, ax=right, layout="pca")
plt.show()
