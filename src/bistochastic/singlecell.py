"""For single cells: clusters in an AnnData, as scanpy's own tools leave them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from bistochastic.adaptive import adaptive_neighbors_graph
from bistochastic.cluster.ancmm import ANCMM
from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, MissingError, listed
from bistochastic.core.quiet import quietly

__all__ = ["ancmm"]
MANY = 100_000  # number of edges that are measured at a time
SMALL = 50  # the most variables with which X itself is used, as in scanpy


@quietly
def ancmm(
    adata: Any,
    n_clusters: int | str = 8,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    obsp: str | None = None,
    neighbors_key: str | None = None,
    key_added: str = "ancmm",
    restrict_to: tuple[str, Sequence[str]] | None = None,
    random_state: Any = 0,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Cluster cells by a doubly stochastic graph that falls apart into the clusters.

    Behaves as `scanpy.tl.leiden` does, but takes the number of clusters in place of a
    resolution, and learns its graph from a representation of the cells.

    Parameters
    ----------
    adata : AnnData
        Annotated data, in memory, a view or backed.
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" asks `estimate_n_clusters`.
    use_rep : str, optional
        Representation in `.obsm`, or "X"; by default "X_pca", or X itself if there are
        at most 50 variables.
    n_pcs : int, optional
        How many columns of the representation to use; all by default.
    obsp : str, optional
        Use `.obsp[obsp]` as a graph of affinities in place of a representation.
    neighbors_key : str, optional
        Use the connectivities that `scanpy.pp.neighbors` left under this key
        ("neighbors" by its default) as a graph in place of a representation.
    key_added : str, default="ancmm"
        Under which name the clusters are added.
    restrict_to : tuple of (str, sequence of str), optional
        A column of `.obs` and its categories: only these cells are clustered, others
        keep their category. The column that is added is then "ancmm_R" by default, and
        no graph is kept.
    random_state : int, default=0
        Starts the eigensolver.
    copy : bool, default=False
        Whether to return a copy and leave `adata` as it is.
    **options : object
        Other parameters of `ANCMM`, as `n_neighbors` or `metric`.

    Returns
    -------
    AnnData or None
        The copy if `copy`, else None. It has new fields:

        `.obs[key_added]`
            The cluster of each cell, as a category of strings: "0", "1", ...
        `.uns[key_added]`
            "params"; "stability", the agreement with other numbers of neighbors;
            "connectivities_key" and "distances_key", as `scanpy.pp.neighbors` has them,
            so that ``sc.tl.umap(adata, neighbors_key="ancmm")`` runs on the graph.
        `.obsp[key_added + "_connectivities"]`
            The learned graph, which has no edge between clusters.
        `.obsp[key_added + "_distances"]`
            Distances to the neighbors before the cut, from which
            ``sc.tl.paga(adata, "ancmm", neighbors_key="ancmm")`` tells how clusters are
            connected.

    See Also
    --------
    bistochastic.ANCMM : The estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from sklearn.datasets import make_blobs
    >>> from bistochastic.singlecell import ancmm
    >>> X, _ = make_blobs(90, 10, centers=3, random_state=0)
    >>> adata = AnnData(X.astype(np.float32))
    >>> ancmm(adata, 3)
    >>> list(adata.obs["ancmm"].cat.categories)
    ['0', '1', '2']
    """
    pandas, natsorted = _libraries()
    if "metric" in options and (obsp is not None or neighbors_key is not None):
        raise InputError("metric= is of points; a graph has its affinities.")
    adata = _actual(adata, copy)
    X, used = _chosen(adata, use_rep, n_pcs, obsp, neighbors_key)
    chosen = _restricted(adata, restrict_to)
    if chosen is not None:
        X = X[chosen][:, chosen] if used["metric"] == "affinity" else X[chosen]
        key_added = "ancmm_R" if key_added == "ancmm" else key_added
    metric = options.pop("metric", used.pop("metric"))
    model = ANCMM(n_clusters, metric=metric, random_state=random_state, **options)
    groups = model.fit(X).labels_.astype(str).astype(object)
    if chosen is not None:
        groups = _renamed(adata, restrict_to, chosen, groups)
    categories = natsorted(set(groups.tolist()))
    adata.obs[key_added] = pandas.Categorical(groups, categories=categories)
    params = {"n_clusters": int(model.n_clusters_), "random_state": random_state}
    params |= {name: value for name, value in options.items() if value is not None}
    params |= used | _neighbors(model, metric)
    adata.uns[key_added] = {"params": params, "stability": float(model.stability_)}
    if chosen is None:
        _keep_graph(adata, key_added, model, X, metric)
    return adata if copy else None


