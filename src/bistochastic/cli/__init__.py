"""The command line; ``bistochastic --help`` explains it."""

import sys


def main():
    """Run the command line, or say what it needs."""
    try:
        from bistochastic.cli.app import app
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.exit(
            f"The command line needs {error.name}, which is not installed: "
            "pip install 'bistochastic[cli]'"
        )
    app(prog_name="bistochastic")
