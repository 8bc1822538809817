"""The command `report`: the page of a saved model."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bistochastic.cli.console import Voice
from bistochastic.cli.inputs import at_hand
from bistochastic.cli.outputs import PAGES, check_outputs
from bistochastic.cli.request import Reading, Writing
from bistochastic.cli.rows import Rows
from bistochastic.cli.saved_model import facts_kept, read_again
from bistochastic.core.errors import InputError, several
from bistochastic.report import write_page
from bistochastic.tables.preparation import coordinate_names

SCALERS = {"zscore": "StandardScaler", "minmax": "MinMaxScaler"}


def report(
    voice: Voice,
    saved: Path,
    reading: Reading,
    out: str,
    writing: Writing,
    *,
    drop_missing: bool,
) -> None:
    """Read a model and the file that it was made of, and write a page.

    Parameters
    ----------
    voice : Voice
        Speaks.
    saved : Path
        The model.
    reading : Reading
        The file.
    out : str
        The page.
    writing : Writing
        How it is written.
    drop_missing : bool
        Whether rows with missing values are left out.
    """
    with at_hand(voice, reading) as path:
        check_outputs(
            voice, [saved, path], {"out": out}, writing.force, endings={"out": PAGES}
        )
        model, extra, rows = read_again(voice, saved, path, reading, drop_missing)
        if rows.number != model.labels_.size:
            raise InputError(
                f"{path} has {several(rows.number, 'row')}, and the model was made of "
                f"{model.labels_.size:,}; a page needs the file that it was made of."
            )
        facts = {"file": str(path), "scale": rows.preparation.scale}
        facts |= facts_kept(saved, extra)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature")
            put_page(voice, out, model, rows, facts, writing)
        voice.tell(f"The page: {out}")


def put_page(
    voice: Voice,
    out: str,
    model: Any,
    rows: Rows,
    facts: dict[str, Any],
    writing: Writing,
) -> None:
    """Write the page of a model and the rows that it was made of.

    Parameters
    ----------
    voice : Voice
        Speaks.
    out : str
        Where to.
    model : estimator
        Fitted.
    rows : Rows
        What it was fitted to.
    facts : dict
        What else to say on the page.
    writing : Writing
        How to lay rows out, and whether a file may be replaced.
    """
    names, shift, factor = coordinate_names(rows.preparation)
    with voice.stage("Writing the page"):
        write_page(
            out,
            model,
            rows.X,
            names=names,
            ids=_ids(rows),
            truth=rows.truth,
            shift=shift,
            factor=factor,
            layout=writing.layout,
            more=facts | {"scaled": _scaler(rows, facts["scale"])},
            force=writing.force,
        )
    voice.wrote(out, "page to look at")


def _ids(rows: Rows) -> Any:
    """Return names of the rows that are kept, if their numbers will not do."""
    if rows.table.ids is not None:
        return np.asarray(rows.table.ids)[rows.kept]
    if rows.kept.all():
        return None
    return [f"row {at + 1}" for at in np.flatnonzero(rows.kept)]


def _scaler(rows: Rows, scale: str) -> str | None:
    """Return what scales the rows in the code that the page shows; dots if nothing."""
    preparation = rows.preparation
    if rows.kept.all() and not preparation.texts and not preparation.fill:
        return SCALERS.get(scale)
    return "..."
