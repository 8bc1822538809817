"""Validate the docstring of every public name, its methods and its properties."""

import inspect
import sys

from numpydoc.validate import validate

import bistochastic
import bistochastic.datasets
import bistochastic.io
import bistochastic.plot
import bistochastic.report
import bistochastic.singlecell
import bistochastic.tables

LEFT_OUT = {
    "ES01",  # a summary may be enough
    "PR01",  # ruff's D417 sees to functions; results are documented as attributes
    "GL01",  # text starts behind the quotes
    "SA01",  # not everything has something to see also
}


def names():
    """List the public names, and the public members that classes define."""
    public = (
        bistochastic, bistochastic.datasets, bistochastic.io, bistochastic.plot,
        bistochastic.report, bistochastic.singlecell, bistochastic.tables,
    )  # fmt: skip
    for module in public:
        for name in module.__all__:
            yield f"{module.__name__}.{name}"
            thing = getattr(module, name)
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and callable(value):
                        yield f"{module.__name__}.{name}.{member}"


def main():
    """Print what is wrong; exit with 1 if anything is."""
    wrong = [
        f"{name}: {code} {text}"
        for name in names()
        for code, text in validate(name)["errors"]
        if code not in LEFT_OUT
    ]
    print("\n".join(wrong) or f"{len(list(names()))} public docstrings are valid")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
