"""What is written about the package is true: docstrings, stubs, README, examples."""

import doctest
import importlib
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import odecast
from conftest import ROOT

MODULES = ["odecast", "odecast._coefficients", "odecast._data", "odecast._filter",
           "odecast._forecast", "odecast._model", "odecast._regressor", "odecast._systems"]
EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    for needed in ("pandas", "xarray", "matplotlib", "sklearn"):
        pytest.importorskip(needed)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert failed == 0 and tried > 0


def public():
    for name in odecast.__all__:
        thing = getattr(odecast, name)
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and inspect.isfunction(value):
                    yield f"{name}.{member}", value


def test_every_public_thing_has_an_example():
    pytest.importorskip("sklearn")
    assert [name for name, thing in public() if ">>>" not in (thing.__doc__ or "")] == []


def test_signatures_show_the_tables_types_and_defaults():
    parameters = inspect.signature(odecast.fit).parameters
    assert parameters["degree"].default == 2
    assert parameters["derivative"].default is None  # the method's
    for name, kind in {"degree": "int | Literal['auto']", "noise_factor": "float", "seed": "int",
                       "robust": "bool",
                       "noise": "Numbers | Literal['auto', 'constant', 'relative', 'log'] | None",
                       "scale": "Literal['standard', 'none']"}.items():
        assert parameters[name].annotation == kind
    assert parameters["hidden"].default == "auto" and parameters["rescale"].default is False
    assert inspect.signature(odecast.Model.forecast).parameters["draws"].default == 1000
    assert "dropout : R, default None" in odecast.fit.__doc__


def test_stubs_are_those_of_the_functions():
    sys.path.insert(0, str(ROOT / "python"))
    import make_stubs

    written = pathlib.Path(odecast.__file__).with_name("__init__.pyi").read_text()
    assert written == make_stubs.stubs(), "run python -P python/make_stubs.py"
    assert pathlib.Path(odecast.__file__).with_name("py.typed").exists()


def test_type_checkers_read_the_stubs(tmp_path):
    """Right use has the types that it has, wrong use is found. The cache stays with the
    environment: NumPy's types take most of the time."""
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text("""import numpy as np
import odecast
m = odecast.fit('a.csv', degree='auto')
n = odecast.fit(odecast.read('a.parquet'), degree=2, noise=[0.1, 0.2])
f = m.forecast(until=3, draws=5)
reveal_type(f.mean)
reveal_type(f.samples)
reveal_type(m.predict([1.0]))
reveal_type(m.predict([1.0], return_sd=True))
reveal_type(m.forecast(until=3, field='mean'))
reveal_type(m.equations('python'))
reveal_type(m.equations('json'))
reveal_type(m.draws(5).values)
reveal_type(m.coefficients.sd)
reveal_type(odecast.systems())
reveal_type(odecast.systems('Lorenz'))
total: float = float(np.sum(f.upper - f.lower) + np.trace(np.asarray(m.covariance)))
""")
    (tmp_path / "misuse.py").write_text(
        "import odecast\nodecast.fit('a.csv', degre=2)\nodecast.fit('a.csv', degree=2.5)\n"
        "odecast.fit('a.csv', scale='nome')\nodecast.fit('a.csv').forecast(until='soon')\n"
        "odecast.fit('a.csv').equations('matlab')\n")
    check = [sys.executable, "-m", "mypy", "--cache-dir", f"{sys.prefix}/mypy", "use.py",
             "misuse.py"]
    found = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    errors = [line for line in found.splitlines() if "error:" in line]
    assert [e.split(" ")[0] for e in errors] == [f"misuse.py:{k}:" for k in (2, 3, 4, 5, 6)], found
    types = re.findall(r'note: Revealed type is "(.*)"', found)
    types = [re.sub(r"builtins\.|odecast\.|numpy\._?[a-z.]*(?=float64)", "", t) for t in types]
    array = types[0]
    assert "ndarray" in array and "float64" in array, found
    assert types == [array, array, array, f"tuple[{array}, {array}]", "Data", "str",
                     "dict[str, Any]", array, array, "list[str]", "dict[str, Any]"], found


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.S)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/tutorials/pysindy.md"])
def test_documents(page, tmp_path, monkeypatch, program):
    """The Python blocks of a page, one after the other, beside the files that the README's commands
    make."""
    pytest.importorskip("matplotlib").use("Agg")
    for needed in ("pandas", "xarray", "sklearn"):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    if page == "README.md":
        program("simulate", "SprottB", "--until", 12, "--step", 0.01, "--noise", 0.05, "-o",
                "data.csv")
        program("split", "data.csv")
    elif page == "docs/tutorials/pysindy.md":
        pytest.importorskip("pysindy")
        program("simulate", "Lorenz", "--until", 24, "--step", 0.02, "--noise", 0.05, "-o",
                "lorenz.csv")
        program("split", "lorenz.csv", "--holdout", 0.1)
    else:
        odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.01).save("train.csv")
        odecast.simulate("SprottB", init=[-1, -1, -1], until=10, step=0.02).save("test.csv")
    space = {}
    found = blocks(ROOT / page)
    assert found
    for block in found:
        exec(compile(block, page, "exec"), space)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples(example, tmp_path):
    pytest.importorskip("matplotlib")
    needed = re.findall(r"^# needs: (\w+)", example.read_text(), re.M)
    for package in needed:
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True,
                          check=False, env={**os.environ, "MPLBACKEND": "Agg"})
    assert done.returncode == 0, done.stderr
