"""The layers of the toolkit and who may import what."""

import ast
import functools
import inspect
import re
import subprocess
import sys

import pytest

import ltr
from tests.imports import loaded_by
from tests.paths import ROOT

MODULES = sorted([*ROOT.glob("ltr/**/*.py"), *ROOT.glob("trainers/**/*.py")])

# each layer may import itself and what stands before it
LAYERS = [
    ["ltr.checks"],
    [
        "ltr.clicks",
        "ltr.estimator_names",
        "ltr.display",
        "ltr.files",
        "ltr.native",
        "ltr.statistics",
        "ltr.lists",
        "ltr.outcomes",
        "ltr.threads",
        "ltr.torch_hooks",
        "ltr.training",
        "ltr.verify",
    ],
    ["ltr.ranks"],
    ["ltr.metrics", "ltr.losses", "ltr.data", "ltr.exact"],
    [
        "ltr.fitting",
        "ltr.convex",
        "ltr.weight_constraints",
        "ltr.list_demands",
        "ltr.onnx_graph",
        "ltr.gbdt",
        "ltr.survival",
        "ltr.text",
        "ltr.uplift",
    ],
    ["ltr.rankers"],
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
        "ltr.display",
        "ltr.rankers",
    ),
    "pydantic": ("trainers", "ltr.cards", "ltr.data.kinds", "ltr.answer.proven"),
    "onnx": "ltr.onnx_graph",
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


# imports on a circle that are made late, for annotations or inside functions; the list should only ever get shorter
LATE = {
    ("ltr", "ltr.answer"),  # names of the package that load torch when they are used
    ("ltr", "ltr.cards"),
    ("ltr", "ltr.rankers"),
    ("ltr.cards", "ltr.cards.ranker"),
    ("ltr.cards.card", "ltr.cards.rendering"),
    ("ltr.rankers.files", "ltr"),  # its version
    ("ltr.rankers.onnx", "ltr.rankers.foreign"),
    ("ltr.rankers.files", "ltr.rankers.base"),
    ("ltr.rankers.onnx", "ltr.rankers.base"),
    ("ltr.rankers.views", "ltr.rankers.base"),
    ("ltr.rankers.unseen", "ltr.rankers.two_stage"),
}


def imported_modules():
    """Pairs of modules of ltr, of which the first imports the second, and whether it does so when it is loaded."""
    paths = {module_name(path): path for path in MODULES if within(module_name(path), "ltr")}
    found = {}
    for name, path in paths.items():
        tree = ast.parse(path.read_text())
        late = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        late += [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ]
        inside = {id(node) for outer in late for node in ast.walk(outer)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    package = name.split(".")[: None if path.name == "__init__.py" else -1]
                    base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
                whole = [f"{base}.{one.name}" for one in node.names]
                modules = [one if one in paths else base for one in whole]
            elif isinstance(node, ast.Import):
                modules = [one.name for one in node.names]
            else:
                continue
            for module in {*modules} & paths.keys() - {name}:
                found[name, module] = found.get((name, module), False) or id(node) not in inside
    return found


def on_circles(pairs):
    """Those of the pairs of modules that lie on a circle."""
    following = {}
    for first, second in pairs:
        following.setdefault(first, set()).add(second)

    def reached(start):
        seen, left = set(), [start]
        while left:
            more = following.get(left.pop(), set()) - seen
            seen |= more
            left += more
        return seen

    reach = {name: reached(name) for name in following}
    return {(first, second) for first, second in pairs if first in reach.get(second, ())}


def test_no_module_of_the_library_imports_itself_in_a_circle():
    pairs = imported_modules()
    at_once = {pair for pair, loads in pairs.items() if loads}
    assert ("ltr.rankers.two_stage", "ltr.rankers.auto") in at_once
    assert on_circles(at_once) == set()
    assert on_circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert {pair for pair in on_circles(pairs) if not pairs[pair]} == LATE


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


def described_constants(path):
    """Return the names that a module assigns with a string below the assignment."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    texts = [isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body]
    targets = [node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None) for node in body]
    return {getattr(target, "id", None) for target, text in zip(targets[:-1], texts[1:], strict=True) if text}


def test_public_names_have_a_docstring():
    """The site of the documentation leaves out names without."""
    constants = set().union(*(described_constants(path) for path in ROOT.glob("ltr/**/*.py")))
    for module in [ltr, *(value for name in ltr.__all__ if inspect.ismodule(value := getattr(ltr, name)))]:
        for name in module.__all__:
            value = getattr(module, name)
            has_own = inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)
            assert value.__doc__ if has_own else name in constants, f"{module.__name__}.{name}"


def test_imports_stay_light_and_a_linear_fit_loads_no_compiler():
    names = ["cvxpy", "pyscipopt", "pandas", "matplotlib", "sklearn", "tensorboard", "pydantic", "rich", "scipy.stats"]
    names += ["torchmetrics", "torch._dynamo", "optuna", "trainers", "sentence_transformers"]
    fit = "import numpy; ltr.SurrogateRanker().fit(numpy.random.default_rng(0).normal(size=(9, 2)), [0, 1, 1] * 3)"
    imported, fitted = loaded_by("import ltr, ltr.losses, ltr.metrics, ltr.text", fit, names=names)
    assert imported == []
    assert "torch._dynamo" not in fitted


def test_losses_and_metrics_need_torch_and_numpy_alone():
    code = """if True:
        import sys
        import numpy, torch
        def others():
            return {name.split(".")[0] for name in sys.modules} - sys.stdlib_module_names
        before = others()
        import ltr
        import ltr.losses, ltr.metrics, ltr.ranks, ltr.statistics, ltr.survival, ltr.uplift, ltr.text
        scores = torch.randn(4, 9, requires_grad=True)
        labels = (torch.arange(36).reshape(4, 9) % 4 == 0).long()
        ltr.losses.RankNetLoss()(scores, labels).backward()
        assert ltr.metrics.ndcg(scores, labels).shape == (4,)
        print(*sorted(others() - before - {"ltr"}))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


SECTION, ENTRY = re.compile(r"(Args|Attributes|Raises):"), re.compile(r"[\w*.]+(, [\w*.]+)*: \S")


def test_each_line_of_a_section_of_a_docstring_begins_an_entry():
    """What the site's reference reads: the entries of a section are indented once, their further lines twice."""
    torn = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            documented = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module)
            section = False
            for line in (ast.get_docstring(node) or "").splitlines() if documented else ():
                if not line.startswith(" ") and line:
                    section = bool(SECTION.fullmatch(line))
                elif section and re.match(r" {4}\S", line) and not ENTRY.match(line[4:]):
                    torn.append((path.name, line))
    assert torn == []
