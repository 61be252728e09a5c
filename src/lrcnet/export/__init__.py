"""Trained networks for other programs: ONNX files, and C99 source for devices."""

from lrcnet.export.c_source import CSource, export_c, generate_c
from lrcnet.export.onnx_file import export_onnx

__all__ = ["CSource", "export_c", "export_onnx", "generate_c"]
