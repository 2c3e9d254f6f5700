"""What torch does with a tensor and does not say publicly: the only place that asks torch's private names.

Compiled kernels read the numbers of a tensor, which a transform of ``torch.func`` hides from them. If a version of
torch lacks a name, the answer is the careful one: operations of torch in place of kernels, slower and never wrong. The
other private name that the package knows is ``GOMP_parallel``, OpenMP's start of threads, in `ltr/native/workers.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["is_batch_of_gradients", "is_transformed", "is_under_vmap"]


def _private(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of torch's private module of transforms, or what takes its place if torch lacks it."""
    found: Callable[..., Any] = getattr(getattr(torch._C, "_functorch", None), name, otherwise)
    return found


_innermost = _private("peek_interpreter_stack", lambda: "unknown")
_is_lane = _private("is_batchedtensor", lambda tensor: False)
is_batch_of_gradients = _private("is_legacy_batchedtensor", lambda tensor: True)
"""Whether a tensor is a batch of gradients, as ``torch.autograd.grad(is_grads_batched=True)`` passes them back."""


def is_transformed() -> bool:
    """Return whether a call is made within a transform of ``torch.func``, such as ``grad``, ``jvp`` or ``vmap``."""
    return _innermost() is not None


def is_under_vmap(*tensors: Tensor | None) -> bool:
    """Return whether one of the tensors is a lane of ``torch.func.vmap``, whose numbers nobody can look at."""
    return any(tensor is not None and _is_lane(tensor) for tensor in tensors)
