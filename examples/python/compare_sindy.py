# needs: pysindy
# %% [markdown]
# # Beside SINDy
#
# The same noisy data for both. PySINDy (`pip install pysindy`) finds sparse equations; an ensemble
# of them is a
# posterior like any other, so that `odecast.forecast` draws from it and the scores compare like
# with like.

# %%
import numpy as np
import pysindy

import odecast

data = odecast.simulate("Lorenz", until=12, step=0.01, noise=0.005, seed=3)
truth = odecast.simulate("Lorenz", until=2, step=0.01)
run = data[0]
start = truth[0].states[0]

# %%
ours = odecast.fit(data)
print(ours.equations())

# %% [markdown]
# Bootstrap: SINDy on random stretches of the data.

# %%
def sindy(rng):
    first = rng.integers(0, len(run.times) - 900)
    part = slice(first, first + 900)
    model = pysindy.SINDy(optimizer=pysindy.STLSQ(threshold=0.1),
                          feature_library=pysindy.PolynomialLibrary(degree=2),
                          differentiation_method=pysindy.SmoothedFiniteDifference())
    model.fit(run.states[part], t=run.times[part])
    coefficients, powers = model.coefficients(), np.array([
        [1 if name == v else 2 if name == f"{v}^2" else int(v in name.split()) for v in ("x0", "x1",
                                                                                         "x2")]
        for name in model.get_feature_names()])
    return coefficients, powers


rng = np.random.default_rng(1)
ensemble = [sindy(rng) for _ in range(10)]


def draw(rng):
    coefficients, powers = ensemble[rng.integers(len(ensemble))]
    return lambda t, u: coefficients @ np.prod(u**powers, axis=1)


# %%
theirs = odecast.forecast(draw, start, until=2, step=0.01, draws=20, variables=["x", "y", "z"])
mine = ours.forecast(start, until=2, step=0.01, draws=20)
for name, fc in (("SINDy", theirs), ("odecast", mine)):
    scores = odecast.score(fc, truth, system="Lorenz")
    print(f"{name}: rmse {scores['rmse']['all']:.3g}, valid for {scores['vpt']['time']:.2f} time "
          f"units")
assert odecast.score(mine, truth)["rmse"]["all"] < 1
