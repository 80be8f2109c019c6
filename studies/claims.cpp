#include "studies/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"

namespace odecast {
namespace {

using nlohmann::ordered_json;

struct Rule {
  enum Kind { at_least, below, within } kind;
  double low, high = 0;

  Verdict judge(const Measured& e) const {
    const double margin = 2 * e.se;
    if (!std::isfinite(e.value)) return Verdict::undecided;
    switch (kind) {
      case at_least:
        return e.value - margin >= low  ? Verdict::holds
               : e.value + margin < low ? Verdict::fails
                                        : Verdict::undecided;
      case below:
        return e.value + margin < low    ? Verdict::holds
               : e.value - margin >= low ? Verdict::fails
                                         : Verdict::undecided;
      case within:
        return e.value - margin >= low && e.value + margin <= high ? Verdict::holds
               : e.value + margin < low || e.value - margin > high ? Verdict::fails
                                                                   : Verdict::undecided;
    }
    return Verdict::undecided;
  }
  std::string text() const {
    switch (kind) {
      case at_least: return fmt::format("at least {:.3g}", low);
      case below: return fmt::format("below {:.3g}", low);
      case within: return fmt::format("between {:g} and {:g}", low, high);
    }
    return "";
  }
};

/// Numbers of the cells, as estimates.
class Cells {
 public:
  Cells(const StudyOptions& options, const UnitResults& results)
      : options_(options), results_(results) {}

  /// Mean over seeds. For the exact reading the number itself, with the error over starts if it has
  /// one.
  std::optional<Measured> mean(Reading reading, const StudyCell& cell,
                               const std::string& name) const {
    if (reading == Reading::exact) {
      const auto& numbers = results_.at(cell_key(reading, cell, 0)).numbers;
      const auto found = numbers.find(name);
      if (found == numbers.end()) return std::nullopt;
      const auto error = numbers.find(name + "_se");
      return error == numbers.end() ? Measured{found->second, 0, 1}
                                    : Measured{found->second, error->second, 100};
    }
    std::vector<double> values;
    for (int k = 0; k < options_.adam_seeds; ++k) {
      const auto& numbers = results_.at(cell_key(reading, cell, k)).numbers;
      const auto found = numbers.find(name);
      if (found != numbers.end() && std::isfinite(found->second)) values.push_back(found->second);
    }
    return over(values);
  }

  std::optional<Measured> difference(Reading reading, const StudyCell& cell, const std::string& a,
                                     const std::string& b) const {
    if (reading == Reading::exact) {
      const auto x = mean(reading, cell, a), y = mean(reading, cell, b);
      return Measured{x->value - y->value, 0, 1};
    }
    std::vector<double> values;
    for (int k = 0; k < options_.adam_seeds; ++k) {
      const auto& numbers = results_.at(cell_key(reading, cell, k)).numbers;
      const double d = numbers.at(a) - numbers.at(b);
      if (std::isfinite(d)) values.push_back(d);
    }
    return over(values);
  }

  /// Ratio of means of independent cells, its error to first order.
  std::optional<Measured> ratio(Reading reading, const StudyCell& above, const StudyCell& below,
                                const std::string& name) const {
    const auto a = mean(reading, above, name), b = mean(reading, below, name);
    if (!a || !b) return std::nullopt;
    const double value = a->value / b->value;
    return Measured{value, std::abs(value) * root_sum_square(a->se / a->value, b->se / b->value),
                    std::min(a->n, b->n)};
  }

  static std::optional<Measured> over(const std::vector<double>& values) {
    if (values.size() < 2) return std::nullopt;
    const auto n = static_cast<double>(values.size());
    double mean = 0, square = 0;
    for (const double v : values) mean += v / n;
    for (const double v : values) square += (v - mean) * (v - mean);
    return Measured{mean, std::sqrt(square / (n * (n - 1))), static_cast<int>(values.size())};
  }

 private:
  const StudyOptions& options_;
  const UnitResults& results_;
};

/// Correlation of ranks (Spearman) and its standard error under independence, 1/sqrt(n - 1).
Measured rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto ranks = [](const std::vector<double>& v) {
    std::vector<double> r;
    for (const double x : v) {  // the middle rank of ties
      double below = 0, equal = 0;
      for (const double y : v) below += y < x, equal += y == x;
      r.push_back(below + (equal - 1) / 2);
    }
    return r;
  };
  const auto ra = ranks(a), rb = ranks(b);
  const auto n = static_cast<double>(a.size());
  const double middle = (n - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - middle) * (rb[i] - middle);
    aa += (ra[i] - middle) * (ra[i] - middle);
    bb += (rb[i] - middle) * (rb[i] - middle);
  }
  return {ab / std::sqrt(aa * bb), 1 / std::sqrt(n - 1), static_cast<int>(a.size())};
}

