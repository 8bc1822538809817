"""A little of what ``python tests/fuzz.py`` does at length."""

import random

import pytest

import fuzz
from bistochastic.core.errors import InputError

KINDS = ("csv", "npy", "npz", "model")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_end_in_a_table_or_a_sentence(tmp_path, kind):
    if kind == "csv":
        pytest.importorskip("pyarrow")
    known, rng = fuzz.seeds(tmp_path)[kind], random.Random(1)
    refused = 0
    for _ in range(100):
        name, data = rng.choice(known)
        (tmp_path / name).write_bytes(fuzz.mutated(data, rng))
        try:
            fuzz.read(kind, tmp_path / name)
        except InputError:
            refused += 1
    assert refused > 10
