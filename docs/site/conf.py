"""How Sphinx makes the site: pages in Markdown, a theme that fetches nothing, no link that leads nowhere."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "hpn"
version = release = version_of("hpn")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
nitpicky = True
highlight_language = "none"  # an indented block says no language
html_theme = "furo"
html_title = f"hpn {release}"
html_copy_source = False
html_show_sourcelink = False
