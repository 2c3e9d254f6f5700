"""The study of reranking on new data: its results, and the page made of them."""
