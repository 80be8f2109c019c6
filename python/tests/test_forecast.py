"""Forecasts of models and of users' own right-hand sides."""

import numpy as np
import pytest

import odecast


def test_bands_hold_their_definition(model):
    fc = model.forecast([-1, -1, -1], until=2, step=0.1, draws=100, samples=100)
    assert fc.times[0] == 0 and fc.times[-1] == 2 and fc.mean.shape == (21, 3)
    np.testing.assert_array_equal(fc.mean[0], [-1, -1, -1])
    whole = np.array(fc.samples)  # every draw: mean, sd and quantiles follow
    np.testing.assert_allclose(whole.mean(axis=0), fc.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whole.std(axis=0, ddof=1)[1:], fc.sd[1:], rtol=1e-9)
    np.testing.assert_allclose(np.quantile(whole, 0.975, axis=0)[1:], fc.q_upper[1:], rtol=1e-9)
    np.testing.assert_allclose(fc.upper - fc.mean, 1.959963984540054 * fc.sd, rtol=1e-12)
    quantiles = model.forecast([-1, -1, -1], until=2, step=0.1, draws=100, bands="quantiles")
    np.testing.assert_array_equal(quantiles.lower, fc.q_lower)


def test_draws_of_a_function(model):
    """exp(-rate t) exactly, for every draw that the generator makes."""

    def decay(rng):
        rate = rng.uniform(0.5, 1.5)
        return lambda t, u: -rate * u

    fc = odecast.forecast(decay, [2.0], until=1, step=0.25, draws=30, samples=30, rtol=1e-9,
                          atol=1e-12, variables=["x"], seed=5)
    for index, sample in enumerate(fc.samples):
        rate = np.random.default_rng((5, index)).uniform(0.5, 1.5)
        np.testing.assert_allclose(sample[:, 0], 2 * np.exp(-rate * fc.times), rtol=1e-8)
    again = odecast.forecast(decay, [2.0], until=1, step=0.25, draws=30, rtol=1e-9, atol=1e-12,
                             seed=5)
    np.testing.assert_array_equal(again.mean, fc.mean)


def test_a_models_own_mean_field_as_function(model):
    """All draws the same: its trajectory is that of the mean field."""
    fc = odecast.forecast(lambda rng: lambda t, u: model.predict(u), [-1, -1, -1], until=1,
                          step=0.1, draws=2, rtol=1e-10, atol=1e-12, variables=model.variables)
    mean = model.forecast([-1, -1, -1], until=1, step=0.1, field="mean", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fc.mean, mean[0].states, atol=1e-8)
    assert np.all(fc.sd < 1e-12)
    same = odecast.forecast(model, [-1, -1, -1], until=1, step=0.1, draws=20)
    np.testing.assert_array_equal(same.mean, model.forecast([-1, -1, -1], until=1, step=0.1,
                                                            draws=20).mean)


def test_an_object_with_draw_and_answers_of_any_kind():
    class Bag:
        def draw(self, rng):
            return lambda t, u: [u[1], -u[0]]

    fc = odecast.forecast(Bag(), [1, 0], at=[1.0, 2.0], draws=2, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fc.mean[:, 0], np.cos([0, 1, 2]), atol=1e-8)


@pytest.mark.parametrize("answer,error", [
    (lambda t, u: [1.0, 2.0], ValueError), (lambda t, u: None, TypeError),
    (lambda t, u: 1 / 0, ZeroDivisionError),
    (lambda t, u: "no", ValueError)])
def test_a_function_that_fails(answer, error):
    with pytest.raises(error):
        odecast.forecast(lambda rng: answer, [1.0], until=1, step=0.5, draws=4)
    assert odecast.forecast(lambda rng: lambda t, u: -u, [1.0], until=1, step=0.5,
                            draws=4).mean.shape == (3, 1)


def test_what_a_function_needs():
    for options in ({}, {"until": 1}, {"step": 1}):
        with pytest.raises(ValueError):
            odecast.forecast(lambda rng: lambda t, u: -u, [1.0], **options)
    with pytest.raises(ValueError, match="init="):
        odecast.forecast(lambda rng: lambda t, u: -u, until=1, step=1)
    with pytest.raises(TypeError):
        odecast.forecast(3, [1.0], until=1, step=1)


