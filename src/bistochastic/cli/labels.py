"""The clusters of the rows: written, and compared with labels that were given."""

import io
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from bistochastic.cli.console import Voice
from bistochastic.cli.request import Writing
from bistochastic.core.errors import several
from bistochastic.io import write_labels
from bistochastic.io.table import Table
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)

SCORES = {
    "accuracy": clustering_accuracy,
    "nmi": normalized_mutual_information,
    "purity": purity,
    "ari": adjusted_rand_score,
}


def of_every_row(labels: Any, kept: Any) -> Any:
    """Return labels of all rows, None for those that were left out.

    Parameters
    ----------
    labels : array of int
        Labels of the rows that are kept.
    kept : array of bool
        Which these are.

    Returns
    -------
    array
        One label for each row.
    """
    if kept.all():
        return labels
    every = np.full(kept.size, None, dtype=object)
    every[kept] = labels.tolist()
    return every


def put_labels(
    voice: Voice,
    out: str,
    writing: Writing,
    labels: Any,
    table: Table,
    columns: dict[str, Any] | None = None,
) -> None:
    """Write the cluster of each row where it is wanted.

    Parameters
    ----------
    voice : Voice
        Speaks.
    out : str
        Where to; ``-`` is standard output.
    writing : Writing
        How.
    labels : array
        The clusters; None for rows that were left out.
    table : Table
        Names of the rows.
    columns : dict, optional
        More columns, by name.
    """
    text = io.StringIO()
    stream = out == "-"
    marked = write_labels(
        text if stream else out, labels, ids=table.ids,
        id_name=table.id_name, columns=columns, force=writing.force,
        raw=writing.raw_ids,
    )  # fmt: skip
    if stream:
        voice.put(text.getvalue())
    else:
        voice.wrote(out, f"clusters of {several(len(labels), 'row')}")
    if marked:
        voice.warn(
            f"{several(marked, 'name')} that a spreadsheet would take for a formula "
            "got an apostrophe before it (--raw-ids leaves them)."
        )


def scores(truth: Any, labels: Any) -> dict[str, Any] | None:
    """Return how well clusters agree with given labels, where there are such.

    Parameters
    ----------
    truth : array or None
        Given labels; None where one is missing.
    labels : array of int
        Clusters.

    Returns
    -------
    dict or None
        Scores by name, and how many rows had a label.
    """
    if truth is None:
        return None
    there = np.array([t is not None and t == t for t in truth.tolist()], dtype=bool)
    if not there.any():
        return None
    places: dict[str, int] = {}
    truth = np.array([places.setdefault(str(t), len(places)) for t in truth[there]])
    found = {name: float(f(truth, labels[there])) for name, f in SCORES.items()}
    return found | {"rows": int(there.sum()), "classes": len(places)}


def show_scores(voice: Voice, found: dict[str, Any] | None) -> None:
    """Show how well clusters agree with given labels, where there are such."""
    if found:
        voice.tell(
            f"Against the {several(found['classes'], 'label')} of "
            f"{several(found['rows'], 'row')}: accuracy {found['accuracy']:.1%}, NMI "
            f"{found['nmi']:.2f}, adjusted Rand index {found['ari']:.2f}, purity "
            f"{found['purity']:.1%}."
        )
