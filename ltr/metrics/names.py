"""Names of measures as ir_measures and trec_eval spell them: ``nDCG@10``, ``P@5``, ``ndcg_cut_10``, ``map``.

Both take the label itself as the gain of NDCG, so ``ndcg_cut_10`` and ``nDCG@10`` are ``ndcg(gain=linear)@10``. Only
trec_eval's ``ndcg``, the one without a cutoff, cannot be told from ours: ask for it by ``ndcg(gain=linear)``.
"""

from __future__ import annotations

import re

_NAMES = {
    **dict.fromkeys(("nDCG", "NDCG"), "ndcg"),
    **dict.fromkeys(("AP", "MAP", "map"), "ap"),
    **dict.fromkeys(("RR", "MRR", "recip_rank"), "mrr"),
    **dict.fromkeys(("P", "Precision"), "precision"),
    **dict.fromkeys(("R", "Recall"), "recall"),
    **dict.fromkeys(("Rprec", "RPrec"), "rprec"),
    **dict.fromkeys(("Bpref", "BPref"), "bpref"),
    **{"Success": "success", "RBP": "rbp", "ERR": "err"},
    **{"NumRet": "num_ret", "NumRel": "num_rel", "NumRelRet": "num_rel_ret"},
}
_WITH_CUTOFF = {"P": "precision", "recall": "recall", "map_cut": "ap", "ndcg_cut": "ndcg(gain=linear)",
                "success": "success"}  # fmt: skip
_UNDERSCORE = re.compile(rf"({'|'.join(_WITH_CUTOFF)})[_.]([0-9]+)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_GAINS = {"(dcg='exp-log2')": "", "(dcg='log2')": "(gain=linear)"}  # of nDCG


def plain_name(text: str) -> str:
    """Return the name of a measure as this package spells it; one that is nobody else's passes through.

    Examples:
        >>> plain_name("nDCG(dcg='exp-log2')@10"), plain_name("ndcg_cut_10"), plain_name("RBP(p=0.9)")
        ('ndcg@10', 'ndcg(gain=linear)@10', 'rbp(p=0.9)')
        >>> plain_name("NumRet(rel=1)"), plain_name("dcg(base=e)")
        ('num_rel_ret', 'dcg(base=e)')
    """
    if text == "NumRet(rel=1)":
        return "num_rel_ret"
    if cut := _UNDERSCORE.fullmatch(text):
        return f"{_WITH_CUTOFF[cut[1]]}@{cut[2]}"
    name = _NAME.match(text)
    if name is None or name[0] not in _NAMES:
        return text
    rest = text[name.end() :]
    if name[0] == "nDCG" and not rest.startswith("("):
        rest = "(gain=linear)" + rest
    for theirs, ours in _GAINS.items():
        rest = rest.replace(theirs, ours)
    return _NAMES[name[0]] + rest
