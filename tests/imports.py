"""What a program loads."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def loaded_by(program, names):
    """The modules among some that a program has loaded at its end, in a process of its own."""
    line = f"{program}\nimport sys; print([name for name in {list(names)} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True, cwd=ROOT)
    return ast.literal_eval(done.stdout)
