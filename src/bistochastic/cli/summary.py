"""The summary of a fit: facts for programs, sentences for people."""

import platform
import shlex
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
from rich.table import Table as Grid
from rich.text import Text

from bistochastic import __version__
from bistochastic.cli.console import Voice, shown
from bistochastic.cli.labels import scores, show_scores
from bistochastic.cli.request import Writing
from bistochastic.cli.rows import Rows
from bistochastic.core.errors import several
from bistochastic.core.memory import peak_memory
from bistochastic.io.table import Table

SHOWN = 20  # the most clusters that are listed one by one
MEMBERS = 3  # the most rows of a cluster that are named
LONGEST = 18  # the most characters of a row's name
SHAKY = 0.6  # the agreement between numbers of neighbors below which to doubt


def facts_of(
    model: Any,
    rows: Rows,
    writing: Writing,
    warned: list[str],
    seconds: dict[str, float],
) -> dict[str, Any]:
    """Return the summary of a fit, as it is written and printed.

    Parameters
    ----------
    model : ANCMM
        Fitted.
    rows : Rows
        What it was fitted to.
    writing : Writing
        Files that are wanted.
    warned : list of str
        What the fit warned of.
    seconds : dict
        How long reading and fitting took.

    Returns
    -------
    dict
        Facts by name.
    """
    peak = peak_memory()
    number, width = rows.table.values.shape
    return {
        "file": rows.file,
        "rows": number,
        "rows_left_out": int((~rows.kept).sum()),
        "columns": width,
        "column_names": rows.table.names,
        "scale": rows.preparation.scale,
        "n_clusters": model.n_clusters_,
        "n_components": model.n_components_,
        "sizes": np.bincount(model.labels_).tolist(),
        "n_neighbors": model.n_neighbors_,
        "stability": model.stability_,
        "converged": bool(model.converged_),
        "steps": model.n_iter_,
        "bridges": len(model.bridges_),
        "recall": model.history_[0].get("recall"),
        "scores": scores(rows.truth, model.labels_),
        "notes": rows.notes,
        "warnings": warned,
        "seconds": seconds,
        **({} if peak is None else {"peak_memory_mb": peak}),
        "parameters": model.get_params(),
        "versions": versions(),
        "outputs": writing.wanted(),
        "command": shlex.join(["bistochastic", *sys.argv[1:]]),
    }


def versions() -> dict[str, str]:
    """Return what made the result."""
    names = ("numpy", "scipy", "scikit-learn")
    found = {"bistochastic": __version__, "python": platform.python_version()}
    return found | {name: version(name) for name in names}


def show(voice: Voice, facts: dict[str, Any], table: Table, labels: Any) -> None:
    """Show the result of a fit to a person.

    Parameters
    ----------
    voice : Voice
        Speaks.
    facts : dict
        The summary.
    table : Table
        Names of the rows.
    labels : array
        The cluster of each row; None for rows that were left out.
    """
    voice.tell(_heading(facts))
    voice.tell(_grid(facts["sizes"], table, labels))
    more = facts["sizes"][SHOWN:]
    if more:
        voice.tell(
            f"  ... and {len(more):,} more, of {min(more):,} to {max(more):,} rows."
        )
    if facts["parameters"]["n_neighbors"] == "auto":
        s = facts["stability"]
        said = "."
        if s < SHAKY:
            said = "; another number of clusters, columns or scaling may fit better."
        voice.tell(f"Stability: other numbers of neighbors agree to {s:.2f} of 1{said}")
    show_scores(voice, facts["scores"])
    seconds = facts["seconds"]
    peak = facts.get("peak_memory_mb")
    most = "" if peak is None else f", {peak:,} MB at most"
    voice.tell(
        f"Read in {seconds['read']:.1f} s, clustered in {seconds['fit']:.1f} s{most}."
    )


def _heading(facts: dict[str, Any]) -> str:
    """Say how many clusters there are, of how many rows."""
    left = facts["rows_left_out"]
    without = f" ({several(left, 'row')} left out)" if left else ""
    each = ""
    if facts["n_neighbors"] is not None:
        each = f", with {several(facts['n_neighbors'], 'neighbor')} each"
    return (
        f"\n{several(facts['n_clusters'], 'cluster')} of "
        f"{several(facts['rows'] - left, 'row')}{without}{each}:"
    )


def _grid(sizes: list[int], table: Table, labels: Any) -> Grid:
    """Return the clusters with their sizes and first members, one a line."""
    grid = Grid(box=None, pad_edge=True)
    for name in ("cluster", "rows", "share"):
        grid.add_column(name, justify="right")
    grid.add_column("first rows" if table.ids is None else "first members")
    total = sum(sizes)
    for label, size in enumerate(sizes[:SHOWN]):
        share = Text(f"{size / total:.1%}")
        members = Text(_members(table, labels, label), style="dim")
        grid.add_row(str(label), f"{size:,}", share, members)
    return grid


def _members(table: Table, labels: Any, label: int) -> str:
    """Return the first names of a cluster, for people."""
    ids = table.ids if table.ids is not None else np.arange(1, len(labels) + 1)
    first = np.flatnonzero(labels == label)[: MEMBERS + 1]
    names = [shown(ids[i]) for i in first]
    names = [n if len(n) <= LONGEST else n[: LONGEST - 1] + "…" for n in names]
    return ", ".join(names[:MEMBERS]) + (", …" if len(names) > MEMBERS else "")
