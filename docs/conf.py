"""The site of gmil: `make docs` builds it without a network."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_ext"), str(ROOT)]

from tools.inventories import PROJECTS  # noqa: E402
from tools.publish_docs import ABOUT, folder_of  # noqa: E402

_urls = {name.lower(): url.rstrip("/") for name, url in ABOUT.get("urls", {}).items()}
repository_url = _urls.get("repository") or _urls.get("source")  # one place for it: pyproject.toml

project = "gmil"
author = ABOUT["authors"][0]["name"]
project_copyright = author
release = version = ABOUT["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "commands",
    "mathml",
    "outside_links",
]
exclude_patterns = ["_build", "_static", "_templates", "auto_examples/**/*.ipynb", "auto_examples/**/*.py"]
templates_path = ["_templates"]
root_doc = "index"
nitpicky = True
smartquotes = False  # "minmax" is what is typed, and --group has two hyphens
highlight_language = "text"
toc_object_entries_show_parents = "hide"
default_role = "autolink"

# Pages in Markdown. A heading of any page can be linked to as on a code host: scale.md#measured.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"  # formulas are part of the page, no script draws them

# The API reference, from docstrings.
autosummary_generate = True
autosummary_filename_map = {"gmil.report": "gmil.report_function"}  # gmil.Report is another file, on every disk
autodoc_typehints = "none"  # numpydoc's sections tell the types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Links to other projects, by inventories that lie here; tools/inventories.py renews them.
intersphinx_mapping = {
    name: (project.url, str(DOCS / "_inventories" / f"{name}.inv")) for name, project in PROJECTS.items()
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r".*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "backreferences_dir": "reference/generated/examples",
    "doc_module": ("gmil",),
    "reference_url": {"gmil": None},
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "pydata_sphinx_theme"
html_title = "gmil"
html_favicon = "_static/gmil.svg"
html_static_path = ["_static"]
html_css_files = ["gmil.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "development/changelog": []}
html_context = {"default_mode": "auto"}  # as the system has it, until someone presses the switch
html_theme_options = {
    "logo": {"text": "gmil", "image_light": "_static/gmil.svg", "image_dark": "_static/gmil.svg"},
    "navbar_start": ["navbar-logo", "version-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "icon_links": [{"name": "Source", "url": repository_url, "icon": "fa-solid fa-code"}] if repository_url else [],
    # Beside the folders of all versions: tools/publish_docs.py writes it.
    "switcher": {"json_url": "../switcher.json", "version_match": folder_of(release)},
    "check_switcher": False,
    "show_version_warning_banner": True,
}
