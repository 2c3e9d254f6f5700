"""The exact reranker: problems, solvers and their certified answers."""
