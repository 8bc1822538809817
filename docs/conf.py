"""How the site is built: ``make docs`` leaves it in build/site."""

import os

os.environ.setdefault("BISTOCHASTIC_POINTS", "100000")  # of plot_million.py
os.environ.setdefault("MPLBACKEND", "Agg")

import bistochastic

project = "bistochastic"
author = "The bistochastic developers"
version = release = bistochastic.__version__
copyright = f"2026, {author}"

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["style.md", "_parts"]
templates_path = ["_parts/templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # of the gallery's own objects

plot_html_show_source_link = False
plot_html_show_formats = False
plot_include_source = False
plot_formats = [("png", 110)]

autosummary_generate = True
autodoc_default_options = {
    "members": True,
    "inherited-members": True,
    "exclude-members": "get_metadata_routing, set_output",
}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"pictures\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "thumbnail_size": (320, 224),
}

html_theme = "pydata_sphinx_theme"
html_title = "bistochastic"
html_static_path = ["_parts/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "show_toc_level": 2,
}
html_sidebars = {
    page: [] for page in ("index", "start", "choose", "how", "troubleshooting")
}
