"""Pages and files about finished runs and trained networks: how results look, and nothing about what they mean."""

from lrcnet_paper.report.artefact_folder import write_folder
from lrcnet_paper.report.assemble import ArtefactSection, assemble
from lrcnet_paper.report.html_report import write_html
from lrcnet_paper.report.markdown_report import check_page, write_markdown

__all__ = ["ArtefactSection", "assemble", "check_page", "write_folder", "write_html", "write_markdown"]
