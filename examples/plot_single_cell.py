"""
Single cells, with scanpy
=========================

700 blood cells, clustered inside a scanpy workflow. ``ancmm`` leaves its result in the
AnnData as ``sc.tl.leiden`` does, and its graph as ``sc.pp.neighbors`` does, so that
UMAP, PAGA and the tests for marker genes run on it. It takes a number of clusters where
Leiden takes a resolution.

The labels that the cells come with are those of bulk samples that they look most like:
not the truth, but something to compare with. By this measure Leiden is ahead here, at
the resolution that gives as many clusters. The two agree but for one thing: ANCMM by
its default leans towards clusters of equal size, so that it cuts the dendritic cells
once more, and leaves 13 rare CD34+ cells with the T cells. ``refine=None`` finds them.
"""

import warnings

import matplotlib.pyplot as plt
import pandas as pd
import scanpy as sc
from sklearn.metrics import adjusted_rand_score

from bistochastic.metrics import normalized_mutual_information
from bistochastic.singlecell import ancmm

warnings.filterwarnings("ignore", category=FutureWarning)  # scanpy's own

# %%
# The data ship with scanpy: normalized, reduced to 765 genes, with 50 principal
# components, a graph of neighbors and a UMAP of it.

adata = sc.datasets.pbmc68k_reduced()
print(f"{adata.n_obs} cells, {adata.n_vars} genes")
print(adata.obs["bulk_labels"].value_counts().to_string())

# %%
# Eight clusters, from the principal components. The number of neighbors is chosen by
# the agreement of the partitions.

ancmm(adata, n_clusters=8)
params, stability = adata.uns["ancmm"]["params"], adata.uns["ancmm"]["stability"]
print(f"{params['n_neighbors']} neighbors, stability {stability:.2f}")
table = pd.crosstab(adata.obs["bulk_labels"], adata.obs["ancmm"])
print(table.to_string())

# %%
# Leiden on scanpy's graph, with the resolution that gives as many clusters, found by
# bisection. ``refine=None``, the way to look for rare clusters, and scanpy's own graph
# are two other ways to use ANCMM. Both find the 13 CD34+ cells.


def leiden(low=0.05, high=2.0, wanted=8):
    """Run Leiden with the resolution that gives the wanted number of clusters."""
    for _ in range(20):
        middle = (low + high) / 2
        options = {"flavor": "igraph", "n_iterations": -1, "random_state": 0}
        sc.tl.leiden(adata, resolution=middle, **options)
        found = adata.obs["leiden"].nunique()
        if found == wanted:
            break
        low, high = (middle, high) if found < wanted else (low, middle)
    return middle


resolution = leiden()
ancmm(adata, 8, refine=None, key_added="paper_rows")
ancmm(adata, 8, neighbors_key="neighbors", key_added="scanpy_graph")
for name, key in {
    "ANCMM": "ancmm",
    "ANCMM, refine=None": "paper_rows",
    "ANCMM on scanpy's graph": "scanpy_graph",
    f"Leiden, resolution {resolution:.2f}": "leiden",
}.items():
    found, labels = adata.obs[key], adata.obs["bulk_labels"]
    print(
        f"{name:<23} {found.nunique()} clusters of {found.value_counts().min()} to "
        f"{found.value_counts().max()}: adjusted Rand index "
        f"{adjusted_rand_score(labels, found):.2f}, "
        f"NMI {normalized_mutual_information(labels, found):.2f}"
    )

# %%
# Marker genes of each cluster: 4 and 6 are both B cells by their label, but 4 has MZB1
# and IGJ, the genes of plasma cells. Leiden finds these as well.

sc.tl.rank_genes_groups(adata, "ancmm", method="wilcoxon")
markers = pd.DataFrame(adata.uns["rank_genes_groups"]["names"]).head(4)
print(markers.to_string(index=False))

# %%
# UMAP as it came with the data, by label and by cluster. The green island on the right
# is the CD34+ cells.

figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
style = {"show": False, "frameon": False, "size": 40}
sc.pl.umap(adata, color="bulk_labels", ax=axes[0], **style)
axes[0].set_title("Labels of bulk samples")
sc.pl.umap(adata, color="ancmm", ax=axes[1], legend_loc="on data", **style)
axes[1].set_title("ANCMM, 8 clusters")

# %%
# UMAP of the learned graph, and PAGA. The learned graph has no edge between clusters:
# its UMAP is a set of islands, and how these lie to one another means nothing. PAGA
# therefore counts the edges between clusters before the cut, which ``ancmm`` keeps as
# distances. Lines show which clusters lie next to each other; 3 and 5 are the dendritic
# cells that were cut once more.

sc.tl.umap(adata, neighbors_key="ancmm", random_state=0)
sc.tl.paga(adata, "ancmm", neighbors_key="ancmm")
figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
sc.pl.umap(adata, color="ancmm", ax=axes[0], legend_loc="on data", **style)
axes[0].set_title("UMAP of the learned graph")
sc.pl.paga(adata, ax=axes[1], show=False, threshold=0.1, frameon=False, random_state=0)
axes[1].set_title("PAGA")
plt.show()
