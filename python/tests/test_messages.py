"""What goes wrong is said in Python's words: keywords, never options of the command line."""

import re
import warnings

import numpy as np
import pytest

import odecast

T = np.linspace(0, 10, 201)
U = np.column_stack([np.cos(T), -np.sin(T)])


@pytest.fixture(scope="module")
def swing():
    return odecast.fit((T, U), degree=1)


@pytest.fixture(scope="module")
def network():
    return odecast.fit((T, U), layers=[3], batches=1)


# The content of a file, how it is read, and a part of the message.
FILES = [
    ("a,b\n1,2\n2,1\n3,5\n", {}, "Name it: time=NAME."),
    ("t,x\n0,1\n1,\n2,3\n", {}, "split the trajectory there: missing=drop"),
    ("t,x\n0,1\n0,2\n2,3\n", {}, "duplicates=first or duplicates=mean"),
    ("t,x\n0,1\n0,2\n2,3\n", {}, "(or id=NAME)"),
    ("t,x\n1,1\n0,2\n2,3\n", {}, "Sort the rows by time: sort=True."),
    ("t,x,y\n0,1,2\n1,2\n2,3,3\n", {}, "separator=, one of"),
    ("t;x\n0;1,5\n1;2.5\n", {}, "decimal=point or decimal=comma"),
    ("t,x\n0,1\n1,2\n", {"variables": ["q"]}, "variables=: found no column 'q'"),
    ("t,x\n0,1\n1,2\n", {"time": "q"}, "time=: found no column 'q'"),
    ("t,x\n0,1\n1,2\n", {"header": "maybe"}, "header=: found 'maybe'"),
]

CALLS = [
    (lambda m: odecast.fit((T, U), posterior="dropout", degree="auto"),
     "degree=: found auto with posterior=dropout"),
    (lambda m: odecast.fit((T, U), holdout=0.3), "expected calibrate=True."),
    (lambda m: odecast.fit((T, U), layers=[4], trainer="exact"), "exact with layers="),
    (lambda m: odecast.fit((T, U), inputs="q"), "inputs=: found 1 names"),
    (lambda m: odecast.fit((T, U), budget=-1), "budget=: found"),
    (lambda m: odecast.read(T, U, sort=True), "sort=: found it with arrays"),
    (lambda m: odecast.read(T), "sample_step=H"),
    (lambda m: m.forecast(), "forecast: found neither until= nor at="),
    (lambda m: m.forecast(until=1), "until=: found 1, expected a time after the start (10)"),
    (lambda m: m.forecast(until=12, step=1e-9), "step=1e-09, output times"),
    (lambda m: m.forecast(at=[12, 11]), "Check from_=, until= and at=."),
    (lambda m: m.forecast([1], until=2), "init=: found 1 values, expected 2 (x1, x2)"),
    (lambda m: m.forecast(until=12, at=[11]), "at=: found until= or step= beside it"),
    (lambda m: m.forecast(until=12, drive=([1, 2], [1, 2])), "a model with inputs (fit inputs=)"),
    (lambda m: m.forecast(until=12, raw=True), "a model with a calibration (model.calibrate)"),
    (lambda m: m.forecast(until=12, masks="enumerated"), "Use masks=sampled."),
    (lambda m: m.forecast(until=12, max_steps=1), "(until=), use blow_up=until"),
    (lambda m: m.forecast(until=12, fixed_step=0.1), "expected method=rk4 or euler"),
    (lambda m: m.evaluate((T, U), horizon=100), "a smaller horizon="),
    (lambda m: m.evaluate((T, U), noise=0.1), "expected observations=True."),
    (lambda m: m.calibrate((T, U), starts=5), "Give more starts=, a longer truth or a lower level"),
    (lambda m: odecast.score(m.forecast(until=12, draws=9), (T, U)), "with at=FILE"),
    (lambda m: odecast.simulate("Lorens"), "odecast.systems() lists all"),
    (lambda m: odecast.simulate("Lorenz", set={"q": 1}), "odecast.systems('Lorenz') shows"),
    (lambda m: odecast.simulate("Lorenz", init=[1]), "Give one value per variable."),
    (lambda m: odecast.lyapunov("Henon", interval=1), "interval=: found"),
    (lambda m: odecast.tune((T, U), blocks=1), "blocks=: found"),
    (lambda m: odecast.tune((T, U), horizon=-1), "horizon=: found -1"),
    (lambda m: m.equations(set="best", centre="median"), "one of set= and centre="),
    (lambda m: m.equations("matlab"), "expected one of text, latex, json, c, python, sympy."),
    (lambda m: m.predict([1.0]), "u: found 1 values, expected 2 (x1, x2)"),
]


def message(call, *given) -> str:
    """What is raised, with what is warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", odecast.NotTrusted)
        with pytest.raises((ValueError, RuntimeError)) as raised:
            call(*given)
    return "\n".join([str(raised.value), *(str(w.message) for w in seen)])


def check(text: str, part: str) -> None:
    assert part in text
    assert not re.search(r"--[a-z]|`[a-z]|\bodecast [a-z]+\b", text), text


@pytest.mark.parametrize("content,options,part", FILES, ids=[part for _, _, part in FILES])
def test_of_files(tmp_path, content, options, part):
    (tmp_path / "data.csv").write_text(content)
    check(message(lambda: odecast.read(tmp_path / "data.csv", **options)), part)


@pytest.mark.parametrize("call,part", CALLS, ids=[part for _, part in CALLS])
def test_of_calls(swing, call, part):
    check(message(call, swing), part)


def test_of_networks(network):
    for call in (lambda: network.equations(), lambda: network.equations("python"),
                 lambda: network.draws(3), lambda: network.coefficients):
        check(message(call), "without layers=")


def test_of_places(swing, tmp_path):
    for call in (swing.save, swing.forecast(until=11, draws=4).report, odecast.read(T, U).save):
        with pytest.raises(OSError, match="choose another place(;|\\.)"):
            call(tmp_path / "nowhere" / "file.csv")


def test_of_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 2.0], "b": [1.0, 2.0, 3.0]})
    check(message(lambda: odecast.read(frame)), "Name it: time=NAME.")


def test_help_speaks_python():
    """And says which method a default is for."""
    for function in (odecast.fit, odecast.read, odecast.score, odecast.tune, odecast.lyapunov,
                     odecast.attractor, odecast.simulate, odecast.Model.forecast,
                     odecast.Model.evaluate, odecast.Forecast.report):
        text = function.__doc__.partition(">>>")[0]
        assert not re.search(r"(?<!-)--(?!json)[a-z]|exit code", text), function
    text = odecast.fit.__doc__
    assert "dropout : R, default None" in text and "derivative : " in text
    assert re.search(r"The default method \(posterior='trajectory'\):\s+functions : WORD,…", text)
    assert text.index("Methods that learn from rows") < text.index("derivative : ")
