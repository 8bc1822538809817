"""Graphs to scale, by family; every one has total support."""

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from sklearn.neighbors import NearestNeighbors

from bistochastic.datasets.toy import planted_graph


def uniform(rng, size):
    return rng.random(size)


def lognormal(sigma):
    return lambda rng, size: np.exp(sigma * rng.standard_normal(size))


def random_sparse(n, weight=uniform, degree=10):
    rng = np.random.default_rng(n)
    i, j = rng.integers(0, n, (2, n * degree // 2))
    W = coo_array((weight(rng, i.size), (i, j)), shape=(n, n)).tocsr()
    return _symmetric(W, weight(rng, n))


def nearly_decoupled(n, n_clusters=20):
    """Make clusters that hang together by faint edges, one for every ten points."""
    S, _ = planted_graph(n, n_clusters, bridges=0.1, bridge_weight=1e-3)
    return _symmetric(S, np.zeros(n))


def two_moons(n, k=10, self_neighbor=True):
    """Weigh neighbors in closed form, Eq. (18), with the point itself or without."""
    X, _ = make_moons(n, noise=0.05, random_state=0)
    first = 0 if self_neighbor else 1
    distance, index = NearestNeighbors(n_neighbors=k + 2).fit(X).kneighbors(X)
    cost = distance[:, first : first + k + 1] ** 2
    weight = cost[:, -1:] - cost[:, :-1]
    weight /= weight.sum(axis=1, keepdims=True)
    columns = index[:, first : first + k].ravel()
    W = csr_array((weight.ravel(), columns, np.arange(0, n * k + 1, k)), shape=(n, n))
    return _symmetric(W, np.zeros(n))


def gaussian_kernel(n, bandwidth=0.01, diagonal=1e-3):
    """Make a narrow kernel with a faint diagonal, which is nearly bipartite."""
    X = np.random.default_rng(0).random((n, 2))
    K = np.exp(-cdist(X, X, "sqeuclidean") / (2 * bandwidth**2))
    np.fill_diagonal(K, diagonal)
    return K


def five_clusters(n=2000):
    """Make a Gaussian kernel of five well separated clusters in the plane."""
    X = np.random.default_rng(0).standard_normal((n, 2))
    X[:, 0] += 8 * (np.arange(n) % 5)
    return np.exp(-cdist(X, X, "sqeuclidean") / 2)


def chain(n, diagonal=1.0):
    w = np.random.default_rng(0).random(n - 1)
    return csr_array(
        diags_array([w, np.full(n, diagonal), w], offsets=[-1, 0, 1], format="csr")
    )


def hubs(n, links=5):
    """Attach each point to ends of earlier links, so that hubs form."""
    rng = np.random.default_rng(0)
    draw = rng.random((n, links))
    ends = np.zeros(2 * n * links, dtype=np.int64)
    targets = np.zeros((n, links), dtype=np.int64)
    used = links
    for i in range(1, n):
        targets[i] = ends[(draw[i] * used).astype(np.int64)]
        ends[used : used + links] = targets[i]
        ends[used + links : used + 2 * links] = i
        used += 2 * links
    i = np.repeat(np.arange(1, n), links)
    W = coo_array((np.ones(i.size), (i, targets[1:].ravel())), shape=(n, n)).tocsr()
    return _symmetric(W, np.ones(n))


def _symmetric(W, diagonal):
    S = csr_array((W + W.T) / 2 + diags_array(diagonal, format="csr"))
    S.sum_duplicates()
    S.eliminate_zeros()
    S.indices, S.indptr = S.indices.astype(np.int32), S.indptr.astype(np.int32)
    return S


FAMILIES = {
    "random sparse": random_sparse,
    "log-normal, sigma 3": lambda n: random_sparse(n, lognormal(3)),
    "log-normal, sigma 6": lambda n: random_sparse(n, lognormal(6)),
    "nearly decoupled": nearly_decoupled,
    "two moons": two_moons,
    "two moons, no self": lambda n: two_moons(n, self_neighbor=False),
    "chain": chain,
    "chain, diagonal 1e-3": lambda n: chain(n, 1e-3),
    "hubs": hubs,
    "Gaussian, diagonal 1e-3": lambda n: gaussian_kernel(min(n, 2000)),
}
