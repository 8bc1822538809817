"""
How many clusters
=================

``estimate_n_clusters`` looks at 2 to ``max_clusters`` clusters and scores each number
by two signs: a gap between the eigenvalues of the first graph after the c-th, and the
agreement of the partitions that 10, 14 and 20 neighbors give. The largest product wins.

Some number always wins, also where there is nothing to find. So look at the scores and
not at the winner alone: a score near one is a clear answer; two that are nearly equal
are two answers; and if all are low, there may be no clusters at all. ``stability_``,
the agreement over the numbers of neighbors, is a second opinion, but a weak one against
"no clusters": a cloud that is cut in two can be cut much the same way each time.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import scale

from bistochastic import ANCMM, estimate_n_clusters

MOST = 8
rng = np.random.default_rng(0)
sets = {
    "Five blobs": make_blobs(500, centers=5, cluster_std=0.8, random_state=3)[0],
    "Wine, 3 cultivars": scale(load_wine().data),
    "One cloud, no clusters": rng.standard_normal((400, 4)),
}

# %%
# The rules one by one, and their product. The silhouette is printed for comparison; it
# likes round clusters, and is never tired of giving an answer either.

numbers = np.arange(2, MOST + 1)
results = {}
for name, X in sets.items():
    options = {"max_clusters": MOST, "random_state": 0}
    gap = estimate_n_clusters(X, rule="gap", **options).scores
    agreement = estimate_n_clusters(X, rule="stability", **options).scores
    both = gap * agreement  # what rule="both", the default, computes
    models = [ANCMM(c, random_state=0).fit(X) for c in numbers[:4]]
    stability = np.array([model.stability_ for model in models])
    silhouette = [silhouette_score(X, model.labels_) for model in models]
    results[name] = gap, agreement, both, stability
    best = both.argmax()
    print(f"{name}: {numbers[best]} clusters, score {both[best]:.2f},", end=" ")
    second = np.argsort(-both)[1]
    print(f"then {numbers[second]}, score {both[second]:.2f}")
    print(f"  stability_ for 2, 3, 4, 5 clusters: {stability.round(2)}")
    print(f"  silhouette for 2, 3, 4, 5 clusters: {np.round(silhouette, 2)}")

# %%
# What to believe. Blobs: the score of five is one, and so is that of three, where three
# of the blobs are taken together; of equal scores the larger number wins. Wine: two,
# closely followed by three, which is the number of cultivars. The estimate is wrong
# here if the cultivars are what is wanted, and its scores say that three is about as
# good. The cloud: no score is above 0.2, and that is the answer. ``ANCMM("auto")``
# takes the winner and does not tell.

figure, axes = plt.subplots(
    2, 3, figsize=(12, 6.8), layout="constrained", height_ratios=(1, 1.1)
)
for (above, below), (name, X) in zip(axes.T, sets.items(), strict=True):
    gap, agreement, both, stability = results[name]
    best = numbers[both.argmax()]
    labels = ANCMM(best, random_state=0).fit_predict(X)
    centered = X - X.mean(axis=0)
    plane = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
    above.scatter(*plane.T, c=labels, s=8, cmap="tab10", vmin=0, vmax=9)
    above.set(title=f"{name}:\nthe estimate is {best}", xticks=[], yticks=[])
    below.bar(numbers, both, color="0.8", label="score: product")
    below.plot(numbers, gap, "o-", ms=4, label="gap")
    below.plot(numbers, agreement, "s-", ms=4, label="agreement, 3 values of k")
    below.plot(numbers[:4], stability, "^--", ms=4, label="stability_")
    below.set(xlabel="number of clusters", ylim=(0, 1.08), xticks=numbers)
axes[1, 0].set_ylabel("score")
shown = axes[1, 0].get_legend_handles_labels()
figure.legend(*shown, loc="outside lower center", ncols=4)
plt.show()
