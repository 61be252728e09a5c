"""Former names of `layer_calls`, which `trace` still imports."""

from lrcnet.interpret import layer_calls

Call = layer_calls.LayerCall
Layer = layer_calls.Layer
answer_of = layer_calls.compute_output
only = layer_calls.only_call
recurrent_layer_of = layer_calls.find_recurrent_layer
watched = layer_calls.record_calls
