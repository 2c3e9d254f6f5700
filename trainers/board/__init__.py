"""Boards: TensorBoard folders that compare the methods of runs and sweeps, data set by data set."""
