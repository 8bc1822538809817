"""Compiled bodies of functions that stand as readable texts elsewhere.

A body takes the arguments of its text, with the CSR holder in place of any graph, and
gives the same result to rounding; it may overwrite what the text says.

Threads wait asleep. With OpenMP's usual wait in a busy loop, one other busy process on
two cores made these bodies three times slower than a single thread; asleep, they are as
fast as that, and on an idle machine nearly twice as fast.
"""

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import config, get_num_threads, set_num_threads

from bistochastic.core import recurrence as recurrence_text
from bistochastic.graph import components, simplex
from bistochastic.neighbors import descent, exact
from bistochastic.places import tables as costs
from bistochastic.places.host import (
    csr,
    dense,
    gathering,
    kernels_entries,
    kernels_tables,
    pattern_costs,
)
from bistochastic.places.host.compiler import loops
from bistochastic.places.host.kernels_descent import (
    offer_leaves,
    offer_neighbors,
    ranked,
    standing_in,
)
from bistochastic.places.host.kernels_rows import (
    conjugate_gradients,
    exponents,
    positives,
    product,
    recurrence,
    search,
    three_term,
    weights,
)
from bistochastic.places.host.kernels_tables import dense_positives, distances, halves
from bistochastic.scaling import linear_systems as systems
from bistochastic.scaling import matching


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let the bodies use so many threads, at most those that there are."""
    before = get_num_threads()
    most = int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    set_num_threads(max(1, min(number, most)))
    try:
        yield
    finally:
        set_num_threads(before)


def _openmp() -> bool:
    """Load OpenMP with threads that sleep while they wait; tell whether it is there."""
    policy = os.environ.get("OMP_WAIT_POLICY")
    os.environ["OMP_WAIT_POLICY"] = policy or "PASSIVE"  # read once, when it loads
    try:
        importlib.import_module("numba.np.ufunc.omppool")
    except ImportError:
        return False
    finally:
        if policy is None:
            del os.environ["OMP_WAIT_POLICY"]
    return True


Bodies = dict[Callable[..., Any], Callable[..., Any]]
ON_PATTERNS: Bodies = {
    text: loops()(text)
    for text in (matching.greedy_matching, matching.maximum_matching)
}
ON_ROWS: Bodies = {
    csr.product: product,
    csr.weights: weights,
    csr.supported: kernels_entries.supported,
    gathering.mates: kernels_entries.mates,
    gathering.gathered: kernels_entries.gathered,
    csr.three_term: three_term,
    csr.exponents: exponents,
    csr.positives: positives,
    systems.conjugate_gradients: conjugate_gradients,
    recurrence_text.recurrence: recurrence,
    components.search: search,
}
ON_TABLES: Bodies = {
    costs.distances: distances,
    csr.halves: halves,
    costs.dot: kernels_tables.dot,
    costs.moved: kernels_tables.moved,
    pattern_costs.penalties: kernels_entries.penalties,
    pattern_costs.mirrored_mean: kernels_entries.mirrored_mean,
    descent.offer_leaves: offer_leaves,
    descent.offer_neighbors: offer_neighbors,
    descent.standing_in: standing_in,
    exact.ranked: ranked,
}
ON_ENTRIES: Bodies = {
    simplex.relaxed_rows: kernels_entries.relaxed_rows,
    simplex.aggregated_rows: kernels_entries.aggregated_rows,
}
ON_TABLE_ROWS: Bodies = {
    simplex.first_weights: kernels_tables.first_weights,
    simplex.relaxed_rows: kernels_tables.relaxed_rows,
}
ON_ARRAYS: Bodies = {dense.positives: dense_positives}


def _without_threads() -> None:
    ON_ROWS.clear()
    ON_TABLES.clear()
    ON_ENTRIES.clear()
    ON_TABLE_ROWS.clear()
    ON_ARRAYS.clear()


if not _openmp():  # Numba's own pool ends the process when two threads call it
    _without_threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_threads)  # OpenMP dies with the fork
