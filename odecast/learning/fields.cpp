#include "odecast/learning/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/field/dictionary.hpp"

namespace odecast {
namespace {

// Places in the options, null where the method has none.

DropoutMethod* network(FitOptions& o) {
  if (auto* m = std::get_if<DropoutMethod>(&o.method)) return m;
  if (auto* m = std::get_if<EnsembleMethod>(&o.method)) return &m->member;
  return nullptr;
}

RowOptions* rows(FitOptions& o) {
  if (auto* m = std::get_if<RegressionMethod>(&o.method)) return &m->rows;
  if (auto* m = std::get_if<BootstrapMethod>(&o.method)) return &m->rows;
  DropoutMethod* m = network(o);
  return m ? &m->rows : nullptr;
}

template <class M>
M* only(FitOptions& o) {
  return std::get_if<M>(&o.method);
}

template <class T>
using Place = std::function<T*(FitOptions&)>;

/// The member of a part of the options: of(network, &DropoutMethod::hidden).
template <class Part, class T>
Place<T> of(Part* (*part)(FitOptions&), T Part::*member) {
  return [=](FitOptions& o) -> T* {
    Part* found = part(o);
    return found ? &(found->*member) : nullptr;
  };
}

int* degree_of(FitOptions& o) {
  if (DropoutMethod* m = network(o)) return &m->degree;
  return std::visit(
      [](auto& m) -> int* {
        if constexpr (requires { m.degree; })
          return &m.degree;
        else
          return nullptr;
      },
      o.method);
}

bool* select_of(FitOptions& o) {
  if (auto* m = only<RegressionMethod>(o)) return &m->select_terms;
  if (auto* m = only<BootstrapMethod>(o)) return &m->select_terms;
  if (auto* m = only<DropoutMethod>(o)) return &m->select_terms;
  return nullptr;
}

// Fields of each type. `place` may be called for options that are not to change.

template <class T, class Read, class Write>
void bind(Field& field, Place<T> place, Read read, Write write) {
  field.get = [=](const FitOptions& o) -> std::optional<std::string> {
    const T* at = place(const_cast<FitOptions&>(o));
    return at ? std::optional<std::string>(write(*at)) : std::nullopt;
  };
  field.set = [=](FitOptions& o, const std::string& text) { *place(o) = read(text); };
}

[[noreturn]] void refuse(const std::string& name, const std::string& found,
                         const std::string& expected, const std::string& remedy) {
  throw_usage({"`" + name + "`", shown(found), expected, remedy});
}

Field flag(std::string name, std::string help, std::string group, Place<bool> place) {
  Field f{.name = name, .type = FieldType::flag, .value = "", .help = help, .group = group};
  bind(
      f, place,
      [name](const std::string& text) {
        if (text != "yes" && text != "no") refuse(name, text, "yes or no", "Leave it out for no.");
        return text == "yes";
      },
      [](bool on) { return std::string(on ? "yes" : "no"); });
  f.initial = "no";
  return f;
}

/// A word may stand for 0.
Field whole(std::string name, std::string value, std::string help, std::string group,
            std::string initial, long low, long high, Place<int> place, std::string word = {}) {
  Field f{.name = name,
          .type = FieldType::whole,
          .value = value,
          .help = help,
          .initial = initial,
          .group = group};
  if (!word.empty()) f.choices = {word};
  bind(
      f, place,
      [=](const std::string& text) {
        if (!word.empty() && text == word) return 0;
        long result = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
        if (error != std::errc{} || end != text.data() + text.size() || result < low ||
            result > high)
          refuse(name, text,
                 fmt::format("a whole number from {} to {}{}", low, high,
                             word.empty() ? "" : ", or " + word),
                 "Give a number in that range.");
        return static_cast<int>(result);
      },
      [=](int x) { return !word.empty() && x == 0 ? word : fmt::format("{}", x); });
  return f;
}

double number_in(const std::string& name, const std::string& text) {
  const auto x = parse_number(text);
  if (!x || !std::isfinite(*x)) refuse(name, text, "a finite number", "Give a number such as 0.5.");
  return *x;
}

Field number(std::string name, std::string value, std::string help, std::string group,
             std::string initial, Place<double> place) {
  Field f{.name = name,
          .type = FieldType::number,
          .value = value,
          .help = help,
          .initial = initial,
          .group = group};
  bind(
      f, place, [name](const std::string& text) { return number_in(name, text); },
      [](double x) { return format_number(x); });
  return f;
}

template <class T>
Field choice(std::string name, std::string value, std::string help, std::string group,
             std::string initial, std::vector<std::pair<std::string, T>> words, Place<T> place) {
  Field f{.name = name,
          .type = FieldType::choice,
          .value = value,
          .help = help,
          .initial = initial,
          .group = group};
  for (const auto& [word, _] : words) f.choices.push_back(word);
  bind(
      f, place,
      [name, words, all = f.choices](const std::string& text) {
        for (const auto& [word, x] : words)
          if (word == text) return x;
        refuse(name, text, fmt::format("one of {}", fmt::join(all, ", ")), "Use one of these.");
      },
      [words](const T& x) {
        for (const auto& [word, y] : words)
          if (y == x) return word;
        return std::string();
      });
  return f;
}

template <class Names, class FromName>
auto named(const Names& names, const FromName& from_name) {
  std::vector<std::pair<std::string, std::decay_t<decltype(*from_name(""))>>> words;
  for (const char* name : names) words.emplace_back(name, *from_name(name));
  return words;
}

template <class T>
std::string list_text(const T& values) {
  std::string text;
  for (const auto& x : values) text += (text.empty() ? "" : ",") + fmt::format("{}", x);
  return text;
}

std::vector<double> numbers_in(const std::string& name, const std::string& text) {
  std::vector<double> values;
  const auto words = split_list(text);
  for (const auto& word : words ? *words : std::vector<std::string>{text}) {
    const auto x = parse_number(word);
    if (!x || !std::isfinite(*x))
      refuse(name, word, "finite numbers separated by commas", "For example 0.1,0.2.");
    values.push_back(*x);
  }
  return values;
}

constexpr std::string_view kNoFunctions = "none";

std::vector<std::string> function_kinds_in(const std::string& text) {
  if (text == kNoFunctions) return {};
  std::vector<std::string> known = {std::string(kAutomaticFunctions)};
  for (const FunctionKind& kind : function_kinds()) known.emplace_back(kind.name);
  const auto words = split_list(text);
  for (const auto& word : words ? *words : std::vector<std::string>{text})
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      const auto nearest =
          std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
            return edit_distance(word, a) < edit_distance(word, b);
          });
      refuse("functions", word, fmt::format("{}, or none", fmt::join(known, ", ")),
             fmt::format("Did you mean {}? Terms of other forms are given by `candidates`.",
                         *nearest));
    }
  return *words;
}

