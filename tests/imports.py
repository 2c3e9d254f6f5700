"""What a program loads."""

import ast
import subprocess
import sys

from tests.paths import ROOT


def loaded_by(*programs, names):
    """The modules among some that are loaded after each of these programs, one after the other in a new process."""
    tell = f"import sys; print([name for name in {list(names)} if name in sys.modules])"
    text = "\n".join(f"{program}\n{tell}" for program in programs)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT)
    return list(map(ast.literal_eval, done.stdout.splitlines()))
