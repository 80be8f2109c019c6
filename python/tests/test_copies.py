"""Everything can be pickled and copied, and other processes give the same results."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import odecast

WAYS = {"pickle": lambda x: pickle.loads(pickle.dumps(x)),
        "oldest pickle": lambda x: pickle.loads(pickle.dumps(x, protocol=2)),
        "copy": copy.copy, "deepcopy": copy.deepcopy}


def same_data(a, b):
    assert (a.variables, a.inputs, a.ids, a.certified_until, a._core.time_column, a._core.name,
            a._core.keeps_missing, a._core.time_input) == (
        b.variables, b.inputs, b.ids, b.certified_until, b._core.time_column, b._core.name,
        b._core.keeps_missing, b._core.time_input)
    for x, y in zip(a, b, strict=True):
        for left, right in zip(x[1:], y[1:], strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.fixture(scope="module")
def tables():
    t = np.linspace(0, 4, 81)
    u = np.column_stack([np.cos(t), -np.sin(t)])
    holes = u.copy()
    holes[40, 1] = np.nan
    return {
        "simulated": odecast.simulate("SprottB", until=2, step=0.02, noise=0.01),
        "arrays": odecast.read(t, u, variables=["x, y", "v"]),
        "evenly spaced": odecast.read(0.1, u),
        "several": odecast.read([t[:30], t[30:]], [u[:30], u[30:]]),
        "driven": odecast.read(t, u, np.cos(2 * t), variables=["x", "v"], inputs=["F", "t"]),
        "holes": odecast.read(t, holes, missing="keep"),
        "split": odecast.read(t, holes, missing="drop"),
    }


@pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
def test_data(tables, tmp_path, again):
    for data in tables.values():
        back = again(data)
        same_data(back, data)
        back.save(tmp_path / "a.csv")
        data.save(tmp_path / "b.csv")
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    back = again(tables["driven"])
    assert (odecast.fit(back, posterior="regression")._core.to_text()
            == odecast.fit(tables["driven"], posterior="regression")._core.to_text())


@pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)
def test_models_and_what_they_make(tables, again):
    held = odecast.simulate("SprottB", init=[-1, -1, -1], until=40, step=0.05)
    fitted = odecast.fit(tables["simulated"])
    calibrated = fitted.calibrate(held, starts=40, horizon=1, draws=20)
    for model in (fitted, calibrated):
        back = again(model)
        assert back._core.to_text() == model._core.to_text()
        assert back.summary == model.summary and back.calibration == model.calibration
        assert repr(back) == repr(model) and back._repr_html_() == model._repr_html_()
        a, b = (m.forecast(until=4, draws=20) for m in (back, model))
        np.testing.assert_array_equal(a.upper, b.upper)
    for part in (fitted.draws(5), fitted.coefficients, fitted.covariance):
        for name, value in vars(part).items():
            np.testing.assert_array_equal(getattr(again(part), name), value)
    tuned = odecast.Tuning(fitted, {"rows": 1})
    assert again(tuned).summary == tuned.summary
    run = again(tables["simulated"][0])
    np.testing.assert_array_equal(run.states, tables["simulated"][0].states)


def work(task):
    """In another process: forecasts of a model, fits of data, numbers of a forecast."""
    what, part = task
    if what == "model":
        return part.forecast(until=4, draws=20).mean
    return odecast.fit(part)._core.to_text() if what == "data" else part.mean


@pytest.mark.parametrize("method", ["spawn"])
def test_other_processes(tables, method):
    model = odecast.fit(tables["simulated"])
    fc = model.forecast(until=4, draws=20)
    with multiprocessing.get_context(method).Pool(1) as pool:
        ahead, text, mean = pool.map(work, [("model", model), ("data", tables["simulated"]),
                                            ("forecast", fc)])
    np.testing.assert_array_equal(ahead, fc.mean)
    np.testing.assert_array_equal(mean, fc.mean)
    assert text == model._core.to_text()


def test_damaged_data_are_refused(tables):
    state = list(tables["driven"]._core.state())
    run = state[7][0]
    for place, value in ((0, []), (0, ["x"]), (1, []), (7, []), (7, [run[:3]]),
                         (7, [(run[0], run[1][:5], run[2], run[3])]),
                         (7, [(run[0], run[1], run[2][:, 0], run[3])]), (7, 3), (6, "yes")):
        damaged = [*state[:place], value, *state[place + 1:]]
        with pytest.raises((ValueError, TypeError)):
            odecast._core.data_from_state(tuple(damaged))
