"""A tiny benchmark, in a module that the processes which measure load fast."""

from scripts import _bench
from scripts._bench import Bench


def measure(name, times):
    if name == "bad":
        raise ArithmeticError("no value")
    if name == "absent":
        raise ImportError("no package")
    return {"value": 2 * times}


def tables(records):
    columns = _bench.pivot(_bench.value("value"), {"2": {"times": 2}}) | {"rows": lambda own: str(len(own))}
    return {"made": _bench.table(records, {"name": "name"}, columns), "said": "| a | b |"}


TINY = Bench("tiny", "page.md", _bench.grid(name=["a", "b", "bad", "absent"], times=[1, 2]), {}, measure, tables)
