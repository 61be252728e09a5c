"""The largest elastance on a box, and 1 minus it without rounding to 0 where eps itself rounds to 1."""

from typing import NamedTuple

import torch
from torch import Tensor

from lrcnet.liquid import Circuit


class ElastanceLimit(NamedTuple):
    """The largest elastance of each unit on a box, and 1 minus it, each (m,)."""

    largest: Tensor
    complement: Tensor


def elastance_limit(circuit: Circuit, low: Tensor, high: Tensor) -> ElastanceLimit:
    """Return the largest elastance eps(w_i), w_i = sum_j o_ji y_j + p_i, for y (J,) between low and high.

    The asymmetric form grows with w. The symmetric form is even in w and falls with |w|, so it is largest where |w| is
    smallest, and equals tanh(k / 2) there if w can be 0. Without elastance, eps is 1.
    """
    if circuit.o is None:
        return ElastanceLimit(torch.ones_like(circuit.e_l), torch.zeros_like(circuit.e_l))
    centre, radius = (low + high) / 2, (high - low) / 2
    middle = centre @ circuit.o + (0 if circuit.p is None else circuit.p)
    spread = radius @ circuit.o.abs()
    if circuit.k_eps is None:
        w = middle + spread
        return ElastanceLimit(torch.sigmoid(w), torch.sigmoid(-w))
    w, k = (middle.abs() - spread).clamp(min=0), circuit.k_eps
    # sigma(w + k) - sigma(w - k), written as a product to avoid the difference of two numbers that both round to 1.
    eps = torch.sigmoid(w + k) * torch.sigmoid(k - w) * -torch.expm1(-2 * k)
    return ElastanceLimit(eps, torch.sigmoid(-w - k) + torch.sigmoid(w - k))
