"""Learning to rank in PyTorch: convex surrogates first, then an exact reranker with a proof."""