std::string rounded(double value, double se) { return odecast::rounded(Measured{value, se, 0}); }

}  // namespace

std::string rounded(const Measured& e) {
  if (!std::isfinite(e.value)) return "–";
  if (!(e.se > 1e-12 * std::abs(e.value)))
    return std::abs(e.value) >= 1000 ? fmt::format("{:.0f}", e.value)
                                     : fmt::format("{:.3g}", e.value);
  const int digits = std::clamp(1 - static_cast<int>(std::floor(std::log10(e.se))), 0, 6);
  return fmt::format("{:.{}f} ± {:.{}f}", e.value, digits, e.se, digits);
}

std::string study_command(const StudyOptions& o) {
  const StudyOptions full;
  std::string command = "odecast reproduce";
  if (o.adam_seeds == kQuickStudy.adam_seeds && o.batches == kQuickStudy.batches) {
    command += " --quick";
  } else {
    if (o.adam_seeds != full.adam_seeds) command += fmt::format(" --adam-seeds {}", o.adam_seeds);
    if (o.batches != full.batches) command += fmt::format(" --batches {}", o.batches);
  }
  return o.seed == full.seed ? command : command + fmt::format(" --seed {}", o.seed);
}

std::string verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::fails: return "does not hold";
    case Verdict::undecided: return "not decided";
  }
  return "";
}

std::string Claim::verdict() const {
  bool holds = false, fails = false;
  for (const ReadingResult& r : readings) {
    holds = holds || r.verdict == Verdict::holds;
    fails = fails || r.verdict == Verdict::fails;
  }
  if (holds && fails) return "depends on the reading";
  return verdict_name(holds ? Verdict::holds : fails ? Verdict::fails : Verdict::undecided);
}

