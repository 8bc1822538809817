"""Runs the command line as ``python -m bistochastic``."""

from bistochastic.cli import main

if __name__ == "__main__":
    main()
