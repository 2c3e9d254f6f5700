"""Scores of rows by two-stage rankers that have not learned from them: fitted to the other parts of the same rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import _safe_indexing

from ltr.rankers.base import fit_to
from ltr.rankers.choice import SPREADS, Fold, PartScores, folds_of, places
from ltr.rankers.constraint_checks import used_columns
from ltr.rankers.demanded import GivenDemands
from ltr.rankers.inputs import FloatArray, LabelledRows, Table

if TYPE_CHECKING:
    from ltr.rankers.two_stage import TwoStageRanker


def rank_held_out(
    ranker: TwoStageRanker,
    training: LabelledRows,
    split: Fold,
    others: Sequence[Fold],
    without: Callable[[tuple[Fold, ...]], PartScores],
    seed: int,
) -> list[list[float]]:
    """Return the places of the held-out rows by base and corrections that learn from the other rows.

    `without` returns the scores by a base fitted to the rows that several of the `others` of the repeat have to learn.
    """
    held, part = split.held, copy.copy(ranker)
    found_by = ranker._fit_part(training, split.train, seed)
    own, scores = found_by.scores, found_by.scores.copy()
    train, whole = split.train, len(training.labels)
    if training.known is not None:  # the scores of the other rows are out of fold already, if there are any
        train = train[~np.isnan(scores[train])]
    elif ranker._learns_base and (before := list(_seen_before(split, others))):
        for other, folds in before:
            scores[other.held] = without(folds).on_the_scale_of(own[split.train])[other.held]
        train = np.sort(np.concatenate([other.held for other, _ in before]))
        whole = sum(len(fold.held) for fold in (split, *others))
    learnt, ranked = training.take(train), training.take(held)
    share = len(train) / whole if training.lists is None else 1.0
    found = [places(own[held], ranked.lists).tolist()]
    part.top_k = _part_of_top(ranker.top_k, share)
    for spread in SPREADS:
        stage = ranker._exact_stage()
        part._fit_stage(stage, scores[train], learnt, found_by.used, spread=spread, search="none")
        merged, _ = part._merged(own[held], ranked.features, ranked.lists)
        found.append(places(merged, ranked.lists).tolist())
    return found


def held_out_scores(ranker: TwoStageRanker, table: Table, rows: LabelledRows, folds: Sequence[Fold]) -> FloatArray:
    """Return merged scores of rows by clones that have not seen them, on the scales of this ranker."""
    features, lists = rows.features, rows.lists
    if (known := ranker._known_out_of_fold) is not None and len(known) == len(rows.labels):
        return ranker._merged(known, features, lists)[0]
    own = ranker.base_._scores_among(features, ranker._names, lists)
    if ranker.coef_ is None:
        return ranker._out_of_fold(own, rows, 0, folds)
    base, exact = np.empty(len(own)), np.empty(len(own))
    every = np.ones(len(own), dtype=np.bool_)
    top = own >= ranker._cuts(own, lists)
    top = top if top.any() else every
    exact_own = ranker.exact_._scores_at(features, own, top)[top]
    for fold in folds:
        seen, held = np.isin(np.arange(len(own)), fold.train), fold.held
        other = _like_this(ranker, float(seen.mean()) if lists is None else 1.0)
        part = _safe_indexing(table, fold.train), rows.take(fold.train)
        fit_to(other, *part, base_is_fitted=not ranker._learns_base)
        found = other.base_._scores_among(features, ranker._names, lists)
        base[held] = (PartScores.of(found, seen).on_the_scale_of(own) if ranker._learns_base else found)[held]
        placed = np.zeros(len(own)) if other.coef_ is None else other.exact_._scores_at(features, found, every)
        top = seen & (found >= other._cuts(found, lists))
        exact[held] = PartScores.of(placed, top if top.any() else seen).on_the_scale_of(exact_own)[held]
    return ranker._lifted(base, ranker._cuts(base, lists), exact, lists)


def cross_fitted(ranker: TwoStageRanker, training: LabelledRows, given: GivenDemands, seed: int) -> FloatArray:
    """Return merged scores of the rows of the fit by exact stages that have not learned from them, (n,).

    Each part of the rows gets the weights that the other parts lead to under the same demands, on the scale of this
    ranker's; the base's order, where no weights are known to meet them there.
    """
    scores = np.asarray(training.known)
    known, lists, every = ~np.isnan(scores), training.lists, np.ones(len(scores), dtype=np.bool_)
    cuts = ranker._cuts(scores, lists)
    own = ranker.exact_._scores_at(training.features, scores, known & (scores >= cuts))[known & (scores >= cuts)]
    exact = PartScores.of(scores, known).on_the_scale_of(own)
    used = used_columns(ranker.base_, ranker._names)
    for fold in folds_of(training, seed * 1_000, 1):
        seen = fold.train[known[fold.train]]
        share, learnt = len(seen) / int(known.sum()) if lists is None else 1.0, training.take(seen)
        part = copy.copy(ranker)
        part.top_k = _part_of_top(ranker.top_k, share)
        stage = ranker._exact_stage()
        try:
            asked = given.take(seen).for_share(share).of(learnt.labels, learnt.lists)
            part._fit_stage(stage, scores[seen], learnt, used, search="quick", asked=asked)
        except ValueError:
            continue
        if stage.coef_ is not None:
            found = stage._scores_at(training.features, scores, every)
            top = np.zeros(len(scores), dtype=np.bool_)
            top[seen] = scores[seen] >= part._cuts(scores[seen], learnt.lists)
            exact[fold.held] = PartScores.of(found, top).on_the_scale_of(own)[fold.held]
    return ranker._lifted(scores, cuts, exact, lists)


def _like_this(ranker: TwoStageRanker, share: float) -> TwoStageRanker:
    """Return a ranker, not yet fitted, of a share of the rows that corrects the base as this one was chosen to."""
    options = {**ranker.get_params(deep=False), "top_k": _part_of_top(ranker.top_k, share)}
    if not ranker._learns_base:
        options["base"] = ranker.base_
    if ranker.choice_ is not None:
        options |= {"choose": False, "base_score": True, "spread": ranker.choice_.spread}
    if (exact := ranker._exact_stage()).demands:  # which are about the rows of this fit
        options["exact"] = exact.set_params(demands=())
        options |= {"choose": False, "base_score": ranker.base_score or ranker.choose} if ranker.choice_ is None else {}
    return type(ranker)(**options)


def _part_of_top(top_k: int | None, share: float) -> int | None:
    return None if top_k is None else max(2, round(top_k * share))


def _seen_before(split: Fold, others: Sequence[Fold]) -> Iterator[tuple[Fold, tuple[Fold, ...]]]:
    """Yield the folds whose held-out rows a split learns from, and the folds whose common training rows score them."""
    for other in others:
        shared = np.intersect1d(split.train, other.train, assume_unique=True)
        if len(shared) and np.isin(other.held, split.train).all():
            pair = sorted((split, other), key=lambda fold: fold.name)
            yield other, (other,) if len(shared) == len(other.train) else tuple(pair)
