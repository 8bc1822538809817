"""Columns of texts as categories, or refused."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bistochastic.core.errors import FileError, listed, several
from bistochastic.io.optional import needed
from bistochastic.io.paths import FilePath

TEXTS = 100  # the most different texts of a column of categories


class Categories:
    """The different texts of a column, numbered as they come.

    Parameters
    ----------
    path : path
        The file, for messages.
    name : str
        The column.
    """

    def __init__(self, path: FilePath, name: str) -> None:
        self._path, self._name = path, name
        self._known: dict[str, int] = {}

    def codes(self, words: Any) -> Any:
        """Return the numbers of texts; not a number where one is missing.

        Parameters
        ----------
        words : pyarrow array
            Texts.

        Returns
        -------
        array
            Numbers.
        """
        pa = needed("pyarrow", self._path)
        if not pa.types.is_dictionary(words.type):
            words = words.dictionary_encode()
        codes = [
            np.nan if text is None else self._known.setdefault(text, len(self._known))
            for text in words.dictionary.to_pylist()
        ]
        if len(self._known) > TEXTS:
            raise FileError(
                f"{self._path}: column {self._name!r} has more than {TEXTS} different "
                f"texts, as {listed((repr(t[:20]) for t in self._known), 3)}, too many "
                "for categories. Leave it out (--drop), or take it as the name of the "
                "row (--id)."
            )
        places = words.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        return np.array([*codes, np.nan], dtype=float)[places]

    def ordered(self, codes: Any) -> tuple[str, ...]:
        """Give the texts numbers by their order, in place, and return them.

        Parameters
        ----------
        codes : array
            All numbers of the column, to change.

        Returns
        -------
        tuple of str
            The texts.
        """
        ordered = sorted(self._known)
        order = np.empty(len(ordered))
        for code, text in enumerate(ordered):
            order[self._known[text]] = code
        there = ~np.isnan(codes)
        codes[there] = order[codes[there].astype(np.int64)]
        return tuple(ordered)


ADVICE = (
    "Leave the column out (--drop), take it as the name of the row (--id) or as what "
    "to compare with (--label), or take texts as categories (--encode)."
)


def refused(said: str, others: Sequence[str], advice: str = ADVICE) -> FileError:
    """Return the error about a column of texts.

    Parameters
    ----------
    said : str
        The beginning of the sentence.
    others : list of str
        Names of other such columns.
    advice : str
        What to do.

    Returns
    -------
    FileError
        To raise.
    """
    more = ""
    if others:
        names = listed(map(repr, others), 8)
        more = f" {several(len(others), 'more column')} with texts: {names}."
    return FileError(f"{said} cannot be measured. {advice}{more}")


def note(columns: Iterable[Any]) -> list[str]:
    """Return the notes on columns that are taken as categories."""
    taken = [f"{c.name} ({len(c.texts)})" for c in columns if c.texts]
    return [f"Taken as categories: {listed(taken, 10)}."] if taken else []
