#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast::cli {
namespace {

int run(const Arguments& a) {
  const Model model = load_model(a.positional(0));
  warn_of(a, model);
  const Vector u = to_vector(a.numbers("--at"));
  const auto arguments = model.arguments();
  if (u.size() != static_cast<Eigen::Index>(arguments.size()))
    throw_usage({"option --at", fmt::format("{} values", u.size()),
                 fmt::format("{} ({})", arguments.size(), fmt::join(arguments, ", ")),
                 "Give one value for each."});
  const double level = a.number("--level");
  if (!(level > 0 && (1 + level) / 2 < 1))
    throw_usage(
        {"option --level", a.text("--level"), "a number between 0 and 1", "0.95 is usual."});
  const auto owned = make_posterior(model);
  const Posterior& posterior = *owned;
  const Vector v = model.to_model(u);
  Moments m;
  if (a.given("--draws")) {
    const auto draws = static_cast<int>(a.whole("--draws", 2, 1'000'000'000));
    m = sampled_moments(posterior, v, draws, a.seed(), progress(a));
  } else {
    m = posterior.moments(v);
  }
  const auto [mean, sd] = prediction(model, m);
  const double c = normal_quantile((1 + level) / 2);
  if (a.json()) {
    Json j;
    for (Eigen::Index i = 0; i < mean.size(); ++i)
      j[model.variables[static_cast<std::size_t>(i)]] = {{"mean", mean[i]},
                                                         {"sd", sd[i]},
                                                         {"lower", mean[i] - c * sd[i]},
                                                         {"upper", mean[i] + c * sd[i]}};
    put_json(Json{{model.kind == ModelKind::map ? "next" : "derivative", j}, {"level", level}});
    return kDone;
  }
  put("{:<12} {:>12} {:>12} {:>12} {:>12}\n", "", "mean", "sd", "lower", "upper");
  for (Eigen::Index i = 0; i < mean.size(); ++i)
    put("{:<12} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g}\n",
        printable(model.left_side(model.variables[static_cast<std::size_t>(i)])), mean[i], sd[i],
        mean[i] - c * sd[i], mean[i] + c * sd[i]);
  return kDone;
}

}  // namespace

Command predict_command() {
  return {"predict",
          "du/dt at a state, with its spread",
          "Gives mean, standard deviation and interval of du/dt (of a map: of the next state) over "
          "the draws of the\n"
          "model: exactly where a closed form exists, or from K sampled draws as in the paper.",
          "odecast predict model.json --at=-1,-1,-1",
          {{"MODEL", "file written by odecast fit"}},
          with_common({
              {"--at", "A,B,…", "the state, and behind it the inputs of a driven system", ""},
              {"--draws", "K", "sample K draws (default: exact)", ""},
              {"--level", "P", "confidence level of the interval", "0.95"},
              seed_option(),
          }),
          run};
}

}  // namespace odecast::cli
