"""Former names of `layer_calls`, which `trace` still imports."""

from lrcnet.interpret import layer_calls

Call, Layer = layer_calls.LayerCall, layer_calls.Layer
answer_of, only = layer_calls.compute_output, layer_calls.only_call
recurrent_layer_of, watched = layer_calls.find_recurrent_layer, layer_calls.record_calls
