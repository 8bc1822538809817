"""The theory pages name files and tests that exist, and their formulas can be set."""

import re
from pathlib import Path

import pytest
from matplotlib.mathtext import MathTextParser

ROOT = Path(__file__).parents[2]
THEORY = sorted((ROOT / "docs" / "theory").glob("*.md"))
PAGES = [*THEORY, *sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r"```math\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"\$([^$\n]+)\$")


def formulas(text):
    """Yield the formulas of a page, displayed and inline."""
    yield from BLOCK.findall(text)
    yield from INLINE.findall(re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL))


@pytest.mark.parametrize("page", THEORY, ids=lambda page: page.stem)
def test_formulas_can_be_set(page):
    """matplotlib knows a part of TeX that every renderer of Markdown knows."""
    found = list(formulas(page.read_text()))
    assert found or page.stem == "decisions"
    for formula in found:
        plain = re.sub(r"\\[lr]Vert", r"\\Vert", " ".join(formula.split()))
        MathTextParser("agg").parse(f"${plain}$")


def test_dollars_come_in_pairs():
    for page in THEORY:
        for line in re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).split(
            "\n\n"
        ):
            assert line.count("$") % 2 == 0, (page.name, line)
            # Markdown would take the backslash away
            for formula in INLINE.findall(line):
                assert not re.search(r"\\[{}|,;!#]", formula), formula


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_tests_and_links_exist(page):
    text = page.read_text()
    for file, test in re.findall(r"`((?:src|tests)/[\w./]+)(?:::(\w+))?`", text):
        assert (ROOT / file).is_file(), file
        if test:
            assert f"def {test}(" in (ROOT / file).read_text(), test
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        if link.startswith("gallery/"):  # made of the examples
            example = f"{link.removeprefix('gallery/')}.py"
            assert link == "gallery/index" or (ROOT / "examples" / example).is_file()
        elif not link.startswith("http"):
            assert (page.parent / link).exists(), link


def test_every_statement_so_far_has_its_heading():
    headings = [
        line
        for page in THEORY
        for line in page.read_text().splitlines()
        if line.startswith("## ")
    ]
    wanted = [f"Eq. ({n})" for n in range(1, 29)]
    wanted += ["Definition 1", "Theorem 1", "Theorem 2", "Theorem 3"]
    wanted += ["Algorithm 1", "Algorithm 2"]
    wanted += ["Corollary 1", "Corollary 2"]
    for name in wanted:
        assert any(name in heading for heading in headings), name
