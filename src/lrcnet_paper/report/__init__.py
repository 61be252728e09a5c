"""HTML, Markdown and files out of finished runs: how things look, and nothing of what they mean."""

from lrcnet_paper.report.assemble import Section, assemble
from lrcnet_paper.report.folder import write_folder
from lrcnet_paper.report.markdown import write_markdown
from lrcnet_paper.report.page import write_page

__all__ = ["Section", "assemble", "write_folder", "write_markdown", "write_page"]
