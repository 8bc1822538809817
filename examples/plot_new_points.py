"""
New points
==========

A fitted model assigns points that it has not seen: a new point gets the weights of
Eq. (18) to its nearest points among those of ``fit``, and ``predict_proba`` adds them
up by cluster. Two moons, one half to fit and one to predict; then a grid, which shows
the regions; then points far away from everything.

Most scikit-learn clusterers for such shapes have no ``predict`` at all
(SpectralClustering, HDBSCAN, DBSCAN).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from bistochastic import ANCMM, plot
from bistochastic.metrics import clustering_accuracy

X, y = make_moons(600, noise=0.09, random_state=0)
old, new, y_old, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
model = ANCMM(2, random_state=0).fit(old)
kmeans = KMeans(2, n_init=10, random_state=0).fit(old)

# %%
# The half that was seen, and the half that was not.

for name, fitted in (("ANCMM", model), ("K-Means", kmeans)):
    seen = clustering_accuracy(y_old, fitted.labels_)
    unseen = clustering_accuracy(y_new, fitted.predict(new))
    print(f"{name:<8} accuracy: seen {seen:.3f}, new {unseen:.3f}")
shares = model.predict_proba(new)
unsure = shares.max(axis=1) < 0.9
print(f"{unsure.sum()} of {len(new)} new points have less than 0.9 in one cluster")

# %%
# A point of ``fit`` gets the label that it has. This holds for all points, so that
# ``fit_predict`` and ``fit`` followed by ``predict`` are the same.

assert (model.predict(old) == model.labels_).all()

# %%
# A far point is assigned too: its nearest points decide, however far they are. The
# shares say how these are divided, not how far away they lie: a share of 1 means that
# all of them are of one cluster, and is no measure of surprise.

far = np.array([[0.5, 0.25], [3.0, 3.0], [-40.0, 0.0], [0.5, -1000.0]])
shares = model.predict_proba(far)
for point, share in zip(far, shares, strict=True):
    nearest = np.linalg.norm(old - point, axis=1).min()
    place = f"({point[0]:g}, {point[1]:g})"
    print(f"{place:<12} shares {share.round(2)}, nearest point {nearest:.1f} away")

# %%
# To find such points, look at distances: farther from its nearest point of ``fit`` than
# any of these is from its own, say. The point between the moons is one of them.

between = np.linalg.norm(old[:, None] - old, axis=2)
np.fill_diagonal(between, np.inf)
usual = between.min(axis=1).max()
away = np.linalg.norm(far[:, None] - old, axis=2).min(axis=1) > usual
print(f"farther than {usual:.2f} from all points of fit: {away}")

# %%
# The picture: the fitted graph, and the regions with the new points.

figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
window = (-1.8, 2.8, -1.5, 2.0)
plot.graph(model, old, ax=axes[0])
axes[0].set_title("Fitted to 300 points")
across, up = np.meshgrid(np.linspace(*window[:2], 230), np.linspace(*window[2:], 175))
grid = np.c_[across.ravel(), up.ravel()]
colors = LinearSegmentedColormap.from_list("two", ["#1f77c9", "#ffffff", "#d9660a"])
left = kmeans.cluster_centers_[:, 0].argmin()
regions = {
    "ANCMM": (model.predict_proba(grid)[:, 1], model.predict(new)),
    "K-Means": (kmeans.predict(grid) != left, kmeans.predict(new) != left),
}
style = {"cmap": colors, "vmin": 0, "vmax": 1}
for ax, (name, (share, found)) in zip(axes[1:], regions.items(), strict=True):
    image = ax.imshow(
        share.reshape(across.shape), extent=window, origin="lower", alpha=0.5, **style
    )
    ax.scatter(*new.T, c=found, s=9, **style)
    accuracy = clustering_accuracy(y_new, found)
    ax.set_title(f"{name}: 300 new points, {accuracy:.1%} right")
figure.colorbar(image, ax=axes[1:], label="share of cluster 1", shrink=0.9)
for ax in axes:
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.axis(window)
plt.show()
