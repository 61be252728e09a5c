"""Every tolerance of the core tests, with its reason."""

# Our float64 code against the NumPy transcription: both round, but in different orders, over tens of steps.
TRANSCRIPTION = 1e-12
# The same computation divided differently (chunks, batches, directions) in float64.
REARRANGED = 1e-12
# A batch with its own dt per sample against its samples alone, fixed-step solvers.
PER_SAMPLE_DT = 1e-10
# The adaptive solver controls its error over the whole batch: the error that its tolerances allow over T steps.
ADAPTIVE = 1e-6
# The measured order of convergence of a solver.
ORDER = 0.2
# A second implementation in float32 against float64 truth: its error may be this multiple of the plain float32 loop's.
FLOAT32_LAW = 2.0
# Generated C with 16-bit weights against float64, as a share of the largest answer: weights are rounded to 2^-15 of the
# largest of their array, and that error passes through up to 300 steps.
INT16 = 5e-3
# onnxruntime against torch, both in float32, absolute, for answers of about 1.
ONNX = 1e-5
