"""The command line; ``bistochastic --help`` explains it."""

import os
import sys


def main() -> None:
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
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        app(prog_name="bistochastic")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
