"""Vectors in blocks on workers."""

import numpy as np
import pytest

pytest.importorskip("distributed")


def test_large_vectors_are_sent_without_a_warning(client):
    from bistochastic.places.dask_workers.client import Recorder
    from bistochastic.places.dask_workers.layout import Layout

    values = np.arange(2_000_000.0)
    layout = Layout(Recorder(client), [2_000_000])
    assert float((layout.divided(values) * 1.0)[np.array([7])][0]) == 7
