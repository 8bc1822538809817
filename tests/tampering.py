"""Saved models with one thing changed, for the tests of what `load` refuses."""

import io
import warnings
import zipfile
from contextlib import closing
from copy import deepcopy
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, issparse

from bistochastic.io.archive import described, pack, unpack
from bistochastic.io.arrays import Archive
from bistochastic.neighbors.points import Points

GONE = object()
SIMPLE = (
    GONE, None, True, -1, 0, 1, 3, 10**30, 10**18, 0.5, -2.5, np.nan, np.inf, 1e300, "",
    "cosine", "both", (), [], [1, 2], {}, {"a": 1}, [{}], [{"a": None}], np.float64(2),
    np.array(3.0), np.zeros(0), np.zeros(5), np.zeros((3, 3)), np.arange(30),
    np.zeros((30, 3)), np.array(["a", None], dtype=object), csr_array((30, 30)),
    csr_array((2, 2)), [[1, 2], [3]],
)  # fmt: skip


def opened(path):
    """Return what a model's file says of itself, and its attributes and extras."""
    with Archive(path, 1 << 30) as archive:
        about = described(archive)
        held = unpack(archive, about)
    about.pop("value")
    return about, held


def written(path, about, held):
    """Write a model's file again."""
    with warnings.catch_warnings(), closing(io.BytesIO()) as stream:
        warnings.simplefilter("ignore")
        pack(stream, held, about)
        path.write_bytes(stream.getvalue())
    assert zipfile.is_zipfile(path)


def arrays(value):
    """Yield arrays that are wrong in one way each."""
    yield value[:-1]
    yield value[::-1]
    yield value[:0]
    yield value.T.reshape(-1)
    yield value[None]
    yield value.astype(np.float32)
    yield value.astype(np.int64)
    yield value.astype(np.complex128)
    yield value.astype(str)
    yield value.astype(object)
    yield value > 0
    for wrong in (-1, 0, 7, 2**40, 1e300, -1e300, 1e-300, np.nan, np.inf):
        made = value.astype(np.float64)
        made.reshape(-1)[:1] = wrong
        yield made
        if abs(wrong) <= 2**40:
            yield made.astype(value.dtype)
        yield np.full_like(made, wrong)
    yield np.concatenate([value, value])


def changes(value):
    """Yield values to put in the place of one."""
    yield from SIMPLE
    if isinstance(value, Points):
        for part in ("X", "metric", "center"):
            for wrong in changes(getattr(value, part)):
                yield replace(value, **{part: None if wrong is GONE else wrong})
        return
    if issparse(value):
        for wrong in arrays(value.data):
            if wrong.shape == value.data.shape and wrong.dtype.kind in "fib":
                yield csr_array((wrong, value.indices, value.indptr), value.shape)
        yield value[:-1]
        yield value.toarray()
        yield csr_array(value.T)
        yield csr_array(value.shape)
        return
    if isinstance(value, np.ndarray) and value.ndim:
        yield from arrays(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        yield value[:-1]
        for key in value[0]:
            for wrong in SIMPLE:
                made = deepcopy(value)
                if wrong is GONE:
                    del made[0][key]
                else:
                    made[0][key] = wrong
                yield made


def tampered(attributes, rng=None, share=1.0):
    """Yield (what was changed, attributes), with one thing changed in each."""
    for name, value in attributes.items():
        for number, wrong in enumerate(changes(value)):
            if rng is not None and rng.random() > share:
                continue
            made = {key: held for key, held in attributes.items() if key != name}
            if wrong is not GONE:
                made[name] = wrong
            yield f"{name}, change {number}", made