def test_tables(model):
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    fc = model.forecast([-1, -1, -1], until=1, step=0.1, draws=50, samples=7)
    frame = fc.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    np.testing.assert_array_equal(frame["y_upper"], fc.upper[:, 1])
    np.testing.assert_array_equal(frame["t"], fc.times)
    cube = fc.to_xarray()
    assert isinstance(cube, xarray.Dataset) and cube.samples.dims == ("draw", "time", "variable")
    np.testing.assert_array_equal(cube["mean"].sel(variable="z"), fc.mean[:, 2])
    np.testing.assert_array_equal(cube.samples.isel(draw=3), fc.samples[3])


def test_figures(model, test):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fc = model.forecast([-1, -1, -1], until=1, step=0.1, draws=50)
    axes = fc.plot(truth=test, variables=["z", "x"])
    assert [a.get_ylabel() for a in axes] == ["z", "x"]
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), fc.mean[:, 2])
    with pytest.raises(ValueError, match="expected x, y, z"):
        fc.plot(variables=["w"])
    assert fc._repr_html_().count("<svg") == 1
    assert fc.svg(test) != fc.svg()


def test_figures_have_history_and_the_band_of_an_observation():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    data = odecast.simulate("SprottB", until=12, step=0.05, noise=0.05)
    t, u = data[-1].times, data[-1].states
    model = odecast.fit(odecast.read(t[:200], u[:200], variables=data.variables))
    fc = model.forecast(until=12, step=0.05, draws=20)
    rows = odecast.read(t[200:], u[200:], variables=data.variables)
    axis = fc.plot(rows, history=data)[0]
    assert len(axis.collections) == 2  # the bands: of an observation, of the state
    _, past, truth = axis.lines
    assert [line.get_label() for line in axis.lines] == ["median", "history", "truth"]
    assert past.get_xdata()[-1] == fc.times[0]
    assert past.get_xdata()[0] >= 3 * fc.times[0] - 2 * fc.times[-1]
    np.testing.assert_array_equal(truth.get_ydata(), u[200:, 0])


def test_ticks_of_years_are_whole(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fc = odecast.forecast(lambda rng: lambda t, u: -0.1 * u, [1.0], from_=1920, until=1925,
                          step=0.25, draws=4)
    axis = fc.plot()[-1]
    axis.figure.canvas.draw()
    labels = [tick.get_text() for tick in axis.get_xticklabels()]
    assert "1922" in labels and all(float(x) == int(x) for x in labels)
    short = model.forecast([-1, -1, -1], until=1, step=0.1, draws=20).plot()[-1]
    short.figure.canvas.draw()
    assert len(short.get_xticks()) > 3


def test_samples_are_one_array_and_end_with_nan():
    """du/dt = r u² from 1 ends at 1 / r."""

    def blowing(rng):
        rate = rng.uniform(0.2, 2)
        return lambda t, u: rate * u**2

    fc = odecast.forecast(blowing, [1.0], until=2, step=0.1, draws=20, samples=20, blow_up="until")
    assert fc.samples.shape == (20, *fc.mean.shape) and fc.samples.dtype == np.float64
    for k, sample in enumerate(fc.samples):
        rate = np.random.default_rng((1, k)).uniform(0.2, 2)
        alive = np.isfinite(sample[:, 0])
        assert not alive[fc.times > 1 / rate].any()
        safe = fc.times < 0.9 / rate
        np.testing.assert_allclose(sample[safe, 0], 1 / (1 - rate * fc.times[safe]), rtol=0.02)
    assert np.isnan(fc.samples).any()
    none = odecast.forecast(lambda rng: lambda t, u: -u, [1.0], until=1, step=0.5, draws=4,
                            samples=0)
    assert none.samples.shape == (0, 3, 1)


def test_progress(train):
    seen = []
    odecast.fit(train, trainer="adam", batches=60,
                progress=lambda what, fraction: seen.append(fraction))
    assert seen == sorted(seen) and all(0 <= f <= 1 for f in seen)

    def stop(what, fraction):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        odecast.fit(train, trainer="adam", progress=stop)
