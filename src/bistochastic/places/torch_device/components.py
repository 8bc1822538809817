"""Connected components on a device."""

import torch

from bistochastic.places.torch_device.build import rows_of

SAMPLED = 2  # entries of a row that a search for components begins with


def connected(S: torch.Tensor) -> torch.Tensor:
    """Return the smallest point of the component of each point.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR; symmetric.

    Returns
    -------
    tensor of int64 of shape (n,)
        Roots.
    """
    crow, columns = S.crow_indices(), S.col_indices()
    root = torch.arange(len(crow) - 1, device=crow.device)
    some = []
    for at in range(1, SAMPLED + 1):  # the last entries of rows, often not loops
        rows = (crow.diff() >= at).nonzero()[:, 0]
        some.append((rows, columns[crow[rows + 1] - at].to(torch.int64)))
    root = _hooked(root, *(torch.cat(ends) for ends in zip(*some, strict=True)))
    rows = rows_of(S)
    apart = (root[rows] != root[columns]).nonzero()[:, 0]
    return _hooked(root, *(part[apart].to(torch.int64) for part in (rows, columns)))


def _hooked(root: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """Join the trees at both ends of edges until no edge is left between two."""
    while True:
        i, j = root[i], root[j]
        apart = (i != j).nonzero()[:, 0]
        if apart.shape[0] == 0:
            return root
        i, j = i[apart], j[apart]
        root = root.scatter_reduce(0, torch.maximum(i, j), torch.minimum(i, j), "amin")
        while True:
            above = root[root]
            if torch.equal(above, root):
                break
            root = above
