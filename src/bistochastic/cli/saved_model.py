"""A saved model, and a file that is read as the one that the model was made of."""

from pathlib import Path
from typing import Any

from bistochastic.cli.console import Voice
from bistochastic.cli.request import Reading
from bistochastic.cli.rows import Rows
from bistochastic.core.errors import FileError, InputError
from bistochastic.io import read_table
from bistochastic.io.models import load_with_extra
from bistochastic.io.table import Table
from bistochastic.tables import Preparation, apply_preparation
from bistochastic.tables.preparation import from_saved_form, has_numbered_columns

NUMBERS_THEN = "It was a column of numbers when the model was made."
KINDS = {  # facts that are kept with a model, and what they are
    "file": str, "scale": str, "command": str, "notes": list, "warnings": list,
    "seconds": dict, "peak_memory_mb": int,
}  # fmt: skip


def read_again(
    voice: Voice, saved: Path, path: Path, reading: Reading, drop_missing: bool
) -> tuple[Any, dict[str, Any], Rows]:
    """Read a model, and a file as the one that it was made of was read.

    Parameters
    ----------
    voice : Voice
        Speaks.
    saved : Path
        The model.
    path : Path
        The file.
    reading : Reading
        How to read it where that differs from the file that the model was made of.
    drop_missing : bool
        Whether rows with missing values are left out.

    Returns
    -------
    model : estimator
        Fitted as it was.
    extra : dict
        What was kept with it.
    rows : Rows
        The file, made ready as the model's was.
    """
    model, extra = load_with_extra(saved, max_memory=reading.max_memory)
    if not (hasattr(model, "labels_") and hasattr(model, "predict_proba")):
        raise InputError(
            f"{saved} holds a {type(model).__name__}, "
            + ("which was not fitted." if hasattr(model, "predict_proba")
               else "which has no rule for new rows.")
        )  # fmt: skip
    preparation = _preparation(saved, model, extra)
    with voice.stage(f"Reading {path.name}"):
        table = _table(path, reading, preparation)
    try:
        prepared = apply_preparation(
            table, preparation, drop_missing=drop_missing, name=path, copy=False
        )
    except InputError:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise FileError(f"{saved} is damaged: {error}") from None
    for note in prepared.notes:
        voice.note(note)
    file = voice.known_as.get(str(path), str(path))
    return model, extra, Rows.of(file, table, prepared)


def _table(path: Path, reading: Reading, preparation: Preparation) -> Table:
    """Read the columns of a file that a model needs."""
    options = preparation.layout | reading.options()
    if not has_numbered_columns(preparation):
        options |= {"use": preparation.names, "exact": True}
    return read_table(
        path, **options, encode=tuple(preparation.texts), advice=NUMBERS_THEN
    )


def _preparation(saved: Path, model: Any, extra: dict[str, Any]) -> Preparation:
    """Return what was done to the columns of the model's table."""
    held = extra.get("preparation")
    if held is None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [str(i + 1) for i in range(model.n_features_in_)]
        return Preparation(list(map(str, names)), {}, "none")
    try:
        return from_saved_form(held, model.n_features_in_)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise FileError(f"{saved} is damaged: what it says of columns.") from None


def facts_kept(saved: Path, extra: dict[str, Any]) -> dict[str, Any]:
    """Return what a model's file says of how it was made, if that can be.

    Parameters
    ----------
    saved : Path
        The model, for messages.
    extra : dict
        What was kept with it.

    Returns
    -------
    dict
        Facts by name.
    """
    told = extra.get("told", {})
    good = isinstance(told, dict) and all(
        isinstance(value, KINDS.get(name, ())) for name, value in told.items()
    )
    seconds = told.get("seconds", {}) if good else {}
    if not good or not all(isinstance(v, int | float) for v in seconds.values()):
        raise FileError(f"{saved} is damaged: what it says of how it was made.")
    return told