/// Separated by commas that stand in no brackets and no quotes.
std::vector<std::string> expressions_in(const std::string& text) {
  std::vector<std::string> texts = {""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote ? c == quote : c == '"' || c == '`') quote = quote ? char{0} : c;
    if (!quote && c == '(') ++depth;
    if (!quote && c == ')') --depth;
    if (!quote && depth == 0 && c == ',')
      texts.emplace_back();
    else
      texts.back() += c;
  }
  for (std::string& one : texts) {
    const auto first = one.find_first_not_of(" \t"), last = one.find_last_not_of(" \t");
    if (first == one.npos)
      refuse("candidates", text, "expressions separated by commas",
             "For example 'sin(theta), x*y/(k + x)'.");
    one = one.substr(first, last - first + 1);
  }
  return texts;
}

std::vector<Phase> schedule_in(const std::string& text) {
  std::vector<Phase> schedule;
  for (const auto& word : split(text, ',')) {
    const auto at = word.find('@');
    const auto steps = parse_number(word.substr(0, at));
    const auto rate = at == word.npos ? std::nullopt : parse_number(word.substr(at + 1));
    if (!steps || !rate || !(*steps >= 1 && *steps <= 1e9) || *steps != std::floor(*steps))
      refuse("schedule", word, "STEPS@RATE, separated by commas",
             "The paper's is 10@0.01,100@0.001.");
    schedule.push_back({static_cast<int>(*steps), *rate});
  }
  return schedule;
}

