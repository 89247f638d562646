# SPDX-License-Identifier: MIT
"""Configuration of Sphinx for these pages; `make docs` calls it. Extensions of our own are in _ext/."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "spcomm"
author = copyright = "the spcomm developers"
release = version = re.search(r'__version__ = "(.+)"', (HERE.parent / "spcomm" / "__init__.py").read_text())[
    1
]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "spcomm_docs",
    "mathml",
]
exclude_patterns = ["_ext"]
suppress_warnings = ["myst.xref_missing_lang"]

# Every reference has to lead somewhere. What stands in single backquotes in docstrings is one if it is dotted, and
# else one if there is such a name: parameters stand there, too (_ext/spcomm_docs.py).
nitpicky = True
default_role = "name"

myst_heading_anchors = 4  # as code hosts make them: [limits](run.md#buffers)
myst_enable_extensions = ["deflist", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_dmath_allow_space = myst_dmath_allow_digits = False  # as code hosts do: $ and a letter

numpydoc_show_class_members = False  # _ext/api.py says which, and where
numpydoc_use_plots = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"  # the types stand in the docstrings

smartquotes_action = "qe"  # quotes and ellipses; two hyphens begin an option

html_theme = "furo"
html_title = f"spcomm {release}"
html_static_path = ["_static"]
html_css_files = ["spcomm.css"]
html_logo = html_favicon = "_static/logo.svg"
html_sourcelink_suffix = ""  # llms.txt leads to the Markdown
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "native"
highlight_language = "text"  # a block that says nothing of its language is what a terminal shows

# The copy button leaves out prompts and, where a block has some, what the commands print.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
