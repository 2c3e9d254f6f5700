"""Fitting a scorer to labelled lists, one logged and resumable step at a time."""

from ltr.fitting.fit import Fit, NoSlopeError, Step, StopReason
from ltr.fitting.options import FitOptions
from ltr.fitting.validation import Validation, held_out

__all__ = ["Fit", "FitOptions", "NoSlopeError", "Step", "StopReason", "Validation", "held_out"]
