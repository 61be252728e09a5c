"""Former names of `layer_calls`, which `trace` still imports."""

from lrcnet.interpret.layer_calls import (
    Layer,
)
from lrcnet.interpret.layer_calls import (
    LayerCall as Call,
)
from lrcnet.interpret.layer_calls import (
    compute_output as answer_of,
)
from lrcnet.interpret.layer_calls import (
    find_recurrent_layer as recurrent_layer_of,
)
from lrcnet.interpret.layer_calls import (
    only_call as only,
)
from lrcnet.interpret.layer_calls import (
    record_calls as watched,
)

__all__ = ["Call", "Layer", "answer_of", "only", "recurrent_layer_of", "watched"]