std::vector<Claim> paper_claims(const Setting& s, const StudyOptions& options,
                                const UnitResults& results) {
  const Cells cells(options, results);
  const StudyCell base{500, 0.25};
  std::vector<Claim> claims;
  const auto add = [&](std::string id, std::string claim, std::string statistic, std::string unit,
                       const Rule& rule, std::optional<double> yardstick, const auto& estimate) {
    Claim c{std::move(id),
            std::move(claim),
            std::move(statistic),
            rule.text(),
            std::move(unit),
            yardstick,
            {}};
    for (std::size_t k = 0; k < 3; ++k) {
      c.readings[k].estimate = estimate(kReadings[k]);
      if (c.readings[k].estimate) c.readings[k].verdict = rule.judge(*c.readings[k].estimate);
    }
    claims.push_back(std::move(c));
  };
  const auto of = [&](StudyCell cell, const char* name) {
    return [&cells, cell, name](Reading r) { return cells.mean(r, cell, name); };
  };
  const auto ratio = [&](StudyCell above, StudyCell below, const char* name) {
    return [&cells, above, below, name](Reading r) { return cells.ratio(r, above, below, name); };
  };
  const double cover = s.yardstick_cover[0], width = s.yardstick_width[0];
  const auto constant_cover = [&](const TestRun& run, double from, double until) {
    double inside = 0, count = 0;
    for (std::size_t k = 0; k < run.times.size(); ++k) {
      if (run.times[k] <= from || run.times[k] > until) continue;
      ++count;
      inside += std::abs(run.truth(static_cast<Eigen::Index>(k), 0) - s.attractor_mean[0]) <=
                1.96 * s.attractor_sd[0];
    }
    return inside / count;
  };

  add("covers", "With r = 0.25 and h = 1/500 the 95 % band contains x(t) on [0, 10].",
      "share of times in (0, 10] at which the band holds x, start (-1,-1,-1)", "share",
      {Rule::at_least, 0.95}, constant_cover(s.short_run, 0, 10), of(base, "short_cover_x"));
  add("covers-starts", "The same holds in general, not for one start only.",
      "the same share, mean over 100 starts on the attractor", "share", {Rule::at_least, 0.95},
      cover, of(base, "starts_cover_x"));
  add("tight", "The band is tight around the test data for a short time.",
      "mean width of x's band on (0, 1]", "width of x", {Rule::below, width / 4}, width,
      of(base, "short_early_width_x"));
  add("smaller-h-tighter", "A smaller h gives a tighter band (1/1000 against 1/250).",
      "mean width on (0, 10] at h = 1/1000 divided by that at 1/250", "ratio", {Rule::below, 1},
      std::nullopt, ratio({1000, 0.25}, {250, 0.25}, "short_width_x"));
  add("smaller-h-longer",
      "A smaller h lengthens the time of accurate predictions (1/1000 against 1/50).",
      "valid time of the band's mean (error below 0.4 sd) at h = 1/1000 divided by that at 1/50",
      "ratio", {Rule::at_least, 1.05}, std::nullopt,
      ratio({1000, 0.25}, {50, 0.25}, "short_valid"));
  for (const int per_unit : {50, 100})
    add(fmt::format("h{}-loses", per_unit),
        fmt::format("With h = 1/{} the band loses the data after t ≈ 6.", per_unit),
        "share of times in (6, 10] at which the band holds x", "share", {Rule::below, 0.95},
        constant_cover(s.short_run, 6, 10), of({per_unit, 0.25}, "short_late_cover_x"));
  add("h5000-broad", "With h = 1/5000 the band is too broad.",
      "mean width on (0, 10] at h = 1/5000 divided by that at 1/1000", "ratio",
      {Rule::at_least, 1.1}, std::nullopt, ratio({5000, 0.25}, {1000, 0.25}, "short_width_x"));
  add("long-range", "Towards t = 100 the band is the range of the attractor.",
      "mean width of x's band on (50, 100], horizon 100, divided by that of the constant band",
      "ratio", {Rule::within, 0.8, 1.25}, 1.0, [&](Reading r) {
        auto e = cells.mean(r, base, "long_width_50_100");
        if (e) e->value /= width, e->se /= width;
        return e;
      });
  add("jagged-discards", "Bands become jagged where many trajectories are discarded.",
      "rank correlation of discards and jaggedness on (50, 100], horizon 100: over seeds; exact: "
      "over "
      "100 starts",
      "correlation", {Rule::at_least, 0}, std::nullopt, [&](Reading r) -> std::optional<Measured> {
        if (r == Reading::exact) {
          const auto& curves = results.at("jaggedness").curves;
          return rank_correlation(curves.at("start_discards"), curves.at("start_jagged"));
        }
        std::vector<double> discards, bends;
        for (const StudyCell& cell : kCells)
          for (int k = 0; k < options.adam_seeds; ++k) {
            const auto& numbers = results.at(cell_key(r, cell, k)).numbers;
            if (cell.r != 0.25 || !std::isfinite(numbers.at("long_jagged"))) continue;
            discards.push_back(numbers.at("long_discard"));
            bends.push_back(numbers.at("long_jagged"));
          }
        if (discards.size() < 3) return std::nullopt;
        return rank_correlation(discards, bends);
      });
  add("jagged-draws", "More trajectories M make the band less jagged.",
      "jaggedness on (50, 100] at M = 16,000 divided by that at M = 250, ten seeds each; exact "
      "optimum",
      "ratio", {Rule::below, 1}, std::nullopt, [&](Reading r) -> std::optional<Measured> {
        if (r != Reading::exact) return std::nullopt;
        const auto& n = results.at("jaggedness").numbers;
        const double value = n.at("jagged_16000") / n.at("jagged_250");
        return Measured{value,
                        value * root_sum_square(n.at("jagged_16000_se") / n.at("jagged_16000"),
                                                n.at("jagged_250_se") / n.at("jagged_250")),
                        10};
      });
  add("r50-covers", "With r = 0.5 the band always holds the data.",
      "share of times in (0, 100] at which the band holds x, horizon 100", "share",
      {Rule::at_least, 0.99}, constant_cover(s.long_run, 0, 100),
      of({500, 0.5}, "long_cover_0_100"));
  add("r50-wide", "With r = 0.5 the band is very wide.",
      "mean width on (0, 100], horizon 100, divided by that at r = 0.25", "ratio",
      {Rule::at_least, 1.5}, std::nullopt, ratio({500, 0.5}, base, "long_width_0_100"));
  add("r5-misses", "With r = 0.05 the band is overconfident and misses peaks until t ≈ 60.",
      "share of times in (0, 60] at which the band holds x, horizon 100", "share",
      {Rule::below, 0.95}, constant_cover(s.long_run, 0, 60), of({500, 0.05}, "long_cover_0_60"));
  add("r5-width", "From t ≈ 60 on the band of r = 0.05 has the width of that of r = 0.25.",
      "mean width on (60, 100], horizon 100, r = 0.05 divided by r = 0.25", "ratio",
      {Rule::within, 0.8, 1.25}, std::nullopt, ratio({500, 0.05}, base, "long_width_60_100"));
  for (const char* other : {"y", "z"})
    add(fmt::format("{}-like-x", other), fmt::format("{} behaves like x.", other),
        fmt::format("cover of {} less cover of x on (0, 10]", other), "difference of shares",
        {Rule::within, -0.05, 0.05}, std::nullopt, [&cells, base, other](Reading r) {
          return cells.difference(r, base, fmt::format("short_cover_{}", other), "short_cover_x");
        });
  add("longer-than-h", "Forecasts are useful for times orders of magnitude longer than h.",
      "valid time of the band's mean (error below 0.4 sd) divided by h = 1/500", "multiples of h",
      {Rule::at_least, 100}, std::nullopt, [&](Reading r) {
        auto e = cells.mean(r, base, "short_valid");
        // The released program's "h = 1/500" is a spacing of 0.02.
        const double h = r == Reading::released ? 0.02 : 0.002;
        if (e) e->value /= h, e->se /= h;
        return e;
      });
  return claims;
}

