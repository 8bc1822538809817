"""
A kernel made doubly stochastic before spectral clustering
==========================================================

Two moons in 500 dimensions. Every point carries noise of its own strength, as
measurements of different quality do. Noise adds nearly the same amount to all squared
distances of a point, so that the Gaussian kernel of the noisy points is, off its
diagonal, near that of the clean ones times a factor for each row and each column. The
Marcus mapping takes out exactly such factors, wherever they come from (Landa, Coifman
and Kluger 2021 prove it for kernels with a zero diagonal). Spectral clustering's own
normalization, one division by the square roots of the row sums, does not.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from bistochastic import DoublyStochasticScaler

rng = np.random.default_rng(0)
n, d = 500, 500
clean, moon = make_moons(n, noise=0.05, random_state=0)
plane = np.linalg.qr(rng.standard_normal((d, 2)))[0]
noise = rng.uniform(0.0, 0.08, n)
X = clean @ plane.T + noise[:, None] * rng.standard_normal((n, d))

# %%
# The kernel, with a zero diagonal: the similarity of a point to itself knows nothing
# of its noise. A dense matrix without its diagonal still has total support, so the
# mapping exists.

K = rbf_kernel(X, gamma=30.0)
np.fill_diagonal(K, 0.0)

# %%
# The same clustering with and without the scaler in front.

clustering = SpectralClustering(2, affinity="precomputed", random_state=0)
plain = clustering.fit_predict(K)
scaled = make_pipeline(DoublyStochasticScaler(), clustering).fit_predict(K)
agreement = {
    "kernel": adjusted_rand_score(moon, plain),
    "doubly stochastic": adjusted_rand_score(moon, scaled),
}
for name, value in agreement.items():
    print(f"{name:<18} adjusted Rand index {value:.2f}")

# %%
# The picture: what the noise does to the row sums, and what each clustering finds.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.0), layout="constrained")
dots = axes[0].scatter(*clean.T, c=K.sum(axis=1), s=12, norm=LogNorm())
figure.colorbar(dots, ax=axes[0], label="row sum of the kernel", shrink=0.6)
axes[0].set_title("The points without their noise;\nnoise makes row sums small")
for ax, name, labels in zip(axes[1:], agreement, (plain, scaled), strict=True):
    sizes = np.bincount(labels)
    order = np.argsort(
        -sizes[labels], kind="stable"
    )  # a small cluster on top, and large
    area = np.where(sizes[labels] < 20, 60, 12)
    ax.scatter(*clean[order].T, c=np.array(["C0", "C1"])[labels[order]], s=area[order])
    ax.set_title(f"Spectral clustering, {name}:\nclusters of {sizes[0]} and {sizes[1]}")
for ax in axes:
    ax.set(xticks=[], yticks=[], aspect="equal")
plt.show()