def _actual(adata: Any, copy: bool) -> Any:
    """Return annotated data that may be changed: a copy if asked for, and no view."""
    if copy and adata.isbacked:
        raise InputError(
            "copy=True cannot copy data that are backed by a file; load them first: "
            "adata = adata.to_memory()."
        )
    adata = adata.copy() if copy else adata
    if adata.is_view:
        adata._init_as_actual(adata.copy())  # as scanpy does
    return adata


def _libraries() -> tuple[Any, Any]:
    """Import what anndata brings along, or say how to get it."""
    try:
        import pandas
        from natsort import natsorted
    except ImportError:
        raise MissingError(
            "Single cells need anndata, which is not installed: "
            "pip install 'bistochastic[singlecell]'"
        ) from None
    return pandas, natsorted


def _chosen(
    adata: Any,
    use_rep: str | None,
    n_pcs: int | None,
    obsp: str | None,
    neighbors_key: str | None,
) -> tuple[Any, dict[str, Any]]:
    """Return points or a graph, and the parameters that say which."""
    if obsp is not None and neighbors_key is not None:
        raise InputError(
            "obsp= and neighbors_key= both name a graph; give one of them."
        )
    if obsp is not None or neighbors_key is not None:
        if use_rep is not None or n_pcs is not None:
            raise InputError(
                "use_rep= and n_pcs= choose points, obsp= and neighbors_key= a graph; "
                "give one of them."
            )
        return _graph(adata, obsp, neighbors_key)
    use_rep = _default_representation(adata) if use_rep is None else use_rep
    X = _representation(adata, use_rep)
    used: dict[str, Any] = {"use_rep": use_rep, "metric": "euclidean"}
    if n_pcs is not None:
        if not 0 < n_pcs <= X.shape[1]:
            raise InputError(f"n_pcs={n_pcs}: {use_rep} has {X.shape[1]} columns.")
        X, used["n_pcs"] = X[:, :n_pcs], n_pcs
    return X, used


def _default_representation(adata: Any) -> str:
    """Return the name of what cells are described by, as in scanpy."""
    if "X_pca" in adata.obsm:
        return "X_pca"
    if adata.n_vars > SMALL:
        raise InputError(
            f"There is no .obsm['X_pca'], and {adata.n_vars:,} variables are many; "
            "run sc.pp.pca(adata) first, or say use_rep='X'."
        )
    return "X"


def _representation(adata: Any, use_rep: str) -> Any:
    """Return what cells are described by."""
    if use_rep == "X":
        if adata.isbacked:
            raise InputError(
                "X is backed by a file; load it (adata = adata.to_memory()), or name a "
                "representation in .obsm by use_rep=."
            )
        X = adata.X
        if X is None:
            raise InputError("There is no X; name a representation by use_rep=.")
    elif use_rep in adata.obsm:
        X = adata.obsm[use_rep]
    else:
        raise InputError(
            f"There is no .obsm[{use_rep!r}]; there are {listed(adata.obsm.keys(), 9)}."
        )
    return X if is_sparse(X) else np.asarray(X)