std::vector<Finding> findings(const Setting& s, const StudyOptions& options,
                              const UnitResults& results) {
  const Cells cells(options, results);
  std::vector<Finding> list;
  const auto number = [](double x) { return rounded(x, 0); };
  const auto shown = [](const std::optional<Measured>& e) {
    return e ? rounded(e->value, e->se) : "–";
  };

  Finding bias{
      "bias",
      "Dropout biases the mean field",
      "The variance term of the dropout objective shrinks the field, so the mean over masks is not "
      "the field the data come from, however many data there are. Sizes are 2-norms, root "
      "mean square over the observed states; yz has the coefficient 1 in truth. The "
      "last column is how long the mean field itself stays within 0.4 sd of the truth.",
      {"r", "objective", "rms of du/dt", "rms bias", "rms sd over masks", "coefficient of yz",
       "valid time / Lyapunov times"},
      {}};
  for (const double r : {0.05, 0.25, 0.5}) {
    const auto& n = results.at(cell_key(Reading::exact, {500, r}, 0)).numbers;
    bias.rows.push_back({fmt::format("{:g}", r), fmt::format("{:.7g}", n.at("objective")),
                         number(n.at("field_rms")), number(n.at("bias_rms")),
                         number(n.at("mask_sd_rms")), number(n.at("yz_coefficient")),
                         number(n.at("mean_field_valid_lyapunov"))});
  }
  list.push_back(std::move(bias));

  Finding minima{
      "minima",
      "The objective has more than one minimum",
      "Best and worst of the minima that eight starts of L-BFGS end in, and where Adam ends "
      "(mean over seeds ± standard error). Adam's seeds scatter between the minima.",
      {"h", "r", "best minimum", "another minimum", "Adam"},
      {}};
  for (const StudyCell& cell : kCells) {
    const auto& n = results.at(cell_key(Reading::exact, cell, 0)).numbers;
    minima.rows.push_back(
        {fmt::format("1/{}", cell.per_unit), fmt::format("{:g}", cell.r),
         fmt::format("{:.7g}", n.at("objective")),
         n.at("minima") > 1 ? fmt::format("{:.7g}", n.at("second_minimum")) : "none",
         shown(cells.mean(Reading::paper, cell, "objective"))});
  }
  list.push_back(std::move(minima));

  Finding steps{
      "h",
      "h hardly matters, at the exact optimum",
      "Cover and mean width of x's band on (0, 10], every mask enumerated. From 1/250 down nothing "
      "changes but the few trajectories near blow-up that set the sd.",
      {"h", "cover", "width", "cover over 100 starts", "discarded by t = 10"},
      {}};
  for (const StudyCell& cell : kCells) {
    if (cell.r != 0.25) continue;
    const auto& n = results.at(cell_key(Reading::exact, cell, 0)).numbers;
    steps.rows.push_back({fmt::format("1/{}", cell.per_unit), number(n.at("short_cover_x")),
                          number(n.at("short_width_x")),
                          shown(cells.mean(Reading::exact, cell, "starts_cover_x")),
                          number(n.at("short_discard"))});
  }
  list.push_back(std::move(steps));

  Finding horizon{
      "horizon",
      "Discarding is not small, and looks ahead",
      "A trajectory is discarded for what it does later, so the band on (0, 10] depends on how far "
      "the forecast goes. Share discarded, and cover and width of x's band on (0, 10], by horizon.",
      {"r", "horizon", "discarded", "cover on (0, 10]", "width on (0, 10]"},
      {}};
  for (const double r : {0.05, 0.25, 0.5})
    for (const int until : {10, 20, 50, 100}) {
      const auto& n = results.at(cell_key(Reading::exact, {500, r}, 0)).numbers;
      const auto at = [&](const char* name) {
        return number(n.at(fmt::format("horizon_{}_{}", until, name)));
      };
      horizon.rows.push_back({fmt::format("{:g}", r), fmt::format("{}", until), at("discard"),
                              at("cover"), at("width")});
    }
  list.push_back(std::move(horizon));

  Finding order{"order",
                "Forward differences err by O(h), not O(h²)",
                "Root mean square error of the estimated derivative on the noise-free training "
                "data, and how often "
                "the paper's σ_γ = h² goes into it.",
                {"h", "rms error", "error / h", "error / h²"},
                {}};
  for (const int per_unit : {50, 100, 250, 500, 1000, 5000}) {
    const double e = results.at("differences").numbers.at(fmt::format("error_{}", per_unit));
    order.rows.push_back({fmt::format("1/{}", per_unit), number(e), number(e * per_unit),
                          number(e * per_unit * per_unit)});
  }
  list.push_back(std::move(order));

  const auto& rough = results.at("tolerance").numbers;
  const auto& fine = results.at(cell_key(Reading::exact, {}, 0)).numbers;
  Finding tolerance{
      "tolerance",
      "The solver tolerance of the training data shows",
      "The text does not say at which tolerance the data were made; SciPy's default is rtol 1e-3. "
      "Exact optimum at h = 1/500, r = 0.25.",
      {"training data", "objective", "cover of x", "width of x", "discarded by t = 10"},
      {}};
  for (const auto& [name, n] : {std::pair{"certified", &fine}, {"RK45, rtol 1e-3", &rough}})
    tolerance.rows.push_back({name, fmt::format("{:.7g}", n->at("objective")),
                              number(n->at("short_cover_x")), number(n->at("short_width_x")),
                              number(n->at("short_discard"))});
  list.push_back(std::move(tolerance));

  const auto& noise = results.at("transition-noise").numbers;
  list.push_back(
      {"epsilon",
       "The transition noise σ_ε = h⁴ changes nothing",
       "Largest change of the band's upper edge on (0, 10] when ε is added at every output time, "
       "same "
       "masks, h = 1/500. At rtol 1e-3 the change is the solver's, whose steps then end at every "
       "output time; at 1e-10 what is left is ε. The study therefore runs without it.",
       {"solver tolerance", "largest change"},
       {{"rtol 1e-3", number(noise.at("change"))},
        {"rtol 1e-10", number(noise.at("change_fine"))}}});

  list.push_back({"yardstick",
                  "What a constant band does",
                  "Mean ± 1.96 sd of the attractor, which knows nothing but the range.",
                  {"variable", "cover", "width"},
                  {}});
  for (int i = 0; i < 3; ++i)
    list.back().rows.push_back({s.system.variables[static_cast<std::size_t>(i)],
                                number(s.yardstick_cover[i]), number(s.yardstick_width[i])});
  return list;
}

