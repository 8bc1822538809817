"""Tables of candidates, made of pairs and of points."""

import numpy as np

from bistochastic.cluster.candidates import of_points
from bistochastic.neighbors.points import Points
from bistochastic.places.given_pairs import distinct
from bistochastic.places.host.host import Host
from bistochastic.places.parts import parts


def test_rows_of_similar_length_share_a_table(rng):
    lengths = rng.integers(1, 40, 100)
    i = np.repeat(np.arange(100), lengths)
    j, costs = rng.integers(0, 100, i.size), rng.random(i.size)
    made = parts(i, j, costs, 100)
    assert sorted(np.concatenate([part.rows for part in made])) == list(range(100))
    assert sum(part.values.size for part in made) <= 2 * i.size
    for part in made:
        for row, columns, values in zip(
            part.rows, part.columns, part.values, strict=True
        ):
            on = np.isfinite(values)
            np.testing.assert_array_equal(columns[on], j[i == row])
            np.testing.assert_array_equal(values[on], costs[i == row])
            assert not on[lengths[row] :].any()


def test_distinct_points_are_counted(rng):
    X = rng.random((12, 2))[rng.integers(0, 12, 50)]
    number = len(np.unique(X, axis=0))
    for wanted in (20, None):
        points = Points.of(X, "euclidean")
        made = of_points(Host(), points, len(X), 20, wanted, loops=True)
        assert distinct(made.costs) == number
