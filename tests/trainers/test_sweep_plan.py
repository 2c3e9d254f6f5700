"""What a sweep consists of: cells and their ids, tables, shards."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainers.sweeping import ONE_SPLIT, write
from trainers.config import EXACT, parse_config
from trainers.config.grids import Grid, GridConfig, Variant, load_sweep
from trainers.config.toml_text import unflat
from trainers.plan import plan
from trainers.sweep.runner import part

SHA = "0" * 64


def planned(path, *overrides):
    sweep = load_sweep(path, overrides)
    return plan(sweep.grids, dict.fromkeys(sweep.experiments, SHA))


def ids(found, method=None):
    return {cell.id for cell in found.cells.values() if method in (None, cell.method)}


def test_ids_stay_what_they_are():
    """Files of finished sweeps are found by them: an id that changes throws their results away."""
    tree = {"name": "g", "data": {"name": "gaussians"}, "surrogate": {"losses": ["hinge"], "l2": 0.1}}
    tree |= {"exact": {"top_k": 20, "time_limit": 5.0, "choose": False, "base": "logistic_regression"}}
    tree["baselines"] = {"methods": ["logistic_regression", "rankboost"]}
    grid = Grid(GridConfig(experiments=("g.toml",), splits=1), (Variant({}, parse_config(tree)),))
    assert list(plan([grid], {"g": SHA}).cells) == [
        "g/0/hinge-9b2e8b09364b",
        "g/0/logistic_regression-c6d27f8a1c53",
        "g/0/rankboost-e8c581b554a1",
        "g/0/exact-194bcb85c80a",
    ]


def test_options_make_cells_of_the_methods_they_concern(tmp_path):
    found = planned(write(tmp_path))
    by_method = {method: len(ids(found, method)) for method in ("ranknet", "hinge", "logistic_regression", EXACT)}
    assert by_method == {"ranknet": 2, "hinge": 2, "logistic_regression": 2, EXACT: 4}
    assert list(found.cells)[-4:] == [cell.id for cell in found.cells.values() if cell.method == EXACT]
    for cell in found.cells.values():
        if cell.method == EXACT:
            starts = [found.cells[name] for name in cell.starts]
            assert {(start.data, start.split) for start in starts} == {(cell.data, cell.split)}
            assert {start.method for start in starts} == {"ranknet", "hinge", "logistic_regression"}
    (table,) = found.index
    assert table["varied"] == ["exact.top_k"]
    assert [(entry["method"], entry["varied"]) for entry in table["cells"] if entry["split"] == 1] == [
        ("ranknet", {}),
        ("hinge", {}),
        ("logistic_regression", {}),
        (EXACT, {"exact.top_k": 10}),
        (EXACT, {"exact.top_k": "full"}),
    ]


def test_grids_share_cells_and_an_exact_cell_brings_its_starts(tmp_path):
    one = f'{ONE_SPLIT}methods = ["exact"]\n'
    found = planned(write(tmp_path, sweep=one + one.replace('"exact"', '"exact", "hinge"')))
    assert len(found.cells) == 4
    first, second = found.index
    assert [entry["method"] for entry in first["cells"]] == [EXACT]
    assert [entry["method"] for entry in second["cells"]] == ["hinge", EXACT]
    assert first["cells"][0] == second["cells"][1]


CHANGES = {
    "nothing": ("name=other", []),
    "where": ("runs_dir=elsewhere", []),
    "what is only written": ("exact.certificate=true", []),
    "tracking": ("tracking.every=7", []),
    "the solver": ("exact.time_limit=5", [EXACT]),
    "the seed of the solver": ("exact.seed=5", [EXACT]),
    # the exact stage starts from all of them
    "trainings": ("surrogate.l2=0.5", ["ranknet", "hinge", EXACT]),
    "a baseline": ("baselines.logistic_regression.C=1", ["logistic_regression", EXACT]),
    "one more": ('surrogate.losses=["ranknet","hinge","exponential"]', [EXACT]),
    "what is reported": ("statistics.report=mrr", ["ranknet", "hinge", "logistic_regression", EXACT]),
    "what is maximised": ("exact.statistic=auc", ["ranknet", "hinge", "logistic_regression", EXACT]),
    "the halves": ("data.train_fraction=0.6", ["ranknet", "hinge", "logistic_regression", EXACT]),
    "a default": ("exact.C=0.0", []),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_makes_new_cells_of_the_methods_concerned_only(tmp_path, case):
    override, concerned = CHANGES[case]
    path = write(tmp_path)
    before, after = planned(path), planned(path, override)
    for method in ("ranknet", "hinge", "logistic_regression", EXACT):
        if method in concerned:
            assert ids(before, method).isdisjoint(ids(after, method))
        else:
            assert ids(before, method) == ids(after, method)


def test_an_exact_cell_is_another_on_a_base_of_other_options(tmp_path):
    path = write(
        tmp_path,
        sweep=f"""{ONE_SPLIT}
        methods = ["exact"]
        [grid.vary]
        exact.base = ["hinge", "logistic_regression"]
        surrogate.l2 = [1e-4, 0.1]
        """,
    )
    found = planned(path)
    assert [entry["varied"] for entry in found.index[0]["cells"]] == [
        {"exact.base": "hinge", "surrogate.l2": 1e-4},
        {"exact.base": "hinge", "surrogate.l2": 0.1},
        {"exact.base": "logistic_regression"},
    ]
    assert len(ids(found, EXACT)) == 3


@pytest.mark.parametrize(
    ("method", "base", "keys"),
    [
        ("hinge", "hinge", ["surrogate.l2"]),
        ("rankboost", "hinge", ["baselines.rankboost.rounds"]),
        (EXACT, "rankboost", ["exact.C", "baselines.rankboost.rounds"]),
        (EXACT, "hinge", ["surrogate.l2", "exact.C"]),
    ],
)
def test_keys_concern_methods(method, base, keys):
    leaves = {"name": "g", "data.name": "gaussians", "surrogate.losses": ["hinge"]}
    config = parse_config(unflat(leaves | {"baselines.methods": ["rankboost"], "exact.base": base}))
    grid = Grid(GridConfig(experiments=("g.toml",), splits=1), (Variant({}, config),))
    (cell,) = [cell for cell in plan([grid], {"g": SHA}).cells.values() if cell.method == method]
    of_some = ("surrogate.l2", "exact.C", "baselines.rankboost.rounds", "baselines.logistic_regression.C")
    of_all = ("exact.statistic", "statistics.gain", "data.seed")
    assert [key for key in (*of_some, *of_all) if cell.concerns(key)] == [*[k for k in of_some if k in keys], *of_all]


LOSSES = ("ranknet", "hinge", "exponential")
VARIED = {
    "exact.top_k": (10, 20, "full"),
    "exact.C": (0.0, 0.1),
    "exact.time_limit": (1.0, 60.0, 600.0),
    "exact.statistic": ("dcg", "auc"),
    "exact.base": ("ranknet", "rankboost"),
    "surrogate.l2": (1e-4, 0.1),
    "baselines.rankboost.rounds": (5, 100),
}


@st.composite
def grids(draw):
    """Grids of one to three experiments each, varied in up to two keys."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        varied = draw(st.lists(st.sampled_from(sorted(VARIED)), max_size=2, unique=True))
        names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
        methods = draw(st.none() | st.lists(st.sampled_from(["ranknet", "rankboost", EXACT]), min_size=1, unique=True))
        splits = draw(st.integers(1, 4) | st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
        options = GridConfig(
            experiments=tuple(names), splits=splits, methods=methods, recentre=draw(st.sampled_from([None, "l2"]))
        )
        variants = []
        for name, values in itertools.product(names, itertools.product(*(VARIED[key] for key in varied))):
            choice = dict(zip(varied, values, strict=True))
            leaves = {"name": name, "data.name": "gaussians", "surrogate.losses": list(LOSSES)}
            leaves["baselines.methods"] = ["logistic_regression", "rankboost"]
            variants.append(Variant(choice, parse_config(unflat(leaves | choice))))
        found.append(Grid(options, tuple(variants)))
    return found


@settings(max_examples=40, deadline=None)
@given(grids(), st.integers(1, 5))
def test_plans_and_their_shards(grids, count):
    found = plan(grids, dict.fromkeys("abc", SHA))
    cells = list(found.cells.values())
    assert [cell.id for cell in cells] == list(found.cells)
    seen = set()
    for cell in cells:  # what others start from comes first
        assert set(cell.starts) <= seen
        seen.add(cell.id)
    for grid, table in zip(grids, found.index, strict=True):
        places = [
            (entry["data"], entry["split"], entry["method"], *sorted(entry["varied"].items(), key=str))
            for entry in table["cells"]
        ]
        assert len(set(places)) == len(places)  # one value in each place of a table
        assert {entry["split"] for entry in table["cells"]} <= set(grid.config.seeds)
        assert {entry["id"] for entry in table["cells"]} <= set(found.cells)

    parts = [part(cells, number, count) for number in range(1, count + 1)]
    assert sorted(cell.id for some in parts for cell in some) == sorted(found.cells)
    for some in parts:
        own = {cell.id for cell in some}
        assert all(set(cell.starts) <= own for cell in some)
        assert [cell.id for cell in some] == [name for name in found.cells if name in own]
    splits = [len({(cell.data, cell.split) for cell in some}) for some in parts]
    assert max(splits) - min(splits) <= 1
