"""The compiled core as a whole: what is said where it is missing, and that its signatures are known."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ltr.native

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