def _graph(
    adata: Any, obsp: str | None, neighbors_key: str | None
) -> tuple[Any, dict[str, Any]]:
    """Return a graph of affinities."""
    if neighbors_key is not None:
        if neighbors_key not in adata.uns:
            raise InputError(
                f"There is no .uns[{neighbors_key!r}]; run sc.pp.neighbors first."
            )
        held = adata.uns[neighbors_key]
        obsp = held.get("connectivities_key", "connectivities")
        used: dict[str, Any] = {"neighbors_key": neighbors_key}
    else:
        used = {"obsp": obsp}
    if obsp not in adata.obsp:
        raise InputError(
            f"There is no .obsp[{obsp!r}]; there are {listed(adata.obsp.keys(), 9)}."
        )
    return adata.obsp[obsp], used | {"metric": "affinity"}


def _restricted(adata: Any, restrict_to: Any) -> Any:
    """Return which cells are clustered; None for all."""
    if restrict_to is None:
        return None
    key, categories = restrict_to
    if isinstance(categories, str):
        categories = [categories]
    if key not in adata.obs:
        raise InputError(f"restrict_to: there is no .obs[{key!r}].")
    column = adata.obs[key].astype("category")
    for name in categories:
        if name not in column.cat.categories:
            raise InputError(f"restrict_to: {key!r} has no category {name!r}.")
    return column.isin(list(categories)).to_numpy()


def _renamed(adata: Any, restrict_to: Any, chosen: Any, groups: Any) -> Any:
    """Return old categories, and new ones with the old as a prefix."""
    key, categories = restrict_to
    categories = [categories] if isinstance(categories, str) else categories
    every = adata.obs[key].astype(str).to_numpy(dtype=object).copy()
    prefix = "-".join(categories)
    every[chosen] = [f"{prefix},{group}" for group in groups]
    return every


def _neighbors(model: Any, metric: Any) -> dict[str, Any]:
    """Return what scanpy wants to know of a graph; UMAP takes the metric for X."""
    known = isinstance(metric, str) and metric not in ("precomputed", "affinity")
    k = model.n_neighbors_
    return {
        "method": "umap",
        "metric": metric if known else "euclidean",
        "n_neighbors": int(k) if k is not None else 15,
    }


def _keep_graph(adata: Any, key: str, model: Any, X: Any, metric: Any) -> None:
    """Leave the graph, and the distances before the cut, as `scanpy.pp.neighbors`."""
    S = _without_loops(model.affinity_matrix_)
    if metric in ("precomputed", "affinity"):
        D = _without_loops(X)
        if metric == "affinity":
            D.data = 2 - D.data / D.data.max(initial=1e-300)
    else:
        k = model.n_neighbors_
        D = _without_loops(adaptive_neighbors_graph(X, k, metric=metric))
        D.data = _lengths(X, D, metric)
    names = {"connectivities": S, "distances": D}
    for name, held in names.items():
        adata.obsp[f"{key}_{name}"] = held
    adata.uns[key] |= {f"{name}_key": f"{key}_{name}" for name in names}


def _without_loops(S: Any) -> Any:
    """Return a graph as scanpy has it: a matrix of SciPy without a diagonal."""
    S = csr_matrix(S, dtype=np.float64, copy=True)
    S.setdiag(0)
    S.eliminate_zeros()
    return S


def _lengths(X: Any, S: Any, metric: Any) -> Any:
    """Return the distances along the edges of a graph."""
    from sklearn.metrics.pairwise import PAIRED_DISTANCES

    name = "euclidean" if metric == "sqeuclidean" else metric
    paired = PAIRED_DISTANCES.get(name) if isinstance(name, str) else None
    i, j = S.tocoo().coords
    out = np.empty(i.size)
    for at in range(0, i.size, MANY):
        part = slice(at, at + MANY)
        one, other = X[i[part]], X[j[part]]
        if paired:
            out[part] = paired(one, other)
        else:
            out[part] = [
                _one(metric, one[[at]], other[[at]]) for at in range(one.shape[0])
            ]
    return np.maximum(out, np.finfo(float).tiny)  # a stored zero is no edge


def _one(metric: Any, one: Any, other: Any) -> float:
    from sklearn.metrics import pairwise_distances

    return pairwise_distances(one, other, metric=metric)[0, 0]
