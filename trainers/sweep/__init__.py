"""Sweeps: many experiments over data sets, splits, methods and options; each result is computed once."""
