"""The command `predict`: the rows of another file in the clusters of a saved model."""

from pathlib import Path
from typing import Any

import numpy as np

from bistochastic.cli.console import Voice
from bistochastic.cli.inputs import at_hand
from bistochastic.cli.labels import of_every_row, put_labels, scores, show_scores
from bistochastic.cli.outputs import TABLES, check_outputs
from bistochastic.cli.request import Reading, Writing
from bistochastic.cli.rows import Rows
from bistochastic.cli.saved_model import read_again
from bistochastic.cli.summary import SHOWN, versions
from bistochastic.core.errors import FileError, InputError, listed, several
from bistochastic.core.parameters import check_jobs
from bistochastic.io.writing import as_json


def predict(
    voice: Voice,
    saved: Path,
    reading: Reading,
    writing: Writing,
    *,
    drop_missing: bool,
    jobs: int | None,
) -> None:
    """Read a model and a file, assign its rows, write, and say what came out.

    Parameters
    ----------
    voice : Voice
        Speaks.
    saved : Path
        The model.
    reading : Reading
        The file.
    writing : Writing
        Where to write.
    drop_missing : bool
        Whether rows with missing values are left out.
    jobs : int or None
        Threads.
    """
    with at_hand(voice, reading) as path:
        check_outputs(
            voice, [saved, path], writing.files(), writing.force,
            endings={"labels": TABLES}, streams=("labels",),
        )  # fmt: skip
        check_jobs("n_jobs", jobs)
        model, _, rows = read_again(voice, saved, path, reading, drop_missing)
        if jobs is not None:
            model.set_params(n_jobs=jobs)
        with voice.stage(f"Assigning {several(rows.number, 'row')}"):
            shares = _shares(model, rows, saved, path)
        facts = _facts(model, rows, shares, saved, writing)
        if writing.labels:
            _write(voice, writing.labels, rows, shares, writing)
        if writing.json:
            voice.put(as_json(facts))
        else:
            _show(voice, facts)


def _shares(model: Any, rows: Rows, saved: Path, path: Path) -> Any:
    """Return the share of each cluster in the neighborhood of each row."""
    try:
        return model.predict_proba(rows.X)
    except InputError:
        raise
    except Exception as error:  # of attributes that are not what they were
        raise FileError(f"{saved} does not fit {path}: {error}") from None


def _facts(
    model: Any, rows: Rows, shares: Any, saved: Path, writing: Writing
) -> dict[str, Any]:
    """Return the summary, as it is printed."""
    found = shares.argmax(axis=1)
    return {
        "file": rows.file,
        "model": str(saved),
        "rows": len(rows.kept),
        "rows_left_out": int((~rows.kept).sum()),
        "sizes": np.bincount(found, minlength=model.n_clusters_).tolist(),
        "mean_confidence": float(shares.max(axis=1).mean()),
        "scores": scores(rows.truth, found),
        "notes": rows.notes,
        "outputs": writing.wanted(),
        "versions": versions(),
    }


def _write(voice: Voice, out: str, rows: Rows, shares: Any, writing: Writing) -> None:
    """Write the cluster of each row and the confidence of it."""
    confidence = np.full(len(rows.kept), np.nan)
    confidence[rows.kept] = shares.max(axis=1)
    columns = {"confidence": [None if c != c else round(c, 6) for c in confidence]}
    labels = of_every_row(shares.argmax(axis=1), rows.kept)
    put_labels(voice, out, writing, labels, rows.table, columns)


def _show(voice: Voice, facts: dict[str, Any]) -> None:
    """Show the clusters of the rows to a person."""
    sizes = facts["sizes"]
    each = (f"cluster {i}: {size:,}" for i, size in enumerate(sizes))
    voice.tell(
        f"{several(sum(sizes), 'row')} assigned ({listed(each, SHOWN)}), with a mean "
        f"confidence of {facts['mean_confidence']:.2f}."
    )
    show_scores(voice, facts["scores"])
