"""Local search: good weights by exact line searches from many starts, without a proof.

`LocalSearch` is the method of `solve`, and `search_locally` what other methods start from; the search itself is in
`ltr.exact.local_search.search`.
"""

from ltr.exact.local_search.method import RESTARTS, LocalSearch, compile_search, search_locally

__all__ = ["RESTARTS", "LocalSearch", "compile_search", "search_locally"]
