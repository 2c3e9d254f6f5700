"""What notebooks show of problems, solutions, rankers and data sets, and the pictures and bars that go with them."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import ltr
from ltr.exact import Limits, RerankProblem, solve
from ltr.rankers import ExactRanker, LogisticRegressionRanker, TwoStageRanker

DATA = ltr.data.gaussians(n=120, seed=0)
NAMES = ["age", "a <b> & c"]
FRAME = pd.DataFrame(DATA.X, columns=NAMES)


@pytest.fixture(scope="module")
def reranked():
    ranker = TwoStageRanker("logistic", ExactRanker("dcg", limits=Limits(node_limit=50)), top_k=20, choose=False)
    return ranker.fit(FRAME, DATA.y)


def test_a_solution_says_what_is_proven_and_draws_its_search():
    problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], "wrs")
    solution = solve(problem)
    assert repr(solution).startswith(
        "Solution(optimal, value 5, bound 5, gap 0.00%; 1 of 1 weights not 0; weight_space"
    )
    html = ElementTree.fromstring(f"<div>{solution._repr_html_()}</div>")  # every tag is closed
    assert "bound5: no weights are better" in "".join(html.itertext())
    bound, incumbent = solution.plot().axes[0].get_lines()
    assert bound.get_ydata()[-1] == incumbent.get_ydata()[-1] == 5
    assert list(incumbent.get_ydata())[:-1] == [point.incumbent for point in solution.trace]


def test_the_list_is_drawn_before_and_after_reranking(reranked):
    figure = reranked.plot_list(FRAME, DATA.y, k=10)
    strips, curve = figure.axes
    picture = strips.images[0].get_array()
    order = np.argsort(-reranked.base_.decision_function(FRAME), kind="stable")
    assert picture.shape == (2, 40)
    assert picture[0].tolist() == DATA.y[order][:40].tolist()
    assert picture[1].tolist() == DATA.y[reranked.order(FRAME)][:40].tolist()
    base, after = (LogisticRegressionRanker().fit(FRAME, DATA.y).score(FRAME, DATA.y), reranked.score(FRAME, DATA.y))
    assert figure.get_suptitle() == f"120 rows\ndcg {base:.4f} → {after:.4f}"
    labels = [line.get_label() for line in curve.get_lines()]
    assert labels[0] == f"logistic: {DATA.y[order][:10].sum()} in the first 10"
    assert labels[2:] == ["by chance", "end of the reranked top 20"]