std::string claims_json(const Setting& s, const StudyOptions& options,
                        const std::vector<Claim>& claims, const std::vector<Finding>& found) {
  const auto finite = [](double x) {
    return std::isfinite(x) ? ordered_json(x) : ordered_json(nullptr);
  };
  ordered_json rows = ordered_json::array(), notes = ordered_json::array();
  for (const Claim& c : claims) {
    ordered_json readings;
    for (std::size_t k = 0; k < 3; ++k) {
      const ReadingResult& r = c.readings[k];
      ordered_json entry{
          {"value", nullptr}, {"standard_error", nullptr}, {"n", 0}, {"verdict", nullptr}};
      if (r.estimate)
        entry = {{"value", finite(r.estimate->value)},
                 {"standard_error", finite(r.estimate->se)},
                 {"n", r.estimate->n},
                 {"verdict", verdict_name(r.verdict)}};
      readings[reading_name(kReadings[k])] = entry;
    }
    rows.push_back({{"id", c.id},
                    {"claim", c.claim},
                    {"statistic", c.statistic},
                    {"rule", c.rule},
                    {"unit", c.unit},
                    {"yardstick", c.yardstick ? finite(*c.yardstick) : ordered_json(nullptr)},
                    {"readings", readings},
                    {"verdict", c.verdict()}});
  }
  for (const Finding& f : found)
    notes.push_back({{"id", f.id},
                     {"heading", f.heading},
                     {"text", f.text},
                     {"columns", f.columns},
                     {"rows", f.rows}});
  return ordered_json{{"seed", options.seed},
                      {"adam_seeds", options.adam_seeds},
                      {"adam_batches", options.batches},
                      {"starts", s.starts.size()},
                      {"claims", rows},
                      {"findings", notes}}
             .dump(1) +
         "\n";
}

