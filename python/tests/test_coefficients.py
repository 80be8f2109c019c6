"""Coefficients, draws of them and equations to compute with: they are what forecasts integrate."""

import itertools

import numpy as np
import pytest

import odecast

integrate = pytest.importorskip("scipy.integrate")

METHODS = {
    "trajectory": {},
    "regression": {"posterior": "regression"},
    "bootstrap": {"posterior": "bootstrap", "replicates": 10},
    "dropout": {"dropout": 0.25},
    "ensemble": {"posterior": "ensemble", "members": 3, "trainer": "adam", "batches": 3},
}


@pytest.fixture(scope="module")
def noisy():
    return odecast.simulate("SprottB", init=[1, 1, 1], until=20, step=0.02, noise=0.02)


@pytest.fixture(scope="module")
def models(noisy):
    return {name: odecast.fit(noisy, **options) for name, options in METHODS.items()}


def solved(f, times, start):
    return integrate.solve_ivp(f, (times[0], times[-1]), start, t_eval=times, rtol=1e-11,
                               atol=1e-12).y.T


@pytest.mark.parametrize("name", METHODS)
def test_draws_are_those_of_forecasts(models, name):
    """SciPy integrates each draw; the forecast has the same trajectory."""
    model = models[name]
    drawn = model.draws(8, seed=5)
    tight = {"draws": 8, "samples": 8, "seed": 5, "step": 0.1, "rtol": 1e-10, "atol": 1e-12}
    ways = [(model.forecast([1, 1, 1], until=1, **tight), itertools.repeat([1, 1, 1]))]
    if name == "trajectory":  # it knows the state in which the data end, too
        ways.append((model.forecast(until=model.last_time + 1, **tight), drawn.start))
    else:
        assert drawn.start is None
    for fc, starts in ways:
        assert fc.samples.shape == (8, 11, 3)
        for coefficients, start, sample in zip(drawn.values, starts, fc.samples):
            def f(t, u, c=coefficients):
                return c @ np.prod(u**drawn.powers, axis=1)

            np.testing.assert_allclose(solved(f, fc.times, start), sample, atol=1e-8)


@pytest.mark.parametrize("name", METHODS)
def test_moments_are_those_of_the_draws(models, name):
    """Five standard errors of 4000 draws; of the sd 20 %, since mixtures have heavy tails."""
    known, drawn = models[name].coefficients, models[name].draws(4000, seed=2)
    assert known.terms == drawn.terms and known.variables == drawn.variables == ["x", "y", "z"]
    assert known.terms[:6] == ["1", "x", "y", "z", "x^2", "x y"]
    np.testing.assert_array_equal(known.powers[5], [1, 1, 0])
    error = 5 * known.sd / np.sqrt(4000) + 1e-9
    assert np.all(abs(drawn.values.mean(axis=0) - known.mean) < error)
    held = (known.sd > 1e-9) & (known.probability > 0.2)
    np.testing.assert_allclose(drawn.values.std(axis=0)[held], known.sd[held], rtol=0.2)
    assert np.all(abs((abs(drawn.values) > 1e-13).mean(axis=0) - known.probability)
                  < 5 * 0.5 / np.sqrt(4000))


def test_the_covariance_of_the_most_probable_set(models):
    """Draws that have exactly its terms have its mean and covariance."""
    found = models["trajectory"].covariance
    drawn = models["trajectory"].draws(4000, seed=3)
    places = tuple(np.array([(drawn.variables.index(v), drawn.terms.index(term))
                             for v, term in found.names]).T)
    inside = np.zeros(drawn.values.shape[1:], dtype=bool)
    inside[places] = True
    mine = drawn.values[((drawn.values != 0) == inside).all(axis=(1, 2))][(slice(None), *places)]
    assert abs(len(mine) / 4000 - found.probability) < 5 * 0.5 / np.sqrt(4000)
    sd = np.sqrt(np.diag(found))
    assert np.all(abs(mine.mean(axis=0) - found.mean) < 5 * sd / np.sqrt(len(mine)))
    correlation = found.matrix / np.outer(sd, sd)
    assert np.all(abs(np.cov(mine.T) / np.outer(sd, sd) - correlation) < 7 / np.sqrt(len(mine)))
    with pytest.raises(ValueError, match="covariance: found a model without sets of terms"):
        models["dropout"].covariance


def test_the_forms_of_draws(models):
    drawn = models["trajectory"].draws(20)
    assert len(drawn) == 20 and np.asarray(drawn).shape == (20, 3, 10)
    parts = drawn.to_dict()
    assert parts["coefficients"].shape == (1, 20, 3, 10) and parts["start"].shape == (1, 20, 3)
    with pytest.raises(ValueError, match="n=: found 0"):
        models["trajectory"].draws(0)
    with pytest.raises(ValueError, match="Ask for fewer draws"):
        models["trajectory"].draws(10**9)
    with pytest.raises(TypeError):
        models["trajectory"].draws(2.5)
    network = odecast.fit((np.arange(50) * 0.1, np.sin(np.arange(50) * 0.1)), layers=[3], batches=1)
    with pytest.raises(ValueError, match="fit without layers="):
        network.draws(3)


