"""One page per run, to look at in a browser: one file, which needs no network."""

from bistochastic.report.page import check_installed, write_page

__all__ = ["check_installed", "write_page"]
