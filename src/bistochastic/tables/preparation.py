"""What is done to the columns of a table, learned from one and kept for others."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bistochastic.tables.scales import SCALES

APART = 0.5**0.5  # the value of a category's column: two texts are at distance one
LAYOUT: dict[str, Any] = {  # options of `read_table` that are kept, and their types
    "key": str, "separator": str, "decimal": str, "encoding": str, "header": bool,
    "missing": list | tuple, "thousands": str, "skip": int,
}  # fmt: skip


@dataclass(eq=False)
class Preparation:
    """What is done to the columns of a table, learned from one and kept for others.

    Attributes
    ----------
    names : list of str
        Columns, as they are read.
    texts : dict
        The texts of columns that are categories, by name.
    scale : {"zscore", "minmax", "none"}
        What is done to the columns of numbers.
    layout : dict
        How the file is read, as options of `read_table`.
    fill : dict
        What stands for missing values, by name of the column.
    shift, factor : array
        What is subtracted from the columns of numbers, and what they are divided by.
    low, high : array
        The range of each column of numbers.

    See Also
    --------
    prepare_table : Learns it.
    apply_preparation : Does the same to other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bistochastic.io import Column, Table
    >>> from bistochastic.tables import prepare_table
    >>> table = Table(np.array([[1.0], [3.0]]), (Column("height"),))
    >>> learned = prepare_table(table).preparation
    >>> learned.names, learned.scale, learned.shift, learned.factor
    (['height'], 'zscore', array([2.]), array([1.]))
    """

    names: list[str]
    texts: dict[str, tuple[str, ...]]
    scale: str
    layout: dict[str, Any] = field(default_factory=dict)
    fill: dict[str, float] = field(default_factory=dict)
    shift: Any = None
    factor: Any = None
    low: Any = None
    high: Any = None


def saved_form(preparation: Preparation) -> dict[str, Any]:
    """Return what is saved with a model."""
    return dict(vars(preparation))


def from_saved_form(held: dict[str, Any], width: int) -> Preparation:
    """Return the preparation that was saved with a model, if it can be one.

    Parameters
    ----------
    held : dict
        What was saved.
    width : int
        How many coordinates have to come out.

    Returns
    -------
    Preparation
        The same as before. Whatever error comes up says that it is damaged.
    """
    made = Preparation(**held)
    made.layout = dict(made.layout)
    if not (_columns_fit(made, width) and _arrays_fit(made) and _layout_fits(made)):
        raise ValueError("no preparation")
    return made


def _columns_fit(made: Preparation, width: int) -> bool:
    """Tell whether names, texts and what fills gaps belong together."""
    number = len(made.names)
    more = [text for held in made.texts.values() for text in held]
    return (
        made.scale in SCALES
        and isinstance(made.names, list)
        and all(isinstance(text, str) for text in [*made.names, *more])
        and len(set(made.names)) == number
        and set(made.texts) | set(made.fill) <= set(made.names)
        and number - len(made.texts) + len(more) == width
        and all(np.isfinite(float(value)) for value in made.fill.values())
    )


def _arrays_fit(made: Preparation) -> bool:
    """Tell whether there are finite numbers for all columns, and no factor is zero."""
    number = len(made.names)
    for held in (made.shift, made.factor, made.low, made.high):
        if held is not None:
            shaped = held.shape == (number,) and held.dtype == float
            if not (shaped and np.isfinite(held).all()):
                return False
    return (
        (made.low is None) == (made.high is None)
        and (made.shift is None) == (made.factor is None) == (made.scale == "none")
        and (made.factor is None or bool((made.factor != 0).all()))
    )


def _layout_fits(made: Preparation) -> bool:
    """Tell whether options of reading are known, and of their types."""
    for name, value in made.layout.items():
        if not (value is None or isinstance(value, LAYOUT[name])):
            return False
    return all(isinstance(text, str) for text in made.layout.get("missing", ()))


def has_numbered_columns(preparation: Preparation) -> bool:
    """Tell whether the columns had no names but their numbers."""
    number = len(preparation.names)
    return preparation.names == [str(i + 1) for i in range(number)]


def coordinate_names(preparation: Preparation) -> tuple[list[str], Any, Any]:
    """Return names of coordinates, and what brings them back to their units.

    Parameters
    ----------
    preparation : Preparation
        What made the coordinates.

    Returns
    -------
    names : list of str
        One for each coordinate: numbers first, then each text of each category.
    shift, factor : array
        A coordinate times `factor` plus `shift` is what stood in the file.
    """
    columns, texts = preparation.names, preparation.texts
    d = len(columns)
    numbers = [at for at in range(d) if columns[at] not in texts]
    shift = np.zeros(d) if preparation.shift is None else preparation.shift
    factor = np.ones(d) if preparation.factor is None else preparation.factor
    names = [columns[at] for at in numbers]
    for name in columns:
        names += [f"{name} = {text}" for text in texts.get(name, ())]
    more = len(names) - len(numbers)
    return (
        names,
        np.concatenate([shift[numbers], np.zeros(more)]),
        np.concatenate([factor[numbers], np.full(more, 1 / APART)]),
    )
