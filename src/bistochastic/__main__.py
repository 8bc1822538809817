"""Runs the command line as ``python -m bistochastic``."""

from bistochastic.cli import main

main()
