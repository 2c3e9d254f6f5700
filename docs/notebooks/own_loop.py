# %% [markdown]
# # Losses in your own loop
#
# The losses of this package are plain torch modules: scores and labels go in, a number with a gradient comes out.
# Here a small network learns to retrieve handwritten digits in an ordinary loop, and only the loss changes.
#
# Each list is a query digit and 40 candidates, of which those with the same number are relevant. The network embeds
# images, and a candidate's score is the product of its embedding with the query's. The data come with scikit-learn.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits

import ltr

images, numbers = load_digits(return_X_y=True)
images = torch.tensor(images / 16, dtype=torch.float32)
numbers = torch.tensor(numbers)
known, new = torch.arange(1000), torch.arange(1000, len(numbers))  # the new images are of other writers


def lists(pool, count, generator):
    """Return query and candidates of each list, as numbers of images, and which candidates are relevant."""
    draw = lambda size: pool[torch.randint(len(pool), (count, size), generator=generator)]
    query, candidates = draw(1), draw(40)
    return query, candidates, (numbers[candidates] == numbers[query]).long()


query, candidates, relevant = lists(known, 3, torch.Generator().manual_seed(1))
figure, axes = plt.subplots(3, 12, figsize=(7, 2.1))
for row in range(3):
    for column, axis in enumerate(axes[row]):
        at = query[row, 0] if column == 0 else candidates[row, column - 1]
        axis.imshow(images[at].reshape(8, 8), cmap="gray_r")
        axis.set_axis_off()
        if column == 0:
            axis.set_title("query" if row == 0 else "", fontsize=8)

# %% [markdown]
# ## The loop
#
# Nothing in it belongs to this package but the loss and the metric. Both take `(lists, items)` tensors.


# %%
def train(loss, seed=0, steps=150):
    """Return NDCG@5 on lists of new images after every tenth step."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    embed = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    score = lambda query, candidates: (embed(images[query]) * embed(images[candidates])).sum(-1)
    optimizer = torch.optim.Adam(embed.parameters(), lr=0.01)
    held = lists(new, 300, torch.Generator().manual_seed(99))
    curve = []
    for step in range(steps):
        query, candidates, relevant = lists(known, 32, generator)
        optimizer.zero_grad()
        loss(score(query, candidates), relevant).backward()
        optimizer.step()
        if step % 10 == 9:
            with torch.no_grad():
                curve.append(ltr.metrics.ndcg(score(*held[:2]), held[2], k=5).nanmean().item())
    return curve


losses = {
    "RankNet": ltr.losses.RankNetLoss(),
    "hinge": ltr.losses.PairwiseHingeLoss(),
    "ListNet": ltr.losses.ListNetLoss(),
    "LambdaLoss": ltr.losses.LambdaLoss(statistic="dcg@5"),
    "smooth DCG": ltr.losses.SmoothStatisticLoss(statistic="dcg"),
}
curves = {name: np.array([train(loss, seed) for seed in range(3)]) for name, loss in losses.items()}

# %%
figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, runs in curves.items():
    axis.plot(np.arange(10, 151, 10), runs.mean(axis=0), label=name)
axis.set(xlabel="step", ylabel="NDCG@5 on new images, mean of 3 seeds")
axis.grid(alpha=0.25)
_ = axis.legend(frameon=False)

# %%
last = pd.DataFrame({name: runs[:, -1] for name, runs in curves.items()})
last.agg(["mean", "std"]).T.round(3).sort_values("mean", ascending=False)

# %% [markdown]
# ## What to take from it
#
# All five learn. After 150 steps ListNet is ahead and the smooth DCG behind, by more than the seeds differ. That is how
# fast they learn on these lists with one learning rate, and not where each of them ends: on your data try several, with
# several seeds, and compare them by a test (`ltr.metrics` has paired ones).
#
# A smooth DCG@5 would not even start: while all scores are close, every soft rank is near the middle of the list, where
# DCG@5 is flat. The smooth loss of the whole list has a slope everywhere.
#
# The same lines work in Lightning and in sentence-transformers; the page on other libraries has examples.
