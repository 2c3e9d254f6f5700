"""Fitting a scorer to labelled lists, one logged and resumable step at a time."""

from ltr.fitting.fit import Fit, NoSlopeError, Step, StopReason
from ltr.fitting.options import DeviceName, FitOptions, OptimizerName

__all__ = ["DeviceName", "Fit", "FitOptions", "NoSlopeError", "OptimizerName", "Step", "StopReason"]
