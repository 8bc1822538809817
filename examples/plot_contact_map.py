"""
A contact map with zero rows and a bad region
=============================================

Counts of contacts between the bins of a chromosome, as Hi-C measures them: near bins
meet often, domains more so, and every bin is seen with a bias of its own. Some bins
cannot be mapped at all, and in one region hardly anything was counted. Balancing, as
the field calls it, is the Marcus mapping of a sparse matrix of counts.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from scipy.sparse import csr_array

from bistochastic import SupportError, marcus_mapping, support

rng = np.random.default_rng(7)
n = 600
bins = np.arange(n)
distance = np.abs(bins[:, None] - bins[None, :])
domain = np.searchsorted([70, 130, 230, 300, 420, 500], bins, side="right")
expected = 400.0 / (1.0 + distance) * np.where(domain[:, None] == domain, 2.5, 1.0)
bias = np.exp(0.5 * rng.standard_normal(n))
bias[180:190] = 0.0  # not mappable
bad = slice(340, 352)
bias[bad] *= 0.004  # hardly anything is counted here
counts = rng.poisson(np.triu(expected * bias[:, None] * bias))
S = csr_array(counts + np.triu(counts, 1).T).astype(float)

# %%
# The map as it is has no scaling, and the library says why.

report = support(S)
print(report)
try:
    marcus_mapping(S)
except SupportError as error:
    print(f"\nSupportError: {str(error)[:60]} ...")

# %%
# ``unsupported="prune"`` leaves out what cannot be scaled, and lists it. The bad region
# passes that test: its few counts can be scaled, by factors that blow up single counts.

everything = marcus_mapping(S, unsupported="prune")
u = everything.scaling
print(f"\n{everything}")
print(f"median scaling {np.median(u[u > 0]):.3f}, in the bad region {u[bad].max():.2f}")

# %%
# So rows with next to no counts go first, as every pipeline of the field does. What
# is left is balanced in a few products with the map.

coverage = S.sum(axis=1)
keep = np.where(coverage > 0.05 * np.median(coverage), 1.0, 0.0)
kept = csr_array(S.multiply(keep[:, None]).multiply(keep))
balanced = marcus_mapping(kept, unsupported="prune")
print(f"\n{balanced}")
used = np.setdiff1d(bins, balanced.dropped)
row_sums = balanced.matrix.sum(axis=1)[used]
agreement = np.corrcoef(-np.log(balanced.scaling[used]), np.log(bias[used]))[0, 1]
print(f"row sums from {row_sums.min():.10f} to {row_sums.max():.10f}")
print(
    f"correlation of the log scaling with the log bias that was put in {agreement:.3f}"
)

# %%
# The picture.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for ax, A, title in (
    (axes[0], S, "Counts"),
    (axes[1], balanced.matrix, "Balanced: each row sums to one"),
):
    dense = A.toarray()
    low, high = np.quantile(dense[dense > 0], [0.05, 0.995])
    shown = np.ma.masked_equal(dense, 0)
    image = ax.imshow(shown, norm=LogNorm(low, high), cmap="magma_r")
    ax.set_facecolor("lightgray")
    ax.set(title=title, xlabel="bin", ylabel="bin")
    figure.colorbar(image, ax=ax, shrink=0.8)
found = 1 / balanced.scaling[used]
axes[2].plot(np.log2(bias[used]), np.log2(found / np.median(found)), ".")
axes[2].set(
    xlabel="bias that was put in, log2",
    ylabel="bias found, 1 / scaling, log2",
    title=f"{len(used)} bins in use, {balanced.dropped.size} left zero",
)
plt.show()
