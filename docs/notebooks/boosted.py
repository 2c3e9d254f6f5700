# %% [markdown]
# # Reranking a gradient boosting model
#
# You have a strong model, and only its first 50 rows matter. Should a second stage reorder them? We let the exact
# stage do its best, look at the promise and at what comes of it, and let the training data decide.
#
# The data come with statsmodels: 303 Californian school districts, with 12 numbers on each. Positive is the quarter
# with the largest share of pupils above the national median.

# %%
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split

import ltr
from ltr.exact import Limits

data = ltr.data.load("star98")
districts = pd.DataFrame(data.X, columns=data.feature_names)
X, X_new, y, y_new = train_test_split(districts, data.y, test_size=0.5, stratify=data.y, random_state=0)
boosted = GradientBoostingClassifier(n_estimators=40, subsample=0.5, random_state=0)
data

# %% [markdown]
# ## Rerank in any case
#
# With `choose=False` the top 50 of the boosted model get the order with the largest DCG that a linear score of the
# twelve columns can give.

# %%
exact = ltr.ExactRanker("dcg", limits=Limits(time_limit=2))
with ltr.ProgressBar() as bar:
    forced = ltr.TwoStageRanker(boosted, exact, top_k=50, choose=False).fit(X, y, on_progress=bar)
forced.solution_.plot()

# %%
forced.plot_list(X_new, y_new, k=30, title="new districts")

# %% [markdown]
# On new districts the reranked list is worse, and it could hardly be otherwise: the second stage replaced a model of
# 40 trees by a linear one, and it learned from 50 rows what twelve columns mean.
#
# ## Let the training data decide
#
# By default the exact stage *corrects* the base score instead of replacing it, as far as inner splits say, and it
# keeps the base where no correction is expected to help.

# %%
with ltr.ProgressBar() as bar:
    chosen = ltr.TwoStageRanker(boosted, exact, top_k=50).fit(X, y, on_choice=bar)
print(chosen.choice_)


# %%
def dcg(ranker):
    """Return DCG on the districts learned from and on new ones."""
    return [ranker.score(X, y), ranker.score(X_new, y_new)]


scores, scores_new = (forced.base_.decision_function(rows) for rows in (X, X_new))
column = ltr.rankers.ScoreColumn(0).fit(scores[:, None], y)
pd.DataFrame(
    {
        "boosted model": [column.score(scores[:, None], y), column.score(scores_new[:, None], y_new)],
        "reranked in any case": dcg(forced),
        "chosen": dcg(chosen),
    },
    index=["districts learned from", "new districts"],
).T.round(3)

# %% [markdown]
# ## A model from elsewhere
#
# The base need not be fitted here. Scores of any model can be a column of the table: a `ScoreColumn` is then the
# base. Scores of the training rows must come from models that have not seen these rows.

# %%
from sklearn.model_selection import cross_val_predict

unseen = cross_val_predict(boosted, X, y, cv=5, method="decision_function")
table, table_new = X.assign(model=unseen), X_new.assign(model=scores_new)
elsewhere = ltr.TwoStageRanker(ltr.rankers.ScoreColumn("model"), exact, top_k=50).fit(table, y)
print(elsewhere.choice_)
print(f"DCG on new districts: {elsewhere.score(table_new, y_new):.3f}")

# %% [markdown]
# ## What to take from it
#
# A boosted model that has learned from all rows is hard to correct with 50 of them. The largest DCG on the training
# list is no promise; the choice on inner splits is, and here it says so before any new district was seen. Correcting
# pays where the base is weak at the top, the list is long, or the second stage knows columns that the model did not.
