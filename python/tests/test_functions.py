"""Terms beside powers, from arrays to equations."""
import numpy as np
import pytest

import odecast


@pytest.fixture(scope="module")
def pendulum():
    """Rows of theta'' = -2 sin(theta) - 0.2 theta', by a Runge-Kutta method of our own."""
    def f(u):
        return np.array([u[1], -2 * np.sin(u[0]) - 0.2 * u[1]])

    h, u, rows = 0.01, np.array([2.6, 0.0]), []
    for k in range(1200):
        if k % 10 == 0:
            rows.append(u)
        a = f(u)
        b = f(u + h / 2 * a)
        c = f(u + h / 2 * b)
        u = u + h / 6 * (a + 2 * b + 2 * c + f(u + h * c))
    rows = np.array(rows) + np.random.default_rng(4).normal(size=(120, 2)) * 0.05
    return odecast.read(0.1 * np.arange(120), rows, variables=["theta", "v"])


@pytest.mark.parametrize("offered", [{"functions": "sin,cos"}, {"functions": ["sin", "cos"]},
                                     {"candidates": "sin(theta)"},
                                     {"candidates": ["sin(theta)", "hill(theta^2, k, 2)"]}])
def test_words_and_lists_offer_the_same_sine(pendulum, offered):
    model = odecast.fit(pendulum, progress=False, **offered)
    assert "sin(theta)" in model.equations()


def test_the_field_of_the_code_is_the_models(pendulum):
    model = odecast.fit(pendulum, functions="sin", progress=False)
    names = {}
    exec(model.equations(format="python"), names)
    found = names["f"](0.0, [0.7, 0.4])
    assert found == pytest.approx([0.4, -2 * np.sin(0.7) - 0.08], abs=0.1)


def test_tune_tries_with_and_without(pendulum):
    found = odecast.tune(pendulum, posterior="trajectory", functions="sin", starts=8, leads=4,
                         draws=20, progress=False)
    settings = [row["settings"] for row in found.summary["rows"]]
    assert sorted(settings) == ["--posterior trajectory", "--posterior trajectory --functions=sin"]


def test_the_regressor_takes_them(pendulum):
    run = pendulum[0]
    regressor = odecast.ODERegressor(candidates=["sin(x1)"]).fit(run.states, t=run.times)
    assert regressor.predict([[1.5, 0]])[0, 1] == pytest.approx(-2 * np.sin(1.5), abs=0.1)


def test_numbers_that_no_data_tell(pendulum):
    with pytest.raises(ValueError, match=r"candidates=: found 'V\*sin\(theta\)'.*tell V from"):
        odecast.fit(pendulum, candidates="V*sin(theta)")
