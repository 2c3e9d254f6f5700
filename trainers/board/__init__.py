"""Boards: TensorBoard folders in which the methods of runs and sweeps stand side by side, data set by data set."""
