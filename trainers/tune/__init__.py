"""Searches for the best options of an experiment, trial by trial."""
