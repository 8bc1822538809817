"""How far row sums are from what they should be."""

from array_api_compat import array_namespace


def worst(row_sums, m=1.0):
    """Return the largest relative error of `row_sums` against the marginals `m`.

    Parameters
    ----------
    row_sums : array of shape (n,)
        Row sums of DSD or of a plan.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Returns
    -------
    scalar array
        max |row_sums / m - 1|; not a number if any row sum is not.
    """
    xp = array_namespace(row_sums)
    ratio = row_sums / m
    return xp.maximum(xp.max(ratio) - 1.0, 1.0 - xp.min(ratio))