std::string claims_csv(const std::vector<Claim>& claims) {
  std::string csv = "id,reading,value,standard_error,n,verdict,rule,claim,statistic\n";
  for (const Claim& c : claims)
    for (std::size_t k = 0; k < 3; ++k) {
      const ReadingResult& r = c.readings[k];
      csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", c.id, reading_name(kReadings[k]),
                         r.estimate ? fmt::format("{}", r.estimate->value) : "",
                         r.estimate ? fmt::format("{}", r.estimate->se) : "",
                         r.estimate ? r.estimate->n : 0, r.estimate ? verdict_name(r.verdict) : "",
                         csv_cell(c.rule), csv_cell(c.claim), csv_cell(c.statistic));
    }
  return csv;
}

std::string claims_markdown(const std::string& text) {
  const auto json = ordered_json::parse(text);
  const auto number = [](const ordered_json& j) {
    return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
  };
  const auto count = [&](const char* name) { return json.at(name).get<int>(); };
  std::string md = fmt::format(
      "# What of the paper reproduces\n\n"
      "Written by `{}`; do not edit. The paper is Green & Rindler, *Probabilistic solution of "
      "chaotic dynamical system inverse problems using Bayesian Artificial Neural Networks*, §6: "
      "the Sprott B "
      "system learnt from one trajectory of ten time units.\n\n"
      "Three readings stand side by side. `paper` is the text, Algorithms 1 and 2 as printed, with "
      "{} "
      "seeds of Adam for each setting ({} of the paper's 1000 batches of 110 steps). `released` is "
      "the authors' "
      "program, which trains without dropout, pairs each derivative with the state before, takes "
      "the data ten "
      "times coarser than the text says, and draws σ_γ = h instead of h². `exact` is the text's "
      "objective at its "
      "exact minimum with every mask enumerated: no seed, no Monte Carlo error.\n\n"
      "A verdict needs two standard errors. Values are mean ± standard error over seeds (exact: "
      "over starts, where "
      "the statistic is a mean over starts). The yardstick is the same statistic for the constant "
      "band, mean ± "
      "1.96 sd of the attractor.\n\n",
      study_command({.adam_seeds = count("adam_seeds"),
                     .batches = count("adam_batches"),
                     .seed = static_cast<std::uint64_t>(count("seed"))}),
      count("adam_seeds"), count("adam_batches"));
  md +=
      "## Claims\n\n| claim | statistic | holds if | paper | released | exact | yardstick | "
      "verdict |\n"
      "|---|---|---|--:|--:|--:|--:|---|\n";
  for (const auto& c : json.at("claims")) {
    md += fmt::format("| {} | {} | {} |", c.at("claim").get<std::string>(),
                      c.at("statistic").get<std::string>(), c.at("rule").get<std::string>());
    for (const Reading r : kReadings) {
      const auto& e = c.at("readings").at(reading_name(r));
      md += e.at("n") == 0 ? " – |"
                           : fmt::format(" {} |", rounded(number(e.at("value")),
                                                          number(e.at("standard_error"))));
    }
    md += fmt::format(" {} | **{}** |\n",
                      c.at("yardstick").is_null() ? "" : rounded(number(c.at("yardstick")), 0),
                      c.at("verdict").get<std::string>());
  }
  md += "\n## What the text leaves out\n";
  for (const auto& f : json.at("findings")) {
    md += fmt::format("\n### {}\n\n{}\n\n|", f.at("heading").get<std::string>(),
                      f.at("text").get<std::string>());
    for (const auto& column : f.at("columns"))
      md += fmt::format(" {} |", column.get<std::string>());
    md += "\n|";
    for (std::size_t i = 0; i < f.at("columns").size(); ++i) md += "--:|";
    md += "\n";
    for (const auto& row : f.at("rows")) {
      md += "|";
      for (const auto& cell : row) md += fmt::format(" {} |", cell.get<std::string>());
      md += "\n";
    }
  }
  return md;
}

}  // namespace odecast
