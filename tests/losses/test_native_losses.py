"""The compiled core: where it is missing, and its losses: the last digits of torch, threads, and wrong tensors."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import ltr.native
from ltr.losses import operators, parse_loss, transforms
from ltr.native import Groups, ListLoss
from tests.losses.loss_reference import CASES, value_and_grad
from tests.losses.test_listwise import NAMES

FOLDER = Path(ltr.native.__file__).parent


@pytest.mark.parametrize(
    ("module", "state"),
    [
        (None, "is not built:"),
        ("_core.cpython-399-other.so", "is built for another Python (_core.cpython-399-other.so):"),
    ],
)
def test_a_missing_core_says_what_to_run(tmp_path, module, state):
    package = tmp_path / "ltr" / "native"
    package.mkdir(parents=True)
    (tmp_path / "ltr" / "__init__.py").touch()
    shutil.copy(FOLDER / "__init__.py", package)
    if module:
        (package / module).touch()
    done = subprocess.run([sys.executable, "-c", "import ltr.native"], cwd=tmp_path, capture_output=True, text=True)
    *_, message = done.stderr.splitlines()
    assert message.startswith(f"ImportError: the compiled core of ltr {state} run scripts/setup.sh")
    assert "ModuleNotFoundError" not in done.stderr


def test_the_stub_lists_what_the_core_has():
    stub = (FOLDER / "_core.pyi").read_text(encoding="utf-8")
    for name in ltr.native.__all__:
        assert f"def {name}(" in stub or f"class {name}" in stub


LOSSES = [*(case.name for case in CASES), *NAMES]
NO_KERNEL = ("kl", "margin_mse", "smooth(statistic=precision@3,pairs=sum)", "smooth(statistic=recall@3,pairs=sum)")
all_losses = pytest.mark.parametrize("name", LOSSES)


@all_losses
@pytest.mark.parametrize("spread", [1e-3, 1.0, 20.0, 500.0])
def test_values_and_gradients_are_those_of_torch(name, spread, monkeypatch):
    """Spreads on either side of the one up to which exponentials of pairs are products."""
    random = torch.Generator().manual_seed(0)
    loss = parse_loss(name)
    loss.reduction = "none"
    for n in (1, 2, 7, 8, 9, 31, 65):
        scores = spread * torch.randn(5, n, dtype=torch.float64, generator=random)
        labels = torch.randint(0, 2 if name == "logistic" else 4, (5, n), generator=random)
        mask = torch.rand(5, n, generator=random) < 0.8
        found = value_and_grad(loss, scores, labels, mask=mask)
        with monkeypatch.context() as patch:
            patch.setattr(transforms, "COMPILED_FOR", ())
            expected = value_and_grad(loss, scores, labels, mask=mask)
        for got, wanted in zip(found, expected, strict=True):
            size = wanted.abs().amax(-1, keepdim=True) if wanted.ndim == 2 else wanted.abs()
            near = (got - wanted).abs() <= 2e-14 * (size + 1.0) * (1.0 + spread)
            assert (near | (got == wanted)).all()


@all_losses
def test_threads_change_nothing(name):
    loss, random = parse_loss(name), torch.Generator().manual_seed(1)
    scores, labels = torch.randn(600, 80, generator=random), torch.randint(0, 2, (600, 80), generator=random)
    one = value_and_grad(loss, scores, labels)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        for got, wanted in zip(value_and_grad(loss, scores, labels), one, strict=True):
            assert torch.equal(got, wanted)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_does_not_wait_for_threads_that_it_does_not_have():
    program = (
        "import os, signal, torch; from ltr.losses import parse_loss\n"
        "torch.set_num_threads(2)\n"
        "scores, labels = torch.randn(512, 100), torch.arange(51200).reshape(512, 100) % 2\n"
        "scores.exp(); loss = parse_loss('list_net'); value = loss(scores, labels)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60); os._exit(0 if loss(scores, labels) == value else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "0"


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_gradient_is_the_same_however_often_it_is_asked_for(reduction):
    random = torch.Generator().manual_seed(2)
    scores = torch.randn(3, 7, dtype=torch.float64, generator=random, requires_grad=True)
    loss = parse_loss("ranknet")
    loss.reduction = reduction
    value = loss(scores, torch.arange(21).reshape(3, 7) % 2)
    ones = torch.ones_like(value)
    (first,) = torch.autograd.grad(value, scores, ones, retain_graph=True)
    expected = first.clone()
    first.zero_()  # a gradient belongs to the caller
    (second,) = torch.autograd.grad(value, scores, -2.0 * ones, retain_graph=True)
    assert torch.equal(second, -2.0 * expected)
    (batched,) = torch.autograd.grad(value, scores, torch.stack([ones, 3.0 * ones]), is_grads_batched=True)
    assert torch.equal(batched, torch.stack([expected, 3.0 * expected]))


@pytest.mark.parametrize("name", [name for name in LOSSES if not name.startswith(NO_KERNEL)])
def test_short_lists_are_one_pass_of_the_core(name, monkeypatch):
    calls, by_core = [], operators.by_core
    monkeypatch.setattr(operators, "by_core", lambda *given: calls.append(given) or by_core(*given))
    scores, labels = torch.randn(4, 9), torch.arange(36).reshape(4, 9) % 2
    loss = parse_loss(name)
    loss(scores, labels)
    loss(scores[:, :5].T, labels[:, :5].T)
    loss(scores.flatten(), labels.flatten().bool(), qid=torch.arange(36, dtype=torch.int32) % 5)
    assert len(calls) == 3


# --- arrays that do not fit --------------------------------------------------------------------------------------


def arrays(dtype=torch.float64):
    scores = torch.arange(6, dtype=dtype).reshape(2, 3)
    return {
        "scores": scores,
        "labels": torch.tensor([[1, 0, 0], [0, 1, 1]], dtype=dtype),
        "mask": None,
        "weights": None,
        "groups": None,
        "reduction": "mean",
        "threads": 1,
        "values": torch.zeros((), dtype=dtype),
        "slopes": torch.zeros_like(scores),
    }


def doubles(*shape):
    return torch.zeros(shape, dtype=torch.float64)


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": doubles(5)},
        {"labels": torch.zeros(2, 3, dtype=torch.int32)},
        {"mask": torch.ones(2, 2, dtype=torch.bool)},
        {"weights": doubles(1, 3)},
        {"scores": torch.zeros(2, 3, dtype=torch.float16)},
        {"scores": doubles(2, 6)[:, ::2]},
        {"scores": torch.zeros(2, 3, dtype=torch.float64, device="meta")},
        {"values": doubles(2)},
        {"slopes": doubles(2, 2)},
        {"slopes": doubles(2, 6)[:, ::2]},
        {"reduction": "median"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_tensors_that_do_not_fit_are_refused(wrong):
    assert ListLoss("ranknet")(**arrays())
    with pytest.raises((TypeError, ValueError)):
        ListLoss("ranknet")(**(arrays() | wrong))


def test_groups_are_numbered_as_they_first_appear():
    ids = np.array([2**62, -5, 2**62, 7, 7, -5])
    groups, number = Groups(ids), np.zeros(6, np.int64)
    groups.write_number(number)
    assert number.tolist() == [0, 1, 0, 2, 2, 1]
    assert (groups.lists, groups.items, groups.longest, groups.pairs) == (3, 6, 2, 12.0)
    with pytest.raises(ValueError, match="internal error"):
        groups.write_number(np.zeros(5, np.int64))
