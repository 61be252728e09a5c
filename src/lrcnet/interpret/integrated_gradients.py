"""Integrated gradients by Captum (extra `interpret`): how much each input adds to an output."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lrcnet.errors import positive_size


def integrated_gradients(
    output: Callable[[Tensor], Tensor], x: Tensor, baseline: Tensor | float = 0.0, *, steps: int = 32
) -> Tensor:
    """How much each number of x adds to an output, against a baseline.

    Args:
        output: from inputs like x, (sample, ...), to one number per sample, (sample,).
        x: (sample, ...), floating point.
        baseline: what the inputs are compared with: a number, or shaped like x.
        steps: points on the way from the baseline to x. The attributions of a sample add up to the difference of its
            outputs, the better the more there are.

    Returns:
        Shaped like x.

    Raises:
        ImportError: without Captum.

    Example:
        >>> weights = torch.tensor([1.0, -2.0])
        >>> integrated_gradients(lambda x: x @ weights, torch.ones(1, 2)).round(decimals=3)
        tensor([[ 1., -2.]])
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise ImportError(
            "integrated gradients need Captum, which is not installed; run: pip install 'lrcnet[interpret]'"
        ) from error
    method = IntegratedGradients(output, multiply_by_inputs=True)
    found: Tensor = method.attribute(
        x, baselines=baseline, n_steps=positive_size("steps", steps), internal_batch_size=max(len(x), 1)
    )
    return found.detach().to(x.dtype)
