"""Losses for rankers of texts: adapters for the trainers of sentence-transformers, and negatives of a batch.

A cross-encoder reads a query and a text together and returns their score; a bi-encoder embeds each alone, and the score
is a similarity of the two embeddings. Trainers of both call a loss with a batch of queries, each with its candidates;
`CrossEncoderLoss` and `BiEncoderLoss` compute the scores and hand them to any loss of `ltr.losses`, given as an object
or by name. sentence-transformers is not imported.

*Labels* have one entry per candidate: relevance, clicks, or the scores of a teacher, from which ``margin_mse``, ``kl``
and every other loss learns that compares labels (`ltr.losses.RankingLoss.signed`). With one label fewer than
candidates, labels are margins: the teacher's score of the first candidate minus that of each other candidate. Without
labels the first candidate is relevant and the others are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ltr.checks import check_number, one_of
from ltr.losses import RankingLoss, parse_loss

__all__ = ["BiEncoderLoss", "CrossEncoderLoss", "Similarity", "in_batch"]

Features = dict[str, Any]
"""Tokens of some texts, as an encoder takes them: mostly tensors with one row per text."""
Similarity = Literal["cosine", "dot"]
"""How the embeddings of a query and a document become a score."""


def in_batch(
    queries: Tensor,
    documents: Tensor,
    *,
    labels: Tensor | None = None,
    log_q: Tensor | None = None,
    ids: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, labels and mask of lists in which every query has all documents of a batch.

    All three are (queries, queries * documents), the documents of the first query first. Those of other queries have
    label 0. With `ltr.losses.SoftmaxLoss` this is the softmax with in-batch negatives, also known as multiple negatives
    ranking or InfoNCE. Subtracting the logarithm of a document's sampling probability from its score (the logQ
    correction) corrects for popular documents, which are in more batches.

    Source: Yi et al., *Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations* (2019).

    Args:
        queries: embeddings, (queries, d); scores are inner products.
        documents: embeddings of the documents of each query, (queries, documents, d).
        labels: relevance of a query's own documents, (queries, documents); by default 1 for the first, 0 for others.
        log_q: logarithm of each document's sampling probability, up to a constant, (queries, documents).
        ids: id of each document, integers, (queries, documents), by which the documents of other queries that a query
            has itself are masked.

    Examples:
        >>> queries, documents = torch.eye(2), torch.tensor([[[3.0, 1.0]], [[0.0, 2.0]]])
        >>> scores, labels, mask = in_batch(queries, documents)
        >>> scores.tolist(), labels.tolist()
        ([[3.0, 0.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    if queries.ndim != 2 or documents.ndim != 3 or documents.shape[::2] != queries.shape:
        got = f"{tuple(queries.shape)} and {tuple(documents.shape)}"
        raise ValueError(f"queries must be (queries, d) and documents (queries, documents, d), got {got}")
    shape = documents.shape[:2]
    for name, given in (("labels", labels), ("log_q", log_q), ("ids", ids)):
        if given is not None and given.shape != shape:
            raise ValueError(f"{name} must be (queries, documents), {tuple(shape)}, got {tuple(given.shape)}")
    scores = queries @ documents.flatten(0, 1).T
    if log_q is not None:
        scores = scores - log_q.reshape(-1)
    own = torch.eye(len(queries), dtype=torch.bool, device=scores.device).repeat_interleave(shape[1], dim=1)
    if labels is None:
        labels = torch.zeros(shape, device=scores.device)
        labels[:, :1] = 1.0
    relevance = torch.zeros_like(scores, dtype=labels.dtype).masked_scatter(own, labels)
    mask = torch.ones_like(own)
    if ids is not None:
        mask = own | (ids.reshape(-1, 1) != ids.unsqueeze(1)).all(-1)
    return scores, relevance, mask


class CrossEncoderLoss(nn.Module):
    """A loss for ``CrossEncoderTrainer`` of sentence-transformers 6, of a ``CrossEncoder`` with one output.

    The columns of the data set are the query and its candidates: either one column with a list of texts, of any length,
    or one column per candidate. Labels are a list per query, as above; `loss` may be a name.

    Examples:
        >>> loss = CrossEncoderLoss(model, "lambda(statistic=dcg@10)")  # doctest: +SKIP
        >>> CrossEncoderTrainer(model=model, train_dataset=data, loss=loss).train()  # doctest: +SKIP
    """

    def __init__(self, model: Any, loss: RankingLoss | str) -> None:  # noqa: ANN401
        super().__init__()
        if getattr(model, "num_labels", 1) != 1:
            raise ValueError(f"model must have one output, num_labels=1, got {model.num_labels}")
        self.model, self.loss = model, parse_loss(loss)

    def forward(
        self,
        inputs: Sequence[Sequence[Any]],
        labels: Tensor | Sequence[Tensor] | None,
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """Return the loss of a batch: its columns, and the labels of each query."""
        queries, *columns = inputs
        of_lists = len(columns) == 1 and not isinstance(columns[0][0], str)
        lists = columns[0] if of_lists else list(zip(*columns, strict=True))
        pairs = [(query, text) for query, texts in zip(queries, lists, strict=True) for text in texts]
        sizes = [len(texts) for texts in lists]
        _check_several(max(sizes))
        tokens = self.model.preprocess(pairs, prompt=prompt, task=task)
        tokens = {name: x.to(self.model.device) if isinstance(x, Tensor) else x for name, x in tokens.items()}
        scores = self.model(tokens)["scores"].view(-1)
        rows = [None] * len(sizes) if labels is None else [row.reshape(-1) for row in labels]
        if len(rows) != len(sizes):
            raise ValueError(f"labels must have one entry per query, {len(sizes)}, got {len(rows)}")
        relevance = torch.cat([_labels(row, size) for row, size in zip(rows, sizes, strict=True)]).to(scores.device)
        qid = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)).to(scores.device)
        value: Tensor = self.loss(scores, relevance, qid=qid)
        return value

    def get_config_dict(self) -> dict[str, Any]:
        """Return the options, for the model card."""
        return {"loss": self.loss.name}


class BiEncoderLoss(nn.Module):
    """A loss for ``SentenceTransformerTrainer`` of sentence-transformers 6, of a ``SentenceTransformer``.

    The columns of the data set are the query and its candidates, one column per candidate, such as the positive and one
    or more negatives, with labels as above. `loss` may be a name.

    Args:
        similarity: ``"cosine"``, or ``"dot"`` for the inner product.
        scale: factor of the similarity, > 0, which gives losses a larger range than -1 to 1; None for 20 with cosines
            and 1 with inner products.
        in_batch: whether the candidates of other queries of the batch are candidates with label 0, see `in_batch`.
        log_q: whether the label column has the logarithms of the candidates' sampling probabilities in place of labels;
            goes with `in_batch`.

    Examples:
        >>> loss = BiEncoderLoss(model, "softmax", in_batch=True)  # doctest: +SKIP
        >>> SentenceTransformerTrainer(model=model, train_dataset=data, loss=loss).train()  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401
        loss: RankingLoss | str,
        *,
        similarity: Similarity = "cosine",
        scale: float | None = None,
        in_batch: bool = False,
        log_q: bool = False,
    ) -> None:
        super().__init__()
        if scale is None:
            scale = 20.0 if similarity == "cosine" else 1.0
        check_number("scale", scale, above=0)
        if log_q and not in_batch:
            raise ValueError("log_q must be False without in_batch: it corrects the sampling of in-batch negatives")
        self.model, self.loss = model, parse_loss(loss)
        self.similarity = one_of("similarity", similarity, get_args(Similarity))
        self.scale, self.in_batch, self.log_q = float(scale), in_batch, log_q

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch: the tokens of each column, and the labels of each query."""
        queries, *candidates = (self.model(dict(features))["sentence_embedding"] for features in sentence_features)
        documents = torch.stack(candidates, 1)
        if self.similarity == "cosine":
            queries, documents = F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)
        queries, shape = self.scale * queries, documents.shape[:2]
        if self.log_q and labels is None:
            raise ValueError("log_q must be False without a label column, which would hold the logarithms")
        given = None if labels is None else labels.reshape(len(queries), -1)
        taught = given is not None and (given.shape[-1] != shape[1] or bool((given < 0).any()))
        if taught and self.in_batch and not self.log_q:
            rule = "in_batch must be False with a teacher's scores or margins"
            raise ValueError(f"{rule}: it has none for the candidates of other queries, which get label 0")
        relevance = _labels(None if self.log_q else given, shape[1]).to(queries.device).expand(shape)
        if self.in_batch:
            log_q = given if self.log_q else None
            scores, relevance, mask = in_batch(queries, documents, labels=relevance, log_q=log_q)
        else:
            _check_several(shape[1], ", or set in_batch=True")
            scores, mask = (queries.unsqueeze(1) * documents).sum(-1), None
        value: Tensor = self.loss(scores, relevance, mask=mask)
        return value

    def get_config_dict(self) -> dict[str, Any]:
        """Return the options, for the model card."""
        names = ("similarity", "scale", "in_batch", "log_q")
        return {"loss": self.loss.name, **{name: getattr(self, name) for name in names}}


def _check_several(most: int, remedy: str = "") -> None:
    if most < 2:
        advice = f"put all that it is to rank into one row of the data set{remedy}"
        raise ValueError(f"a query must have several candidates, got {most} each: {advice}")


def _labels(given: Tensor | None, size: int) -> Tensor:
    """Return the labels of candidates, the last axis: those given, or the scores of a teacher whose margins are."""
    if given is None:
        return torch.eye(1, size)[0]
    if given.shape[-1] == size - 1 and given.is_floating_point():
        return F.pad(-given, (1, 0))
    if given.shape[-1] != size:
        margins = f"{size - 1} margins of the first candidate over the others, of a floating point type"
        raise ValueError(f"labels must be {size} per query, one per candidate, or {margins}, got {given.shape[-1]}")
    return given
