"""
A transport plan on a sparse pattern
====================================

Particles in two frames of a film: which is which? A particle can only have moved so
far, so most pairs are out of the question: an infinite cost. A dense solver would
carry all of them along; here such pairs are simply not stored. Eq. (24) with a weight
omega gives a plan of matching probabilities, and the larger omega, the nearer the
plan comes to the cheapest one-to-one matching.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.spatial import KDTree

from bistochastic import entropic_plan

rng = np.random.default_rng(3)
n = 2000
before = rng.random((n, 2)) * [4.0, 1.0]
after = before + 0.012 * rng.standard_normal((n, 2))
reach = 0.06

# %%
# The pairs within reach, their costs in units of the mean squared move, and the
# symmetric matrix of both sets: S = [[0, R], [R', 0]] with R = exp(-cost).

pairs = KDTree(before).sparse_distance_matrix(
    KDTree(after), reach, output_type="coo_matrix"
)
cost = csr_array(pairs) ** 2 / (2 * 0.012**2)
R = cost.copy()
R.data = np.exp(-cost.data)
S = csr_array(block_array([[None, R], [R.T, None]]))
print(f"{R.nnz:,} of {n * n:,} pairs are within reach: {R.nnz / n**2:.2%}")

# %%
# Plans for growing omega. A pair within reach that no one-to-one matching can use has
# no support; its share of the plan is zero, and the report counts such pairs.

omegas = 2.0 ** np.arange(-4, 11)
costs = []
for omega in omegas:
    result = entropic_plan(S, omega=omega, tol=1e-8)
    P = csr_array(result.plan[:n, n:])
    costs.append((P.multiply(cost)).sum() / n)
    if omega in (0.0625, 1.0, 1024.0):
        print(f"omega {omega:7g}: {result}")
unsupported = result.support.unsupported[0].size // 2
print(f"support: {result.support.kind}, {unsupported} pairs cannot be in any matching")

# %%
# The cheapest matching itself, by SciPy.

shifted = cost.copy()
shifted.data += 1.0  # SciPy takes a stored zero for no edge; a constant changes nothing
rows, columns = min_weight_full_bipartite_matching(shifted)
cheapest = (shifted[rows, columns].sum() - n) / n
print(f"cost a particle: {costs[-1]:.6f} for the plan at omega {omegas[-1]:g}, ")
print(f"                 {cheapest:.6f} for the cheapest matching")

# %%
# The picture: a window of the film with the plan's pairs, and the cost.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for ax, omega in zip(axes, (0.1, 1.0), strict=False):
    plan = csr_array(entropic_plan(S, omega=omega).plan[:n, n:]).tocoo()
    i, j = plan.coords
    seen = plan.data > 0.01
    lines = np.stack([before[i[seen]], after[j[seen]]], axis=1)
    shades = [(0.1, 0.1, 0.1, w) for w in np.clip(plan.data[seen], 0, 1)]
    ax.add_collection(LineCollection(lines, colors=shades, linewidths=2))
    ax.plot(*before.T, "o", ms=4, color="C0", label="before")
    ax.plot(*after.T, "o", ms=4, color="C1", label="after")
    ax.set(xlim=(1.0, 1.35), ylim=(0.3, 0.65), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"Plan at omega = {omega:g}")
axes[0].legend(loc="lower right")
axes[2].semilogx(omegas, costs, "o-", label="plan")
axes[2].axhline(cheapest, color="C3", ls="--", label="cheapest matching")
axes[2].set(xlabel="omega", ylabel="cost a particle", title="Towards the matching")
axes[2].legend()
plt.show()
