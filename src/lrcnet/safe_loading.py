"""The classes that torch.load(weights_only=True) has to know to load a whole model with layers of this library."""

import inspect
from types import ModuleType

from torch import nn

from lrcnet import cells, cfc_layers, layers, mixed_memory, models, neural_ode, recurrent_layer, torch_layers, wirings
from lrcnet.cells import base, cfc, ctrnn, gated, gru_ode, liquid, wired_cfc
from lrcnet.compat.ncps import conversion
from lrcnet.compat.ncps.torch import cfc_cell, ltc_cell, sequence
from lrcnet.wirings import Wiring

_MODULES: tuple[ModuleType, ...] = (
    *(base, cfc, ctrnn, gated, gru_ode, liquid, wired_cfc, cells),
    *(recurrent_layer, torch_layers, cfc_layers, layers, mixed_memory, neural_ode, models, wirings),
    *(cfc_cell, ltc_cell, sequence, conversion),
)


def safe_globals() -> list[type[nn.Module] | type[Wiring]]:
    """Return the classes to allow when torch.load reads a whole model with weights_only=True.

    These are all modules and wirings of this library, and the modules of torch.nn, which a model usually has beside
    them. Classes of your own have to be added. Nothing is registered: the list is for
    torch.serialization.safe_globals, which allows it within a block, or for torch.serialization.add_safe_globals, which
    allows it for the rest of the process.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Sequential(lrcnet.LRCU(3, 5)), file)
    >>> _ = file.seek(0)
    >>> with torch.serialization.safe_globals(lrcnet.safe_globals()):
    ...     model = torch.load(file, weights_only=True)
    """
    ours = {value for module in _MODULES for value in vars(module).values() if _is_class_of(value, nn.Module, Wiring)}
    theirs = {value for value in vars(nn).values() if _is_class_of(value, nn.Module)}
    return sorted(ours | theirs, key=lambda kind: (kind.__module__, kind.__qualname__))


def _is_class_of(value: object, *kinds: type) -> bool:
    return inspect.isclass(value) and issubclass(value, kinds)
