"""Each equation of the paper is named in the docstring of the file that has it."""

import ast
import re
from pathlib import Path

import bistochastic

SOURCE = Path(bistochastic.__file__).parent
WHERE = {  # printed number -> file
    1: "scaling/marcus.py",
    2: "scaling/fixed_point.py",
    3: "scaling/support.py",
    4: "scaling/support.py",
    5: "scaling/support.py",
    6: "graph/objective.py",
    7: "graph/objective.py",
    8: "graph/objective.py",
    10: "graph/objective.py",
    9: "spectrum/ky_fan.py",
    11: "spectrum/ky_fan.py",
    12: "spectrum/ky_fan.py",
    13: "scaling/frobenius.py",
    14: "graph/objective.py",
    15: "graph/simplex.py",
    16: "cluster/steps.py",
    18: "graph/simplex.py",
    19: "graph/simplex.py",
    17: "scaling/marcus.py",
    20: "graph/objective.py",
    21: "graph/objective.py",
    22: "graph/objective.py",
    23: "graph/objective.py",
    24: "scaling/transport.py",
    25: "scaling/transport.py",
    26: "scaling/transport.py",
    27: "scaling/transport.py",
    28: "scaling/transport.py",
}
NAMES = {
    "Algorithm 1": "scaling/alternating.py",
    "Algorithm 2": "cluster/ancmm.py",
    "Corollary 1": "scaling/support.py",
    "Corollary 2": "scaling/fixed_point.py",
    "Definition 1": "scaling/support.py",
    "Theorem 1": "scaling/support.py",
    "Theorem 2": "scaling/marcus.py",
    "Theorem 3": "graph/components.py",
}


def first_docstring(file):
    return ast.get_docstring(ast.parse((SOURCE / file).read_text())) or ""


def numbers(text):
    """Read the numbers in 'Eq. (2)', 'Eqs. (3)-(5)' and 'Eqs. (9), (11)'."""
    found = set()
    for part in re.findall(r"Eqs?\.\s+((?:\(\d+\)[-, and]*)+)", text):
        for a, b in re.findall(r"\((\d+)\)(?:-\((\d+)\))?", part):
            found.update(range(int(a), int(b or a) + 1))
    return found


def test_every_equation_has_its_file():
    assert sorted(WHERE) == list(range(1, 29))


def test_equations_stand_in_the_first_line_of_their_file():
    for number, file in WHERE.items():
        assert number in numbers(first_docstring(file)), (number, file)


def test_theorems_stand_in_the_first_line_of_their_file():
    for name, file in NAMES.items():
        assert name in first_docstring(file), (name, file)


def test_no_docstring_names_an_equation_the_paper_does_not_have():
    for file in SOURCE.rglob("*.py"):
        assert numbers(file.read_text()) <= set(range(1, 29)), file
