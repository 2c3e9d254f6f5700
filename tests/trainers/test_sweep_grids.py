"""Configs of sweeps: what they say, and what is wrong with them in the user's words."""

import pytest

from tests.trainers.sweeping import EXPERIMENT, write
from trainers.cli import main
from trainers.config import load_config
from trainers.config.errors import ConfigError
from trainers.config.grids import load_sweep


def test_every_combination_is_a_variant(tmp_path):
    path = write(
        tmp_path,
        other=EXPERIMENT.replace("[data]", 'name = "own"\n[data]'),
        sweep="""
        [[grid]]
        experiments = ["small.toml", "other.toml"]
        splits = [3, 5]
        [grid.set]
        exact.margin = 1e-3
        [grid.vary]
        exact.top_k = [10, "full"]
        "exact.C" = [0.0, 0.1]
        """,
    )
    sweep = load_sweep(path, ["exact.time_limit=7", "runs_dir=elsewhere"])
    (grid,) = sweep.grids
    assert sweep.config.folder.parts == ("elsewhere", "sweep")
    assert grid.config.seeds == (3, 5)
    assert [(v.config.name, *v.varied.values()) for v in grid.variants] == [
        (name, top_k, price) for name in ("small", "own") for top_k in (10, "full") for price in (0.0, 0.1)
    ]
    for variant in grid.variants:
        exact = variant.config.exact
        assert (exact.top_k, exact.C) == (variant.varied["exact.top_k"], variant.varied["exact.C"])
        assert (exact.margin, exact.time_limit) == (1e-3, 7)
        assert variant.config.data.path == str(tmp_path / "table.csv")


def grid(text="", **tables):
    """A sweep of one grid with these lines, and these lines in its tables."""
    more = "".join(f"[grid.{name}]\n{lines}\n" for name, lines in tables.items())
    return f'[[grid]]\nexperiments = ["small.toml"]\n{text}\n{more}'


WRONG = {
    "an experiment": (EXPERIMENT, "grid: is required: [[grid]] tables; `ltr run` takes the config of one experiment"),
    "unknown key": (grid("splitz = 3"), "grid[0].splitz: unknown key (did you mean 'splits'?), got 3"),
    "no split": (grid("splits = 0"), "grid[0].splits: must be an integer from 1 to 100000, or a list of different"),
    "a sweep": (
        '[[grid]]\nexperiments = ["sweep.toml"]',
        "grid[0].experiments: must be configs of experiments, and this is one of a sweep, got",
    ),
    "not a method": (
        grid('methods = ["rankboost"]'),
        "methods: must be methods of the experiments (did you mean 'ranknet'?), got",
    ),
    "unknown set": (grid(set="exact.topk = 3"), "grid[0].set.exact.topk: unknown key (did you mean 'exact.top_k'?)"),
    "wrong value": (grid(vary="exact.C = [0.1, -1]"), "grid[0].vary.exact.C: must be >= 0, got -1"),
    "no values": (grid(vary="exact.C = []"), "grid[0].vary.exact.C: must be a list of at least one value, got []"),
    "a table": (grid(vary='exact.signs.age = ["+"]'), "vary.exact.signs: must be a list of at least one value, got"),
    "seed varied": (grid(vary="seed = [1]"), "grid[0].vary.seed: must be left out: splits are the seeds"),
    "no result": (grid(vary="tracking.every = [1, 2]"), "vary.tracking.every: must not be varied: results do not"),
    "clash": (grid(vary='exact.base = ["rankboost"]'), "grid[0].vary.exact.base: must be a method of this run"),
    "bad experiment": ('[[grid]]\nexperiments = ["bad.toml"]', "grid[0].experiments: bad.toml: surrogate.losses[0]: "),
    "same name": (
        grid() + '[[grid]]\nexperiments = ["bad.toml"]\n[grid.set]\nsurrogate.losses = ["ranknet"]\nname = "small"\n'
        "data.train_fraction = 0.7",
        "grid[1].experiments: two experiments called 'small' have different data; give one of them another name",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_line_that_names_its_place(tmp_path, capsys, case):
    text, message = WRONG[case]
    bad = EXPERIMENT.replace('"ranknet", "hinge"', '"ranknot"')
    path = write(tmp_path, sweep=text, bad=bad)
    assert main(["sweep", str(path), f"runs_dir={tmp_path / 'runs'}"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"ltr: error: {path}: ")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_all_mistakes_come_at_once_and_each_once(tmp_path):
    path = write(
        tmp_path,
        other=EXPERIMENT,
        sweep="""
        [[grid]]
        experiments = ["small.toml", "other.toml", "none.toml"]
        [grid.vary]
        exact.C = [0.0, -1, 0.1]
        exact.top_k = [10, 1]
        [[grid]]
        experiments = ["small.toml"]
        methods = ["xact"]
        """,
    )
    with pytest.raises(ConfigError) as error:
        load_sweep(path, ["nothing"])
    assert [finding.path for finding in error.value.findings] == [
        "", "grid[0].vary.exact.top_k", "grid[0].vary.exact.C", "grid[0].experiments", "grid[1].methods",
    ]  # fmt: skip
    assert "'exact'" in str(error.value)


def test_an_experiment_extends_another(tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    write(below)
    (below / "middle.toml").write_text('extends = "small.toml"\n[exact]\n# margin = 1e-3\n[statistics]\nreport = []')
    (tmp_path / "top.toml").write_text('extends = "below/middle.toml"\nseed = 4\nexact.C = 0.5')
    config = load_config(tmp_path / "top.toml", ["exact.gap=0.1"])
    assert (config.name, config.seed) == ("top", 4)
    # an empty table takes nothing away
    assert (config.exact.top_k, config.exact.C, config.exact.gap) == (12, 0.5, 0.1)
    assert config.statistics.report == ()
    assert config.surrogate.losses == ("ranknet", "hinge")
    assert config.data.path == str(below / "table.csv")
