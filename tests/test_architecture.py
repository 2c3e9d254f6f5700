"""The layers of the toolkit and who may import what."""

import ast
import functools
import sys
from pathlib import Path

import pytest

from tests.imports import loaded_by

ROOT = Path(__file__).parents[1]
MODULES = sorted([*ROOT.glob("ltr/**/*.py"), *ROOT.glob("trainers/**/*.py")])

# each layer may import itself and what stands before it
LAYERS = [
    ["ltr.checks"],
    ["ltr.calls"],
    [
        "ltr.clicks",
        "ltr.estimator_names",
        "ltr.figures",
        "ltr.files",
        "ltr.html",
        "ltr.native",
        "ltr.statistics",
        "ltr.lists",
        "ltr.outcomes",
        "ltr.pictures",
        "ltr.point_limits",
        "ltr.threads",
        "ltr.training",
        "ltr.verify",
    ],
    ["ltr.ranks"],
    ["ltr.metrics", "ltr.losses", "ltr.data", "ltr.exact"],
    [
        "ltr.fitting",
        "ltr.convex",
        "ltr.demands",
        "ltr.list_demands",
        "ltr.onnx_graph",
        "ltr.gbdt",
        "ltr.survival",
        "ltr.text",
        "ltr.uplift",
        "ltr.xgboost_callback",
    ],
    ["ltr.rankers", "ltr.progress"],
    ["ltr.cards", "ltr.answer"],
    ["trainers"],
]
# a package -> the only place, or places, that may import it
ONLY = {
    "pyscipopt": "ltr.exact",
    "cvxpy": "ltr.convex",
    "tensorboard": "trainers",
    "torch.utils.tensorboard": "trainers",
    "rich": "trainers",
    "matplotlib": (
        "trainers",
        "ltr.cards.rendering",
        "ltr.cards.card",
        "ltr.exact.fronts",
        "ltr.exact.ranges",
        "ltr.exact.solution",
        "ltr.figures",
        "ltr.pictures",
        "ltr.rankers",
    ),
    "pydantic": "trainers",
    "torchmetrics": "ltr.metrics.torchmetrics",
    "xgboost": "ltr.xgboost_callback",
    "onnx": "ltr.onnx_graph",
    "lightning_ir": "ltr.text",
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def nodes(path):
    """All nodes of a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name, package):
    return name == package or name.startswith(package + ".")


def layer(name):
    return next((depth for depth, members in enumerate(LAYERS) if any(within(name, m) for m in members)), None)


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_dependencies_point_down(path):
    name = module_name(path)
    if name == "ltr":
        return  # re-exports everything, lazily
    text = path.read_text()
    if within(name, "ltr"):  # whole experiments are the only names from above: ltr/__init__.py loads them when used
        assert 'import_module("trainers' not in text
    own = layer(name)
    assert own is not None, f"{name} belongs to no layer"
    for imported in imports(path):
        depth = layer(imported)
        assert depth is None or depth <= own, f"{name} imports {imported} from a layer above it"
        for package, place in ONLY.items():
            places = (place,) if isinstance(place, str) else place
            allowed = any(within(name, one) for one in places)
            assert allowed or not within(imported, package), f"{name} imports {package}"


def test_the_checker_imports_itself_and_python_alone():
    for path in ROOT.glob("ltr/verify/*.py"):
        for node in nodes(path):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1
                modules = [] if node.level else [node.module]
            assert {module.split(".")[0] for module in modules} <= sys.stdlib_module_names


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_the_library_prints_nothing_and_imports_no_stars(path):
    stars = [n for n in nodes(path) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]
    prints = [n for n in nodes(path) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "print"]
    assert not stars
    assert not prints or module_name(path).startswith("trainers")


def test_importing_losses_and_metrics_stays_light():
    heavy = ["cvxpy", "pyscipopt", "pandas", "matplotlib", "sklearn", "tensorboard", "pydantic", "rich"]
    heavy += ["scipy.stats", "torchmetrics", "torch._dynamo", "optuna", "trainers"]
    assert loaded_by("import ltr, ltr.losses, ltr.metrics", heavy) == []


def test_a_linear_fit_does_without_what_serves_torch_compile_alone():
    fit = "ltr.SurrogateRanker().fit(numpy.random.default_rng(0).normal(size=(9, 2)), [0, 1, 1] * 3)"
    assert loaded_by(f"import numpy, ltr; {fit}", ["torch._dynamo"]) == []
