"""The names of ncps.torch."""

from lrcnet.compat.ncps.torch.cfc_cell import CfCCell, WiredCfCCell
from lrcnet.compat.ncps.torch.ltc_cell import LTCCell
from lrcnet.compat.ncps.torch.sequence import LTC, CfC

__all__ = ["LTC", "CfC", "CfCCell", "LTCCell", "WiredCfCCell"]
