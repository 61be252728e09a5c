"""Fused CPU kernels of the liquid equation: whole sequences as one operator, single steps without overhead.

    s_ji = sigmoid(a_ji y_j + b_ji), f_i = sum_j g_ji s_ji + g_l_i, u_i = sum_j k_ji s_ji + g_l_i
    w_i = sum_j o_ji y_j + p_i
    dh/dt = eps(w) (-F(f) h + U(u) e_l),  y = [h, input_scale x + input_shift]

Values of g, g_l and k_eps below 0 count as 0; the gradient passes where it would raise them.
"""

from lrcnet.kernels.native import info, unavailable
from lrcnet.kernels.sequence import reasons, scan
from lrcnet.kernels.stream import step

__all__ = ["info", "reasons", "scan", "step", "unavailable"]
