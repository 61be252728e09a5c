"""HTML, Markdown and files out of finished runs: how things look, and nothing of what they mean."""

from lrcnet.report.assemble import Section, assemble
from lrcnet.report.folder import write_folder
from lrcnet.report.markdown import write_markdown
from lrcnet.report.page import write_page

__all__ = ["Section", "assemble", "write_folder", "write_markdown", "write_page"]
