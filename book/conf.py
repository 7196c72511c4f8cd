"""How Sphinx makes the book; `build.py` lays out its source and runs it."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # the extension below, and the package

_project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = "minijax"
author = "the minijax authors"
copyright = author
release = version = _project["version"]

extensions = [
    "myst_nb",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "extension",
]
exclude_patterns: list[str] = []
nitpicky = False
language = "en"

# ---- text: a docstring's `word` is code
default_role = "literal"
highlight_language = "python"
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# ---- chapters: outputs as they are stored, formulas as MathML (extension.py says why)
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_error_lexer = "text"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# ---- the site: everything it needs lies beside it
html_theme = "sphinx_book_theme"
html_title = "minijax"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_favicon = "static/favicon.svg"
html_copy_source = True
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_show_copyright = False
html_last_updated_fmt = None
# A list of all pages beside each module's source would take most of the time to build.
html_sidebars = {"_modules/**": ["navbar-logo.html", "search-button-field.html"]}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# A copy of the project with an address names it in pyproject.toml, [project.urls] Repository;
# only then are there buttons that lead there.
_repository = _project.get("urls", {}).get("Repository", "")
html_theme_options = {
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "max_navbar_depth": 3,
    "collapse_navigation": True,
    "home_page_in_toc": False,
    "use_fullscreen_button": False,
    "use_download_button": True,
    "use_issues_button": bool(_repository),
    "use_repository_button": bool(_repository),
    "launch_buttons": {"thebe": False},
    "search_bar_text": "Search the book",
}
if _repository:
    html_theme_options |= {
        "repository_url": _repository,
        "path_to_docs": "notebooks",
        "launch_buttons": {
            "thebe": False,
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
    }
