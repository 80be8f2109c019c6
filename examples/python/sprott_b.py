# %% [markdown]
# # Sprott B, as in the paper
#
# One trajectory of dx/dt = y z, dy/dt = x - y, dz/dt = 1 - x y is observed; the network learns it
# with dropout and
# forecasts from another start. The paper's settings: no scaling, forward differences, ten hidden
# units.

# %%
import odecast

train = odecast.simulate("SprottB", init=[1, 1, 1], until=10, step=0.002)
test = odecast.simulate("SprottB", init=[-1, -1, -1], until=10, step=0.02)
train

# %% [markdown]
# ## Three dropout rates
# The spread of the draws is set by the rate, not by the amount of data: score the bands before
# relying on them.

# %%
for rate in (0.05, 0.25, 0.5):
    model = odecast.fit(train, scale="none", derivative="forward", dropout=rate)
    fc = model.forecast([-1, -1, -1], until=10, step=0.02, draws=1000, blow_up="until")
    scores = odecast.score(fc, test, system="SprottB")
    print(f"r = {rate}: objective {model.summary['objective']:.7f}, coverage "
          f"{scores['coverage']['all']:.2f}, "
          f"width {scores['width']['all']:.2f}, valid for {scores['vpt']['lyapunov_times']:.2f} "
          f"Lyapunov times")

# The minima that two independent programs found (DESIGN, section 3).
assert abs(odecast.fit(train, scale="none", dropout=0.05).summary["objective"] - 0.23617777) < 1e-7

# %% [markdown]
# ## What was learnt

# %%
model = odecast.fit(train, scale="none", dropout=0.25)
print(model.equations())
model

# %% [markdown]
# ## No Monte Carlo error
# Ten units have 1024 masks: all of them, each with its probability.

# %%
exact = model.forecast([-1, -1, -1], until=10, step=0.02, masks="enumerated")
exact.plot(truth=test)
exact.report("sprott_b.html", truth=test, system="SprottB")
exact

# %% [markdown]
# ## Without dropout, with a better derivative
# Least squares on central differences: the equations themselves.

# %%
plain = odecast.fit(train, dropout=0, derivative="central8", terms="select")
print(plain.equations())
mean = plain.forecast([-1, -1, -1], until=10, step=0.02, field="mean", rtol=1e-8, atol=1e-10)
assert abs(mean[0].states - test[0].states).max() < 1e-3
