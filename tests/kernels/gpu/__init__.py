"""The GPU's kernels without a GPU: interpreted on the CPU's tensors, and compiled for real targets."""