std::string schedule_text(const std::vector<Phase>& schedule) {
  std::string text;
  for (const Phase& p : schedule)
    text += fmt::format("{}{}@{}", text.empty() ? "" : ",", p.steps, p.rate);
  return text;
}

template <class T>
std::function<T*(FitOptions&)> common(T FitOptions::*member) {
  return [=](FitOptions& o) { return &(o.*member); };
}

Place<std::vector<std::string>> wishes(std::vector<std::string> FunctionWishes::*member) {
  return [=](FitOptions& o) -> std::vector<std::string>* {
    return std::visit(
        [=](auto& m) -> std::vector<std::string>* {
          if constexpr (requires { m.functions; })
            return &(m.functions.*member);
          else
            return nullptr;
        },
        o.method);
  };
}

template <class T>
Place<T> training(T TrainOptions::*member) {
  return [=](FitOptions& o) -> T* {
    DropoutMethod* m = network(o);
    return m ? &(m->training.*member) : nullptr;
  };
}
Place<double> forward(double ForwardDifferenceOptions::*member) {
  return [=](FitOptions& o) -> double* {
    RowOptions* r = rows(o);
    return r ? &(r->forward.*member) : nullptr;
  };
}

// What some fields wait for. `o` has the method that has the field.

const DropoutMethod& net(const FitOptions& o) { return *network(const_cast<FitOptions&>(o)); }

std::string no_layers(const FitOptions& o) { return net(o).layers.empty() ? "" : "no `layers`"; }
std::string exact_trainer(const FitOptions& o) { return net(o).exact() ? "" : "`trainer=exact`"; }
std::string a_schedule(const FitOptions& o) {
  return net(o).exact() ? "`trainer=adam` or sgd" : "";
}
std::string a_flow(const FitOptions& o) { return o.kind == ModelKind::flow ? "" : "`kind=flow`"; }
std::string forward_differences(const FitOptions& o) {
  if (o.kind != ModelKind::flow) return "`kind=flow`";
  return rows(const_cast<FitOptions&>(o))->derivative == DerivativeMethod::forward
             ? ""
             : "`derivative=forward`";
}

constexpr const char *kMain = "", *kTrajectory = "The default method (`posterior=trajectory`)",
                     *kRows = "Methods that learn from rows (all but trajectory)",
                     *kNetwork =
                         "The paper's network (`dropout`, `posterior=dropout`) and ensembles",
                     *kSchedule = "Its schedule (`trainer=adam`, sgd)";

