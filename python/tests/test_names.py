"""Names that mean something to a file, a language or a terminal; values of a kind that cannot be
meant."""

import copy
import json
import pickle

import numpy as np
import pytest

import odecast

NAMES = ["x, m", 'say "y"', "#z", "nan", "t", "time", "trajectory", "id", "x_mean", "x",
         "x_observed", "=1+1", "\x1b[31mred", "a\tb", "😀", "\u202eb", "é", "a|b;c",
         "\\input{/etc/passwd}", "<b>&amp;"]


@pytest.fixture(scope="module")
def decays():
    """Each decays by itself."""
    t = np.linspace(0, 2, 41)
    return t, np.exp(-np.outer(t, 1 + 0.1 * np.arange(len(NAMES))))


@pytest.fixture(scope="module")
def named(decays):
    return odecast.fit(odecast.read(*decays, variables=NAMES), degree=1, dropout=0.1)


def test_names_survive_files_of_data(decays, tmp_path):
    pytest.importorskip("pandas")
    data = odecast.read(*decays, variables=NAMES)
    for name in ("data.csv", "data.npz"):
        data.save(tmp_path / name)
        back = odecast.read(tmp_path / name, variables=NAMES, time="time_")
        assert back.variables == NAMES
        np.testing.assert_array_equal(back[0].states, data[0].states)
    frame = data.to_dataframe()
    assert frame.columns.tolist() == ["time_", *NAMES]
    assert odecast.read(frame, variables=NAMES, time="time_").variables == NAMES


def test_names_survive_models_and_forecasts(named, tmp_path):
    pytest.importorskip("pandas")
    named.save(tmp_path / "model.json")
    assert odecast.load(tmp_path / "model.json").variables == NAMES
    assert named.equations("json")["variables"] == NAMES
    made = named.forecast(until=3, step=0.25, draws=20, observations=True, noise=[0.1] * len(NAMES))
    made.save(tmp_path / "forecast.csv")
    back = odecast.read_forecast(tmp_path / "forecast.csv")
    assert back.variables == NAMES
    for part in ("mean", "sd", "lower", "upper", "q_lower", "q_upper", "observed_lower",
                 "observed_q_upper"):
        np.testing.assert_array_equal(getattr(back, part), getattr(made, part))
    columns = made.to_dataframe().columns
    assert len(set(columns)) == len(columns)
    assert {f"{name}_mean" for name in NAMES} < set(columns)


def test_nothing_shown_acts_on_a_terminal(named):
    made = named.forecast(until=3, step=0.5, draws=20)
    for text in (repr(named), repr(made), named.equations(), named.equations("latex"),
                 named.equations("c")):
        assert all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize("argument", ["variables", "inputs"])
def test_names_are_text(decays, argument):
    t, u = decays
    with pytest.raises(TypeError, match=argument + ": found 1, expected names"):
        odecast.read(t, u[:, :3], u[:, 3:6], **{argument: [1, 2, 3]})


def test_names_of_draws_are_checked():
    def decay(rng):
        return lambda t, u: -u

    for names, error in (([1], TypeError), (["a", "a"], ValueError), ([""], ValueError),
                         (["a\nb"], ValueError)):
        with pytest.raises(error, match="variables"):
            odecast.forecast(decay, np.ones(len(names)), variables=names, until=1, step=0.5,
                             draws=5)


@pytest.mark.parametrize("names", [["", "y"], ["x", "x"], [" x", "y"], ["x\n", "y"],
                                   ["\ud800", "y"]])
def test_names_that_no_file_can_hold_are_refused(decays, names):
    t, u = decays
    with pytest.raises(ValueError):
        odecast.read(t, u[:, :2], variables=names)


def test_complex_numbers_are_refused(decays, named):
    pandas = pytest.importorskip("pandas")
    t, u = decays
    for bad in (lambda: odecast.read(t, u + 0j), lambda: odecast.read(t + 0j, u),
                lambda: odecast.read(t, [u + 0j, u]),
                lambda: odecast.read(t, u.tolist()[:-1] + [[1j] * u.shape[1]]),
                lambda: named.predict(u[0] + 0j),
                lambda: named.forecast(u[0] + 0j, until=1, step=0.5),
                lambda: odecast.read(pandas.DataFrame({"t": t, "x": u[:, 0] + 0j})),
                lambda: odecast.forecast(lambda rng: lambda t, u: -u + 0j, [1.0], until=1, step=0.5,
                                         draws=5)):
        with pytest.raises(TypeError, match="complex"):
            bad()


def test_a_right_hand_side_of_no_numbers_is_a_type_error():
    with pytest.raises(TypeError):
        odecast.forecast(lambda rng: lambda t, u: ["a"], [1.0], until=1, step=0.5, draws=5)


PARTS = ("times", "mean", "sd", "lower", "upper", "q_lower", "q_median", "q_upper",
         "observed_lower", "alive")


@pytest.mark.parametrize("again", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy,
                                   copy.deepcopy])
def test_a_forecast_can_be_copied(model, test, tmp_path, again):
    whole = model.forecast([-1, -1, -1], at=test, draws=20, samples=3)
    whole.save(tmp_path / "forecast.csv")
    own = odecast.forecast(lambda rng: lambda t, u: -u, [1.0], until=1, step=0.5, draws=5)
    for made in (whole, own, odecast.read_forecast(tmp_path / "forecast.csv")):
        back = again(made)
        assert (back.variables, back.summary, back.level) == (
            made.variables, made.summary, made.level)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(back, part), getattr(made, part))
        assert len(back.samples) == len(made.samples)
        assert back._core.to_text() == made._core.to_text()
    back = again(whole)
    assert odecast.score(back, test) == odecast.score(whole, test)
    whole.report(tmp_path / "a.html")
    back.report(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_damaged_copy_is_refused(model):
    state = list(model.forecast(until=11, step=0.5, draws=20)._core.state())
    for place, value in ((0, ["x"]), (0, []), (3, np.zeros(1)), (4, np.zeros(1)), (1, []),
                         (2, [np.zeros((1, 1))]), (10, "{}"), (11, ["--nonsense"]),
                         (1, [np.zeros(3)] * 11), (6, ("a",) * 4), (15, (99, 1e-6, 1e-6))):
        damaged = [*state[:place], value, *state[place + 1:]]
        with pytest.raises((ValueError, TypeError)):
            odecast._core.forecast_from_state(tuple(damaged))


def sealed(body: dict) -> str:
    """The text of a model with its checksum, 64-bit FNV-1a."""
    text = json.dumps(body, indent=2, ensure_ascii=False)[:-2]
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f'{text},\n  "checksum": "fnv1a64:{value:016x}"\n}}\n'


def test_overflow_is_said(model, tmp_path):
    body = json.loads(model._core.to_text())
    del body["checksum"]
    for layer in body["law"]["layers"]:
        layer["weights"]["values"] = [1e150 * w for w in layer["weights"]["values"]]
    (tmp_path / "model.json").write_text(sealed(body))
    broken = odecast.load(tmp_path / "model.json")
    for at in ([1e10, 1.0, 1.0], [[1.0, 1.0, 1.0], [1e200, 1.0, 1.0]]):
        with pytest.warns(odecast.NotTrusted, match="not finite"):
            broken.predict(np.array(at))
    with pytest.raises((RuntimeError, ValueError)):
        broken.forecast(until=11, step=0.5, draws=20)
