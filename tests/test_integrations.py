"""The Lightning example of docs/integrations.md; test_readme runs the others."""

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parents[1] / "docs" / "integrations.md"


def batches():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 12, 4, generator=generator)
    y = (x[..., 0] - x[..., 1] + 0.3 * torch.randn(64, 12, generator=generator) > 1).long()
    mask = torch.arange(12) < torch.randint(6, 13, (64, 1), generator=generator)
    return [{"x": x[at : at + 16], "y": y[at : at + 16], "mask": mask[at : at + 16]} for at in range(0, 64, 16)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the trainer: number of workers, checkpoints
def test_a_lightning_module_learns_and_logs_the_metrics(tmp_path):
    lightning = pytest.importorskip("lightning")
    (code,) = re.findall(r"```python\n(import lightning\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "example"}
    exec(compile(code, str(PAGE), "exec"), names)
    module = names["Ranker"](4)
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=15, default_root_dir=tmp_path, enable_model_summary=False, **options)
    data = torch.utils.data.DataLoader(batches(), batch_size=None)
    (before,) = trainer.validate(module, data, verbose=False)
    trainer.fit(module, data, data)
    (after,) = trainer.validate(module, data, verbose=False)
    assert set(after) == {"ndcg@10", "mrr"}
    assert after["ndcg@10"] > max(0.9, before["ndcg@10"])