std::vector<Field> make_fields() {
  const FitOptions defaults;
  const DropoutMethod dropout;
  std::vector<Field> all;
  const auto add = [&all](Field f) -> Field& { return all.emplace_back(std::move(f)); };

  Field method{.name = "posterior",
               .type = FieldType::choice,
               .value = "WHAT",
               .choices = {"auto"},
               .help = "how to learn, and where the spread comes from. ",
               .initial = "auto",
               .group = kMain};
  for (const auto& [name, what] : kMethodNames) {
    method.choices.emplace_back(name);
    method.help += fmt::format("{}: {}; ", name, what);
  }
  method.help +=
      "auto: trajectory, but regression for maps and with `terms` or `gap`, and dropout with "
      "options of networks or derivatives";
  method.get = [](const FitOptions& o) { return std::string(method_name(o.method)); };
  method.set = [](FitOptions&, const std::string&) {};  // fit_options() begins with it
  add(method);
  add(whole(
          "degree", "P",
          "degree of the candidate terms, or of the polynomial kernel; auto: that of the most "
          "evidence, and by the trajectory posterior one more where that leaves motion unexplained",
          kMain, "2", 1, 20, degree_of, "auto"))
      .needs = [](const FitOptions& o) {
    const DropoutMethod* m = network(const_cast<FitOptions&>(o));
    return !m || m->layers.empty() || m->activation == Activation::power
               ? ""
               : "no `layers`, or `activation=power`";
  };
  add(number("dropout", "R",
             "the paper's network, with dropout rate R in [0, 1): it sets the spread of the draws "
             "(0.25 where `posterior=dropout` comes without it)",
             kMain, "", of(&only<DropoutMethod>, &DropoutMethod::dropout)));
  Field noise{.name = "noise",
              .type = FieldType::numbers,
              .value = "S,…",
              .help =
                  "sd of the observation noise, one or one per variable, in the units of the data "
                  "(default: estimated); or how it is estimated: constant, relative (part of it "
                  "grows with the state), log (that of the logarithm, for counts and what is "
                  "positive), auto (relative or log where the data ask for it)",
              .group = kMain};
  constexpr std::pair<const char*, NoiseLaw> laws[] = {{"auto", NoiseLaw::automatic},
                                                       {"constant", NoiseLaw::constant},
                                                       {"relative", NoiseLaw::relative},
                                                       {"log", NoiseLaw::logarithmic}};
  for (const auto& [word, law] : laws) noise.choices.push_back(word);
  noise.get = [laws](const FitOptions& o) -> std::optional<std::string> {
    if (o.noise.size() > 0 || o.noise_law == NoiseLaw::automatic) return list_text(o.noise);
    return laws[static_cast<std::size_t>(o.noise_law)].first;
  };
  noise.set = [laws](FitOptions& o, const std::string& text) {
    o.noise = {};
    for (const auto& [word, law] : laws)
      if (text == word) {
        o.noise_law = law;
        return;
      }
    const auto values = numbers_in("noise", text);
    o.noise = Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
  };
  add(noise);
  add(choice<ModelKind>("kind", "WHAT",
                        "flow: learn du/dt; map: learn the next row from each, in discrete time",
                        kMain, "flow", {{"flow", ModelKind::flow}, {"map", ModelKind::map}},
                        common(&FitOptions::kind)));
  add(choice<bool>("between", "HOW", "inputs between rows: linear, or held until the next row",
                   kMain, "linear", {{"linear", false}, {"held", true}},
                   common(&FitOptions::hold_inputs)));

  Field positive{.name = "positive",
                 .type = FieldType::text,
                 .value = "NAMES",
                 .help =
                     "variables that are known to be positive, or all: draws that go below 0 are "
                     "left out, and bands end there",
                 .bare = std::string(kAllPositive),
                 .group = kMain};
  bind<std::vector<std::string>>(
      positive, common(&FitOptions::positive),
      [](const std::string& text) {
        if (text == "no" || text == "False") return std::vector<std::string>();
        const auto names = split_list(text == "True" ? std::string(kAllPositive) : text);
        if (!names || names->empty())
          refuse("positive", text, "names separated by commas, or all", "For example all.");
        return *names;
      },
      [](const std::vector<std::string>& names) { return list_text(names); });
  add(positive);
  Field embed{.name = "embed",
              .type = FieldType::text,
              .value = "HOW",
              .help =
                  "make several variables of the one that was measured: delays:N, its values at N "
                  "times up to now; derivatives:N, with its first N - 1 derivatives; auto, that of "
                  "the least energy score on held-out rows",
              .group = kMain};
  bind<std::optional<EmbeddingChoice>>(
      embed, common(&FitOptions::embed),
      [](const std::string& text) {
        if (text == "auto") return std::optional(EmbeddingChoice{.automatic = true});
        const auto found = embedding_from_name(text);
        if (!found)
          refuse("embed", text, "delays:N or derivatives:N, N from 2 to 9, or auto",
                 "For example delays:3.");
        return std::optional(EmbeddingChoice{.automatic = false, .embedding = *found});
      },
      [](const std::optional<EmbeddingChoice>& e) {
        return !e ? std::string() : e->automatic ? "auto" : embedding_name(e->embedding);
      });
  add(embed);

  Field functions{.name = "functions",
                  .type = FieldType::text,
                  .value = "WORD,…",
                  .help =
                      "functions that are offered to the search beside powers (without this "
                      "option none), with numbers inside where they have some (regression and "
                      "bootstrap take those without), or auto for all: ",
                  .group = kTrajectory};
  for (const FunctionKind& kind : function_kinds())
    functions.help += fmt::format("{} ({}), ", kind.name, kind.meaning);
  functions.help.resize(functions.help.size() - 2);
  bind<std::vector<std::string>>(
      functions, wishes(&FunctionWishes::kinds), function_kinds_in,
      [](const std::vector<std::string>& kinds) { return list_text(kinds); });
  add(functions);
  Field candidates{.name = "candidates",
                   .type = FieldType::text,
                   .value = "TERM,…",
                   .help =
                       "further terms for the search, separated by commas, such as "
                       "'sin(theta), x*y/(k + x)'; a name that is no column is a number to "
                       "estimate (not by regression and bootstrap)",
                   .group = kTrajectory};
  bind<std::vector<std::string>>(
      candidates, wishes(&FunctionWishes::candidates), expressions_in,
      [](const std::vector<std::string>& texts) { return list_text(texts); });
  add(candidates);
  add(flag("robust", "Huber weights against outliers", kTrajectory,
           of(&only<TrajectoryMethod>, &TrajectoryMethod::robust)));

  add(choice<DerivativeMethod>(
          "derivative", "HOW",
          "how derivatives are taken from the data: forward (the paper's, of networks the "
          "default); "
          "central2 … central8 for clean data; savgol, spline smooth; weak integrates instead (of "
          "regression and bootstrap the default); auto tries them on held-out rows",
          kRows, "",
          named(std::array{"forward", "central2", "central4", "central6", "central8", "savgol",
                           "spline", "weak", "auto"},
                derivative_from_name),
          of(&rows, &RowOptions::derivative)))
      .needs = a_flow;
  add(number("gap", "T",
             "a longer spacing is a gap that nothing crosses (default: 30 times the usual spacing "
             "of the trajectory)",
             kRows, "", of(&rows, &RowOptions::gap)))
      .needs = a_flow;
  add(choice<bool>("terms", "WHICH",
                   "select: only terms that the data support (of regression and bootstrap the "
                   "default; for dropout it needs `dropout=0`); all: every term",
                   kRows, "", {{"all", false}, {"select", true}}, select_of));
  add(choice<ScaleKind>("scale", "WHAT",
                        "standardise variables inside, or not (the paper's setting)", kRows,
                        "standard", {{"standard", ScaleKind::standard}, {"none", ScaleKind::none}},
                        of(&rows, &RowOptions::scale)));
  add(number("noise_factor", "C", "error of forward derivatives: C·h^M (paper: h²), in model units",
             kRows, format_number(dropout.rows.forward.noise_factor),
             forward(&ForwardDifferenceOptions::noise_factor)))
      .needs = forward_differences;
  add(number("noise_order", "M", "the M of that", kRows,
             format_number(dropout.rows.forward.noise_order),
             forward(&ForwardDifferenceOptions::noise_order)))
      .needs = forward_differences;
  add(whole("replicates", "N", "of the bootstrap: how often the rows are drawn again", kRows,
            fmt::format("{}", BootstrapMethod{}.replicates), 2, 100'000,
            of(&only<BootstrapMethod>, &BootstrapMethod::replicates)));

  add(whole("hidden", "K",
            "hidden units of the polynomial kernel; auto: one per monomial (10 for three variables "
            "at degree 2)",
            kNetwork, "auto", 1, 100'000, of(&network, &DropoutMethod::hidden), "auto"))
      .needs = no_layers;
  add(flag("rescale", "divide masks by 1 - r (the paper does not)", kNetwork,
           of(&only<DropoutMethod>, &DropoutMethod::rescale)));
  Field layers{.name = "layers",
               .type = FieldType::numbers,
               .value = "A,B,…",
               .help =
                   "a general network with these hidden layers instead of the polynomial "
                   "kernel; no equations, same forecasts",
               .group = kNetwork};
  bind<std::vector<int>>(
      layers, of(&network, &DropoutMethod::layers),
      [](const std::string& text) {
        std::vector<int> units;
        for (const double x : numbers_in("layers", text)) {
          if (!(x >= 1 && x <= 1'000'000) || x != std::floor(x))
            refuse("layers", format_number(x), "whole numbers from 1 to 1000000",
                   "For example 32,32.");
          units.push_back(static_cast<int>(x));
        }
        return units;
      },
      [](const std::vector<int>& v) { return list_text(v); });
  add(layers);
  add(choice<Activation>("activation", "NAME", "of those layers", kNetwork, "tanh",
                         named(std::array{"identity", "power", "tanh", "sigmoid", "relu", "sin"},
                               activation_from_name),
                         of(&network, &DropoutMethod::activation)))
      .needs = [](const FitOptions& o) { return net(o).layers.empty() ? "`layers`" : ""; };
  add(choice<Trainer>("trainer", "NAME",
                      "exact: L-BFGS on the exact objective, for polynomial kernels; adam, sgd: "
                      "the paper's schedule; auto: exact, or adam with `layers`",
                      kNetwork, "auto",
                      {{"auto", Trainer::automatic},
                       {"exact", Trainer::exact},
                       {"adam", Trainer::adam},
                       {"sgd", Trainer::sgd}},
                      of(&network, &DropoutMethod::trainer)));
  add(whole("starts", "N", "starting points of the exact trainer, the best is kept", kNetwork,
            fmt::format("{}", dropout.starts), 1, 100'000,
            of(&only<DropoutMethod>, &DropoutMethod::starts)))
      .needs = exact_trainer;
  add(whole("max_iterations", "N", "of the exact trainer, per start", kNetwork,
            fmt::format("{}", dropout.max_iterations), 1, 1'000'000'000,
            of(&only<DropoutMethod>, &DropoutMethod::max_iterations)))
      .needs = exact_trainer;
  add(whole("members", "N", "networks of the ensemble", kNetwork,
            fmt::format("{}", EnsembleMethod{}.members), 2, 1000,
            of(&only<EnsembleMethod>, &EnsembleMethod::members)));

  const TrainOptions& t = dropout.training;
  add(whole("batches", "N", "how often the targets are drawn anew", kSchedule,
            fmt::format("{}", t.batches), 1, 1'000'000'000, training(&TrainOptions::batches)))
      .needs = a_schedule;
  Field phases{.name = "schedule",
               .type = FieldType::text,
               .value = "S@A,…",
               .help = "for each batch S steps at learning rate A, and so on",
               .initial = schedule_text(t.schedule),
               .group = kSchedule};
  bind<std::vector<Phase>>(phases, training(&TrainOptions::schedule), schedule_in, schedule_text);
  add(phases).needs = a_schedule;
  add(whole("noise_samples", "B", "draws of the derivative noise per row and batch", kSchedule,
            fmt::format("{}", t.noise_samples), 1, 1'000'000,
            training(&TrainOptions::noise_samples)))
      .needs = a_schedule;
  const auto of_masks = [](auto place) {  // an ensemble has none
    return [place](FitOptions& o) { return only<DropoutMethod>(o) ? place(o) : nullptr; };
  };
  add(whole("masks", "K", "masks averaged in each step", kSchedule, fmt::format("{}", t.masks), 1,
            1'000'000, of_masks(training(&TrainOptions::masks))))
      .needs = a_schedule;
  add(choice<bool>("mask_per", "WHAT", "a mask for each row, or one for all rows of a step",
                   kSchedule, "row", {{"row", false}, {"batch", true}},
                   of_masks(training(&TrainOptions::mask_per_batch))))
      .needs = a_schedule;

  add(whole("keep_rows", "N",
            "rows of the last trajectory that the model keeps, for pictures of forecasts after "
            "them: the last N, before them every 2nd, 4th, … of as many each; none: the model "
            "holds no rows",
            kMain, fmt::format("{}", defaults.keep_rows), 1, 100'000,
            common(&FitOptions::keep_rows), "none"));
  Field seed{.name = "seed",
             .type = FieldType::whole,
             .value = "N",
             .help = "seed of all random numbers; same seed, same bytes",
             .initial = fmt::format("{}", defaults.seed),
             .group = kMain};
  bind<std::uint64_t>(
      seed, common(&FitOptions::seed),
      [](const std::string& text) {
        std::uint64_t result = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
        if (error != std::errc{} || end != text.data() + text.size())
          refuse("seed", text, "a whole number >= 0 below 2^64", "Give a number such as 1.");
        return result;
      },
      [](std::uint64_t x) { return fmt::format("{}", x); });
  add(seed);
  Field budget{.name = "budget",
               .type = FieldType::number,
               .value = "SECONDS",
               .help =
                   "end after that time with what was found, exit code 1 (default: after an "
                   "amount of work, about ten seconds' for most data, that is the same on "
                   "every machine)",
               .group = kMain};
  bind<std::optional<double>>(
      budget, common(&FitOptions::budget),
      [](const std::string& text) {
        const double seconds = number_in("budget", text);
        if (!(seconds > 0))
          refuse("budget", text, "seconds > 0", "Leave it out for the default bound on work.");
        return std::optional(seconds);
      },
      [](const std::optional<double>& s) { return s ? format_number(*s) : std::string(); });
  add(budget);
  return all;
}

/// The method of that name with its defaults; the first where none has it.
Method method_of(std::string_view word) {
  Method method;
  const auto take = [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((kMethodNames[I].name == word ? void(method.emplace<I>()) : void()), ...);
  };
  take(std::make_index_sequence<kMethodNames.size()>());
  return method;
}

/// What the given values ask for where nothing names a method.
std::string chosen_method(const std::map<std::string, std::string>& given) {
  bool of_network = false, of_rows = false;
  for (const Field& f : fit_fields()) {
    const auto found = given.find(f.name);
    if (found == given.end() || (!f.initial.empty() && found->second == f.initial)) continue;
    of_network = of_network || f.group == kNetwork || f.group == kSchedule || f.name == "dropout" ||
                 f.name == "scale" || f.name == "derivative" || f.name == "noise_factor" ||
                 f.name == "noise_order";
    of_rows = of_rows || f.name == "terms" || f.name == "gap" ||
              (f.name == "kind" && found->second == "map");
  }
  return of_network ? "dropout" : of_rows ? "regression" : "trajectory";
}

/// The methods that have a field, for a message.
std::string methods_with(const Field& f) {
  std::string names;
  for (const auto& [name, what] : kMethodNames)
    if (f.get(FitOptions{.method = method_of(name)}))
      names += fmt::format(fmt::runtime(names.empty() ? "`posterior={}`" : ", {}"), name);
  return names;
}

}  // namespace

const std::vector<Field>& fit_fields() {
  static const std::vector<Field> fields = make_fields();
  return fields;
}

FitOptions fit_options(const std::map<std::string, std::string>& given) {
  for (const auto& entry : given)
    if (std::none_of(fit_fields().begin(), fit_fields().end(),
                     [&](const Field& f) { return f.name == entry.first; }))
      throw_usage(
          {"`" + entry.first + "`", "an unknown name", "a setting of fit", "See its help."});
  const auto word = given.find("posterior");
  const bool named = word != given.end() && word->second != "auto";
  FitOptions o{.method = method_of(named ? word->second : chosen_method(given))};
  for (const Field& f : fit_fields()) {
    const auto found = given.find(f.name);
    if (found == given.end()) continue;
    const bool initial = !f.initial.empty() && found->second == f.initial;
    if (f.get(o)) {
      f.set(o, found->second);
    } else if (!initial) {
      throw_usage({"`" + f.name + "`",
                   fmt::format("it without effect by `posterior={}`", method_name(o.method)),
                   methods_with(f), "Remove the option, or add what it needs."});
    }
  }
  if (const int* degree = degree_of(o); degree && *degree == kAutomaticDegree && network(o))
    throw_usage({"`degree`", fmt::format("auto with `posterior={}`", method_name(o.method)),
                 "`posterior=trajectory`, regression or bootstrap",
                 "Degrees are compared by the evidence: have one of these choose it, then give it "
                 "here."});
  for (const Field& f : fit_fields()) {
    const auto found = given.find(f.name);
    if (found == given.end() || !f.get(o) || found->second == f.initial) continue;
    if (const std::string needs = f.needs(o); !needs.empty())
      throw_usage({"`" + f.name + "`", "it without effect here", needs,
                   "Remove the option, or add what it needs."});
  }
  return o;
}

Settings settings(const FitOptions& options) {
  Settings list;
  for (const Field& f : fit_fields())
    if (const auto value = f.get(options); value && !value->empty() && f.needs(options).empty())
      list.emplace_back(f.name, *value);
  return list;
}

}  // namespace odecast
