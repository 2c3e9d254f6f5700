"""Fitting a scorer to labelled lists, one logged and resumable step at a time."""

from ltr.fitting.fit import DeviceName, Fit, FitOptions, NoSlopeError, OptimizerName, Step, StopReason

__all__ = ["DeviceName", "Fit", "FitOptions", "NoSlopeError", "OptimizerName", "Step", "StopReason"]
