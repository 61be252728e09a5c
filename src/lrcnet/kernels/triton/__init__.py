"""The fused scan on GPUs, in Triton: forward and backward pass of the whole family, for NVIDIA and AMD.

Triton is an extra, and nothing here but `sizes` is imported before the first tensor on a GPU. `launch` runs the kernels
of the other files.

Axes: T time, B batch, n inputs, m hidden units, J = m + n presynaptic rows, K unfoldings. A point is one (t, b), or one
(t, unfolding, b).
"""
