"""The choice of candidates: all points, the nearest, or enough to stand for all."""

from dataclasses import dataclass
from typing import Any

from bistochastic.core.protocols import Costs, Place

ALL = 4096  # points up to which the costs of all pairs are held
WIDE = 4  # times n_neighbors: how many candidates stand for all of more points


@dataclass(frozen=True, eq=False)
class Candidates:
    """Costs to cluster by.

    Attributes
    ----------
    costs : Costs
        At least k + 1 candidates of each point, the point itself included if it counts.
    limited : int
        If all are wanted and some were left out, how many there are of each; else 0.
    recall : float
        Which share of the nearest they are, on a sample.
    """

    costs: Costs
    limited: int = 0
    recall: float = 1.0


def of_points(
    place: Place,
    points: Any,
    n: int,
    k: int,
    wanted: int | None,
    *,
    loops: bool,
    n_jobs: int | None = None,
    neighbors: str | float = "exact",
) -> Candidates:
    """Choose the candidates of points by their squared distances, Eq. (6).

    Parameters
    ----------
    place : Place
        Where the points are.
    points : Points
        The points.
    n : int
        How many.
    k : int
        Number of neighbors.
    wanted : int or None
        Number of candidates, at least k; None for all.
    loops : bool
        Whether a point is its own candidate, at cost 0.
    n_jobs : int, optional
        Threads of the search.
    neighbors : str or float, default="exact"
        Which search, as ANCMM takes it.

    Returns
    -------
    Candidates
        All pairs up to ALL points if all are wanted, else a table.
    """
    if wanted is None and n <= ALL:
        return Candidates(place.all_pairs(points, loops))
    number = max(k + 1, WIDE * k if wanted is None else wanted) - loops
    others = min(number, n - 1)
    costs, recall = place.candidates(points, others, loops, neighbors, n_jobs)
    left_out = wanted is None and others < n - 1
    return Candidates(costs, others + loops if left_out else 0, recall)
