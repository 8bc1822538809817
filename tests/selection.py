"""Which cases run by default, and which only with ``pytest --all``.

By default every kind of behavior is tested with few seeds and configurations, so that
all takes three minutes on two cores.
"""

import pytest

THOROUGH = pytest.mark.thorough
Case = type(pytest.param())


def some(cases, n):
    """Keep the first `n` cases of a parametrization; leave the others for ``--all``."""
    cases = list(cases)
    return [*cases[:n], *map(_thorough, cases[n:])]


def _thorough(case):
    """Mark a case, be it a value, a tuple of values or a `pytest.param`."""
    if isinstance(case, Case):
        return pytest.param(*case.values, marks=[*case.marks, THOROUGH], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=THOROUGH)