def test_tables_of_draws(models):
    xarray = pytest.importorskip("xarray")
    drawn = models["trajectory"].draws(20)
    cube = drawn.to_xarray()
    assert isinstance(cube, xarray.Dataset)
    np.testing.assert_array_equal(cube.coefficients.sel(chain=0, variable="x", term="y z"),
                                  drawn.values[:, 0, drawn.terms.index("y z")])
    frame = models["trajectory"].coefficients.to_dataframe()
    known = models["trajectory"].coefficients
    assert frame.loc[("y", "x"), "mean"] == known.mean[1, known.terms.index("x")]
    assert len(frame) == (known.probability > 0).sum()
    found = models["trajectory"].covariance
    assert found.to_dataframe().loc[found.names[1], found.names[0]] == found.matrix[1, 0]


def test_arviz_is_asked_for_by_name(models):
    drawn = models["trajectory"].draws(20)
    try:
        import arviz  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="pip install arviz"):
            drawn.to_arviz()
    else:
        assert drawn.to_arviz().posterior.coefficients.shape == (1, 20, 3, 10)


@pytest.mark.parametrize("name", METHODS)
def test_python_source_is_the_model(models, noisy, name):
    model, space = models[name], {}
    exec(model.equations("python"), space)
    states = noisy[0].states[::50]
    np.testing.assert_allclose([space["f"](0.0, u) for u in states], model.predict(states),
                               atol=1e-12)


def test_python_source_for_scipy(models):
    model, space = models["trajectory"], {}
    exec(model.equations("python", set="average"), space)
    mean = model.forecast([1, 1, 1], until=2, step=0.1, field="mean", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(solved(space["f"], mean[0].times, [1, 1, 1]), mean[0].states,
                               atol=1e-8)
    exec(model.equations("python", set="best"), space)
    best = {tuple(term["powers"]): term["mean"]
            for term in model.equations("json")["best"]["equations"][0]["terms"]}
    u = np.array([2.0, 3.0, 5.0])
    expected = sum(c * np.prod(u ** np.array(powers)) for powers, c in best.items())
    assert space["f"](0, u)[0] == pytest.approx(expected, rel=1e-14)
    exec(models["bootstrap"].equations("python", centre="median"), space)
    with pytest.raises(ValueError, match="without sets of terms"):
        models["dropout"].equations("python", set="best")


def test_python_source_of_driven_systems_maps_and_odd_names():
    t = np.linspace(0, 20, 401)
    force = np.cos(1.3 * t)
    x = np.cos(t) + 0.5 * force
    driven = odecast.fit(odecast.read(t, np.column_stack([x, np.gradient(x, t)]), force,
                                      variables=["x", "lambda"], inputs=["w", "t"]),
                         dropout=0, degree=1)
    space = {}
    exec(driven.equations("python"), space)
    for u, w, at in (([0.5, 1.0], 0.3, 2.0), ([-0.5, 1.0], -0.3, 7.0)):
        np.testing.assert_allclose(space["f"](at, u, [w]), driven.predict([*u, w, at]), atol=1e-12)
    henon = odecast.simulate("Henon", until=300)
    model = odecast.fit(henon, kind="map")
    exec(model.equations("python"), space)
    np.testing.assert_allclose(space["f"](0, henon[0].states[7]), henon[0].states[8], atol=1e-9)
    u = np.column_stack([np.cos(t), -np.sin(t)])
    odd = odecast.fit(odecast.read(t, u, variables=['"""\\', "b\u2028import os"]), degree=1)
    exec(odd.equations("python"), space)
    np.testing.assert_allclose(space["f"](0, [1.0, 2.0]), odd.predict([1.0, 2.0]), atol=1e-12)
    assert "os" not in space


def test_sympy(models):
    model = models["trajectory"]
    try:
        import sympy
    except ImportError:
        with pytest.raises(ImportError, match="pip install sympy"):
            model.equations("sympy")
        return
    average = model.equations("sympy", set="average")
    symbols = [sympy.Symbol(name) for name in model.variables]
    f = sympy.lambdify(symbols, [average[name] for name in model.variables])
    np.testing.assert_allclose(f(1.0, 2.0, 3.0), model.predict([1.0, 2.0, 3.0]), atol=1e-12)
    best = model.equations("sympy")
    assert best["x"].free_symbols == {sympy.Symbol("y"), sympy.Symbol("z")}
    terms = sympy.Poly(best["y"], *symbols).as_dict()
    assert set(terms) == {(1, 0, 0), (0, 1, 0)} and abs(terms[(1, 0, 0)] - 1) < 0.02
