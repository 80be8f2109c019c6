#include "odecast/model/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/text.hpp"
#include "odecast/field/polynomial.hpp"

namespace odecast {
namespace {

using Json = nlohmann::ordered_json;
/// 2: maps and inputs; 3: trajectory posteriors; 4: other sets of coefficients, ensembles; 5:
/// trajectory posteriors with inputs; 6: trajectory posteriors with forcing. A model is written as
/// the lowest that has it all, for older programs. 8: offsets beside coefficients, positive
/// variables, embeddings; a model without them is of version 7. 9: noise that grows with the state.
/// 10: functions beside monomials. 11: noise of logarithms. 12: calibrated quantiles.
constexpr int kVersion = 12, kPlainVersion = 7;

int version_of(const Model& model) {
  if (model.calibration && model.calibration->bands == Bands::quantiles) return kVersion;
  if (!model.log_noise.empty()) return 11;
  if (model.polynomial() && model.polynomial()->functions) return 10;
  if (model.relative_noise.size() > 0) return 9;
  const bool plain = model.positive.empty() && !model.embedding && model.term_offsets().isZero(0);
  return plain ? kPlainVersion : kPlainVersion + 1;
}

Json to_json(const Vector& v) { return std::vector<double>(v.begin(), v.end()); }

Json to_json(const Matrix& m) {
  return {{"rows", m.rows()},
          {"columns", m.cols()},
          {"values", std::vector<double>(m.data(), m.data() + m.size())}};
}

Json to_json(const Model& model, const PolynomialPart& part) {
  const MonomialBasis basis(model.dimension() + model.inputs.size(), part.degree);
  const auto flat = [](const Matrix& m) {
    return std::vector<double>(m.data(), m.data() + m.size());
  };
  Json sets = Json::array();
  for (const CoefficientSet& m : part.sets) {
    Json terms = Json::array();
    for (const FieldTerm& t : m.support)
      if (t.term < basis.size())
        terms.push_back({{"equation", t.equation}, {"powers", basis.powers(t.term)}});
      else
        terms.push_back({{"equation", t.equation}, {"function", t.term - basis.size()}});
    Json set = {
        {"weight", m.weight}, {"score", m.score}, {"terms", terms}, {"theta", to_json(m.theta)}};
    if (m.covariance.size() > 0 || m.last_state.size() > 0) set["covariance"] = flat(m.covariance);
    if (m.last_state.size() > 0) {
      set["last_state"] = to_json(m.last_state);
      set["last_slope"] = flat(m.last_slope);
      set["last_covariance"] = flat(m.last_covariance);
    }
    sets.push_back(std::move(set));
  }
  Json json = {{"type", "coefficients"}, {"degree", part.degree}};
  if (const auto& all = part.functions) {
    json["functions"] = json["numbers"] = Json::array();
    for (const FunctionTerms::Term& f : all->terms())
      json["functions"].push_back(
          {{"expression", expression_text(all->tape(), f.node)}, {"unit", f.unit}});
    for (const InnerNumber& k : all->numbers())
      json["numbers"].push_back(
          {{"name", k.name}, {"centre", k.centre}, {"spread", k.spread}, {"positive", k.positive}});
  }
  json["sets"] = std::move(sets);
  return json;
}

Json to_json(const Network& network) {
  Json layers = Json::array();
  for (const Layer& layer : network.layers)
    layers.push_back({{"weights", to_json(layer.weights)},
                      {"biases", to_json(layer.biases)},
                      {"activation", activation_name(layer.activation)},
                      {"power", layer.power},
                      {"dropout", layer.dropout},
                      {"rescale", layer.rescale}});
  return layers;
}

Json law_json(const Model& model) {
  if (const PolynomialPart* part = model.polynomial()) return to_json(model, *part);
  if (const NetworkEnsemble* networks = model.ensemble()) {
    Json members = Json::array();
    for (const Network& member : *networks) members.push_back(to_json(member));
    return {{"type", "networks"}, {"members", members}};
  }
  return {{"type", "network"}, {"layers", to_json(model.network())}};
}

/// A value that is missing is null.
Json to_json(const KeptRows& kept) {
  std::string hashes;
  for (const std::uint64_t hash : kept.hashes) hashes += hexadecimal(hash);
  Json json = {
      {"from", kept.from},
      {"until", kept.until},
      {"hashes", hashes},
      {"times", kept.times},
      {"states", std::vector<double>(kept.states.data(), kept.states.data() + kept.states.size())}};
  if (kept.sample.size() > 0)
    json["sample"] =
        std::vector<double>(kept.sample.data(), kept.sample.data() + kept.sample.size());
  if (kept.low.size() > 0) json["low"] = to_json(kept.low), json["high"] = to_json(kept.high);
  return json;
}

/// Reads members of a JSON object; every complaint names the member.
struct Reader {
  const std::string& file;

  [[noreturn]] void fail(const std::string& member, const std::string& found,
                         const std::string& expected) const {
    throw_data({fmt::format("model file '{}', {}", file, member), found, expected,
                "Fit the model again, or take it from a copy."});
  }
  const Json& member(const Json& object, const char* name) const {
    if (!object.is_object() || !object.contains(name)) fail(name, "nothing", "a value");
    return object.at(name);
  }
  double number(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_number()) fail(name, value.type_name(), "a number");
    return value.get<double>();
  }
  long whole(const Json& object, const char* name, long smallest, long largest) const {
    const Json& value = member(object, name);
    if (!value.is_number_integer()) fail(name, value.type_name(), "a whole number");
    const auto result = value.get<std::int64_t>();
    if (result < smallest || result > largest)
      fail(name, fmt::format("{}", result), fmt::format("{} to {}", smallest, largest));
    return result;
  }
  std::uint64_t seed(const Json& object) const {
    const Json& value = member(object, "seed");
    if (!value.is_number_unsigned()) fail("seed", value.type_name(), "a whole number >= 0");
    return value.get<std::uint64_t>();
  }
  std::string text(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_string()) fail(name, value.type_name(), "a text");
    return value.get<std::string>();
  }
  bool boolean(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_boolean()) fail(name, value.type_name(), "true or false");
    return value.get<bool>();
  }
  const Json& array(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_array()) fail(name, value.type_name(), "a list");
    return value;
  }
  /// `taken`: those that are read already, which these must differ from.
  std::vector<std::string> names(const Json& object, const char* name,
                                 std::vector<std::string> taken) const {
    std::vector<std::string> result;
    for (const Json& v : array(object, name)) {
      if (!v.is_string()) fail(name, v.type_name(), "names");
      result.push_back(v.get<std::string>());
      if (const char* fault = name_fault(result.back()))
        fail(name, fault, "names of one line without blanks at their ends");
      taken.push_back(result.back());
    }
    std::sort(taken.begin(), taken.end());
    if (const auto twice = std::adjacent_find(taken.begin(), taken.end()); twice != taken.end())
      fail(name, shown(*twice) + " twice", "different names");
    return result;
  }
  Vector numbers(const Json& list, const char* name, std::size_t size) const {
    if (list.size() != size)
      fail(name, fmt::format("{} values", list.size()), fmt::format("{}", size));
    Vector v(static_cast<Eigen::Index>(size));
    for (std::size_t i = 0; i < size; ++i) {
      if (!list[i].is_number()) fail(name, list[i].type_name(), "numbers");
      v[static_cast<Eigen::Index>(i)] = list[i].get<double>();
    }
    if (!v.allFinite()) fail(name, "a number that is not finite", "finite numbers");
    return v;
  }
  Vector vector(const Json& object, const char* name, std::size_t size) const {
    return numbers(array(object, name), name, size);
  }
  Matrix matrix(const Json& object, const char* name) const {
    const Json& m = member(object, name);
    const long rows = whole(m, "rows", 1, 1'000'000), columns = whole(m, "columns", 1, 1'000'000);
    const Vector values = vector(m, "values", static_cast<std::size_t>(rows * columns));
    return Eigen::Map<const Matrix>(values.data(), rows, columns);
  }
};

constexpr std::array<const char*, 3> kDetails = {"month", "day", "clock"};

Calendar read_calendar(const Reader& read, const Json& json) {
  Calendar c;
  const auto unit = unit_from_name(read.text(json, "unit"));
  if (!unit) read.fail("unit", read.text(json, "unit"), "s, min, h, d, y or civil_y");
  c.unit = *unit;
  const Json& origin = read.array(json, "origin");
  constexpr std::int64_t farthest = 1'000'000'000'000'000;
  if (origin.size() != 2 || !origin[0].is_number_integer() || !origin[1].is_number_integer() ||
      std::abs(origin[0].get<std::int64_t>()) > farthest || origin[1].get<std::int64_t>() < 0 ||
      origin[1].get<std::int64_t>() > 999'999'999)
    read.fail("origin", "other values", "whole seconds since 1970 and nanoseconds");
  c.origin = {origin[0].get<std::int64_t>(), origin[1].get<std::int32_t>()};
  if (!read.member(json, "offset").is_null())
    c.offset = static_cast<int>(read.whole(json, "offset", -1439, 1439));
  const std::string detail = read.text(json, "detail");
  const auto found = std::find(kDetails.begin(), kDetails.end(), detail);
  if (found == kDetails.end()) read.fail("detail", detail, "month, day or clock");
  c.detail = static_cast<TimeDetail>(found - kDetails.begin());
  return c;
}

TrajectoryPart read_trajectory(const Reader& read, const Json& json, std::size_t n) {
  TrajectoryPart part{read.number(json, "noise_ratio"), read.number(json, "autocorrelation"),
                      json.contains("persistence") ? read.number(json, "persistence") : 0,
                      read.number(json, "continuity"), read.boolean(json, "misfit")};
  if (!(part.noise_ratio >= 0))
    read.fail("noise_ratio", fmt::format("{}", part.noise_ratio), "a number >= 0");
  if (json.contains("precision")) part.precision = read.number(json, "precision");
  if (!(part.precision >= 0))
    read.fail("precision", fmt::format("{}", part.precision), "a number >= 0");
  if (json.contains("forcing")) {
    const Json& forcing = read.member(json, "forcing");
    part.forcing = {read.vector(forcing, "sd", n), read.number(forcing, "interval")};
    if (!(part.forcing.sd.array() >= 0).all() || !(part.forcing.interval > 0))
      read.fail("forcing", "a number < 0", "sd >= 0 and an interval > 0");
  }
  return part;
}

KeptRows read_kept_rows(const Reader& read, const Json& json, std::size_t n) {
  KeptRows kept{.from = read.number(json, "from"), .until = read.number(json, "until")};
  if (json.contains("low")) {
    kept.low = read.vector(json, "low", n);
    kept.high = read.vector(json, "high", n);
    if (!(kept.low.array() <= kept.high.array()).all())
      read.fail("low", "a value above that of high", "the least and the greatest value");
  }
  const std::string hashes = read.text(json, "hashes");
  if (hashes.size() % 16 != 0 || hashes.size() > 16 * kSketch ||
      hashes.find_first_not_of("0123456789abcdef") != hashes.npos)
    read.fail("hashes", fmt::format("{} characters", hashes.size()),
              fmt::format("at most {} numbers of 16 hexadecimal digits", kSketch));
  for (std::size_t k = 0; k < hashes.size(); k += 16)
    kept.hashes.push_back(std::stoull(hashes.substr(k, 16), nullptr, 16));
  const Vector times = read.vector(json, "times", read.array(json, "times").size());
  kept.times.assign(times.begin(), times.end());
  const Json& states = read.array(json, "states");
  if (states.size() != kept.times.size() * n)
    read.fail("states", fmt::format("{} values", states.size()),
              fmt::format("{}, {} at each of {} times", kept.times.size() * n, n, times.size()));
  kept.states.resize(times.size(), static_cast<Eigen::Index>(n));
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (!states[k].is_number() && !states[k].is_null())
      read.fail("states", states[k].type_name(), "numbers or null");
    kept.states.data()[k] =
        states[k].is_null() ? std::numeric_limits<double>::quiet_NaN() : states[k].get<double>();
  }
  if (json.contains("sample")) {
    const std::size_t size = read.array(json, "sample").size();
    if (size % n != 0 || size > n * kKeptSample)
      read.fail("sample", fmt::format("{} values", size),
                fmt::format("{} for each of at most {} rows", n, kKeptSample));
    const Vector sample = read.vector(json, "sample", size);
    kept.sample = Eigen::Map<const Matrix>(sample.data(), static_cast<Eigen::Index>(size / n),
                                           static_cast<Eigen::Index>(n));
  }
  const auto increase = [](const auto& v) {
    return std::adjacent_find(v.begin(), v.end(), std::greater_equal<>()) == v.end();
  };
  if (!increase(kept.times) || !increase(kept.hashes) || !(kept.from <= kept.until))
    read.fail("observed", "numbers out of order", "times and hashes that increase");
  return kept;
}

/// A yes or no for each variable.
std::vector<bool> read_flags(const Reader& read, const Json& json, const char* name,
                             std::size_t n) {
  std::vector<bool> flags;
  for (const Json& one : read.array(json, name)) {
    if (!one.is_boolean()) read.fail(name, one.type_name(), "true or false");
    flags.push_back(one.get<bool>());
  }
  if (flags.size() != n)
    read.fail(name, fmt::format("{} values", flags.size()), fmt::format("{}", n));
  return flags;
}

/// Functions of the arguments of a model whose variables, scaling and inputs are read.
std::shared_ptr<const FunctionTerms> read_functions(const Reader& read, const Json& json,
                                                    const Model& model) {
  constexpr std::size_t most = 1000;
  constexpr double most_slopes = 1e7;
  const std::vector<std::string> arguments = model.arguments();
  Tape tape(arguments);
  std::vector<InnerNumber> numbers;
  const Json& listed = read.array(json, "numbers");
  const Json& written = read.array(json, "functions");
  if (listed.size() > most || written.size() > most)
    read.fail("functions", fmt::format("{} with {} numbers", written.size(), listed.size()),
              fmt::format("at most {}", most));
  const auto parse = [&](const std::string& text, const char* member, Tape& into) {
    try {
      return parse_expression(text, into, member);
    } catch (const Error& e) {
      read.fail(member, e.what(), "an expression of the variables, inputs and numbers");
    }
  };
  for (const Json& one : listed) {
    InnerNumber k{read.text(one, "name"), read.number(one, "centre"), read.number(one, "spread"),
                  read.boolean(one, "positive")};
    Tape alone(arguments);
    if (!alone.is(parse(k.name, "numbers, name", alone), Op::parameter) ||
        alone.parameters().front() != k.name)
      read.fail("numbers, name", shown(k.name), "the name of a number and of no argument");
    if (!std::isfinite(k.centre) || !std::isfinite(k.spread) || !(k.spread > 0) ||
        (k.positive && !(k.centre > 0)))
      read.fail("numbers", fmt::format("centre {}, spread {}", k.centre, k.spread),
                "a spread > 0, and a centre > 0 of one that is positive");
    const std::size_t before = tape.parameters().size();
    tape.parameter(k.name);
    if (tape.parameters().size() == before)
      read.fail("numbers, name", shown(k.name) + " twice", "different names");
    numbers.push_back(std::move(k));
  }
  std::vector<FunctionTerms::Term> terms;
  double slopes = 0;
  for (const Json& one : written) {
    const std::string text = read.text(one, "expression");
    const int node = parse(text, "expression", tape);
    if (tape.parameters().size() > numbers.size())
      read.fail("expression", shown(tape.parameters().back()), "names of arguments and numbers");
    const double unit = read.number(one, "unit");
    if (!(unit > 0) || !std::isfinite(unit) || !std::isfinite(1 / unit))
      read.fail("unit", fmt::format("{}", unit), "a number > 0");
    const auto leaves = static_cast<double>(model.variables.size() + numbers.size());
    slopes += leaves * expression_size(tape, node);
    terms.push_back({node, unit});
  }
  if (!(slopes <= most_slopes))
    read.fail("functions", "expressions that are too large together", "fewer or shorter ones");
  const Eigen::Index n = model.dimension(), inputs = model.inputs.size();
  Vector offset(n + inputs), scale(n + inputs);
  offset.head(n) = model.scaling.offset;
  scale.head(n) = model.scaling.scale;
  if (inputs > 0)
    offset.tail(inputs) = model.inputs.offset, scale.tail(inputs) = model.inputs.scale;
  return std::make_shared<const FunctionTerms>(
      std::move(tape), std::move(terms), std::move(numbers), offset, scale, model.dimension());
}

/// Of a model whose variables, scaling and inputs are read.
PolynomialPart read_polynomial(const Reader& read, const Json& json, const Model& model) {
  const std::size_t n = model.variables.size(), arguments = n + model.inputs.names.size();
  PolynomialPart part;
  part.degree = static_cast<int>(read.whole(json, "degree", 1, 20));
  if (n == 0 ||
      monomial_count(static_cast<int>(arguments), part.degree) * static_cast<double>(n) > 1e5)
    read.fail("degree", fmt::format("{} with {} variables", part.degree, arguments),
              "at most 1e5 coefficients");
  const auto shared =
      std::make_shared<const MonomialBasis>(static_cast<int>(arguments), part.degree);
  const MonomialBasis& basis = *shared;
  if (json.contains("functions")) part.functions = read_functions(read, json, model);
  const TermLibrary library{shared, part.functions};
  double weight = 0;
  for (const Json& set : read.array(json, "sets")) {
    CoefficientSet m{};
    for (const Json& t : read.array(set, "terms")) {
      FieldTerm term{static_cast<int>(read.whole(t, "equation", 0, static_cast<long>(n) - 1)), -1};
      if (part.functions && t.contains("function")) {
        term.term = basis.size() +
                    static_cast<int>(read.whole(t, "function", 0, part.functions->size() - 1L));
        m.support.push_back(term);
        continue;
      }
      const Vector powers = read.vector(t, "powers", arguments);
      for (int k = 0; k < basis.size() && term.term < 0; ++k) {
        bool same = true;
        for (std::size_t v = 0; v < arguments; ++v)
          same = same && basis.powers(k)[v] == powers[static_cast<Eigen::Index>(v)];
        if (same) term.term = k;
      }
      if (term.term < 0)
        read.fail("powers", "a monomial above the degree",
                  fmt::format("degree at most {}", part.degree));
      m.support.push_back(term);
    }
    const std::vector<int> inside = numbers_inside(library, m.support);
    const std::size_t p = m.support.size() + inside.size();
    const auto matrix = [&](const char* name, std::size_t rows, std::size_t columns) {
      const Vector values = read.vector(set, name, rows * columns);
      return Matrix(Eigen::Map<const Matrix>(values.data(), static_cast<long>(rows),
                                             static_cast<long>(columns)));
    };
    m.theta = read.vector(set, "theta", p);
    const auto covariance = [&](const char* name, std::size_t size) {
      Matrix C = matrix(name, size, size);
      if (!is_covariance(C))
        read.fail(name, "a matrix that is no covariance",
                  "one that is symmetric and positive semidefinite");
      return C;
    };
    if (set.contains("covariance") || set.contains("last_state"))
      m.covariance = covariance("covariance", p);
    for (std::size_t k = 0; k < inside.size(); ++k) {  // the value, which may be exp z, and its sd
      const auto at = static_cast<long>(m.support.size() + k);
      const InnerNumber& number = part.functions->numbers()[static_cast<std::size_t>(inside[k])];
      const double value = number.value(m.theta[at]), slope = number.slope(m.theta[at]),
                   variance = m.covariance.size() > 0 ? m.covariance(at, at) : 0;
      if (!std::isfinite(value * value) || !std::isfinite(slope * slope * variance))
        read.fail("theta", fmt::format("{} as the coordinate of {}", m.theta[at], number.name),
                  "one whose value has a finite square, and its variance too");
    }
    if (set.contains("last_state")) {
      m.last_state = read.vector(set, "last_state", n);
      m.last_slope = matrix("last_slope", n, p);
      m.last_covariance = covariance("last_covariance", n);
    }
    m.weight = read.number(set, "weight");
    m.score = read.number(set, "score");
    if (!(m.weight >= 0 && m.weight <= 1))
      read.fail("weight", fmt::format("{}", m.weight), "0 to 1");
    weight += m.weight;
    part.sets.push_back(std::move(m));
  }
  int normal = 0, points = 0;  // a set without terms may be either
  bool alike = true;
  for (const CoefficientSet& m : part.sets) {
    if (m.theta.size() > 0) ++(m.covariance.size() > 0 ? normal : points);
    alike = alike && m.last_state.size() == part.sets[0].last_state.size();
  }
  if (!alike || (normal > 0 && points > 0))
    read.fail("sets", "sets of different kinds", "all with a covariance and a last state, or none");
  if (!(std::abs(weight - 1) < 1e-6))
    read.fail("sets", fmt::format("weights of {}", weight), "a sum of 1");
  return part;
}

/// Layers, the first for so many arguments.
Network read_network(const Reader& read, const Json& json, std::size_t arguments) {
  Network network;
  auto width = static_cast<Eigen::Index>(arguments);
  for (const Json& l : json) {
    Layer layer;
    layer.weights = read.matrix(l, "weights");
    layer.biases = read.vector(l, "biases", static_cast<std::size_t>(layer.weights.rows()));
    const auto activation = activation_from_name(read.text(l, "activation"));
    if (!activation) read.fail("activation", read.text(l, "activation"), "a known activation");
    layer.activation = *activation;
    layer.power = static_cast<int>(read.whole(l, "power", 1, 20));
    layer.dropout = read.number(l, "dropout");
    if (!(layer.dropout >= 0 && layer.dropout < 1))
      read.fail("dropout", fmt::format("{}", layer.dropout), "a rate in [0, 1)");
    layer.rescale = read.boolean(l, "rescale");
    if (layer.weights.cols() != width)
      read.fail("weights", fmt::format("{} columns", layer.weights.cols()),
                fmt::format("{}", width));
    width = layer.weights.rows();
    network.layers.push_back(std::move(layer));
  }
  return network;
}

/// One that gives n outputs. A polynomial kernel is expanded when loaded: its size must be one that
/// fit would have made.
Network read_whole_network(const Reader& read, const Json& json, std::size_t n,
                           std::size_t arguments) {
  if (!json.is_array()) read.fail("layers", json.type_name(), "a list of layers");
  Network network = read_network(read, json, arguments);
  if (network.layers.empty() || network.outputs() != static_cast<int>(n))
    read.fail("layers", fmt::format("{} outputs", network.layers.empty() ? 0 : network.outputs()),
              fmt::format("{}, one per variable", n));
  const Layer& first = network.layers.front();
  if (first.activation == Activation::power &&
      !can_expand(static_cast<int>(arguments), static_cast<int>(n), first.power,
                  static_cast<double>(first.weights.rows())))
    read.fail("power",
              fmt::format("{} with {} variables and {} units", first.power, arguments,
                          first.weights.rows()),
              "at most 1e5 coefficients, and 4e6 powers of its units");
  return network;
}

NetworkEnsemble read_members(const Reader& read, const Json& json, std::size_t n,
                             std::size_t arguments) {
  NetworkEnsemble members;
  for (const Json& member : json) {
    members.push_back(read_whole_network(read, member, n, arguments));
    const Network &one = members.back(), &first = members.front();
    bool same = one.layers.size() == first.layers.size();
    for (std::size_t k = 0; same && k < one.layers.size(); ++k) {
      const Layer &a = one.layers[k], &b = first.layers[k];
      same =
          a.biases.size() == b.biases.size() && a.activation == b.activation && a.power == b.power;
    }
    if (!same) read.fail("members", "a network of another shape", "that of the first");
  }
  if (members.empty()) read.fail("members", "none", "at least one");
  return members;
}

using Law = decltype(Model::law);

/// Of a model whose variables, scaling and inputs are read.
Law read_law(const Reader& read, const Json& json, const Model& model) {
  const std::size_t n = model.variables.size(), arguments = n + model.inputs.names.size();
  const std::string type = read.text(json, "type");
  if (type == "coefficients") return read_polynomial(read, json, model);
  if (type == "network") return read_whole_network(read, read.array(json, "layers"), n, arguments);
  if (type != "networks") read.fail("type", type, "coefficients, network or networks");
  return read_members(read, read.array(json, "members"), n, arguments);
}

/// Of files before version 7: coefficients as `trajectory` or `polynomial` beside an empty list of
/// layers, or layers, and of an ensemble the other members.
Law read_old_law(const Reader& read, const Json& json, const Model& model) {
  const std::size_t n = model.variables.size(), arguments = n + model.inputs.names.size();
  for (const char* name : {"trajectory", "polynomial"})
    if (json.contains(name)) {
      if (!read.array(json, "layers").empty()) read.fail("layers", "some", "none beside it");
      return read_polynomial(read, read.member(json, name), model);
    }
  if (!json.contains("members"))
    return read_whole_network(read, read.array(json, "layers"), n, arguments);
  Json all = read.array(json, "members");
  all.insert(all.begin(), read.array(json, "layers"));
  return read_members(read, all, n, arguments);
}

/// Nesting deeper than any model has is refused while parsing, and so is what takes more memory
/// than three times the text and 36 MiB. A value takes 16 bytes, and up to three times that while
/// its list grows; a member has a name beside it, and an object or list its own. Our own files,
/// with a number on each line of fifteen characters at least, stay below.
Json parse_limited(const std::string& text, const std::string& name) {
  const auto refuse = [&](const char* found) {
    throw_data({fmt::format("model file '{}'", name), found, "an odecast model",
                "Fit the model again, or take it from a copy."});
  };
  std::size_t taken = 0;
  const std::size_t most = 3 * text.size() + (std::size_t{36} << 20);
  const Json::parser_callback_t limit = [&](int depth, Json::parse_event_t event, Json&) {
    using Event = Json::parse_event_t;
    if (depth > 32) refuse("nesting deeper than 32 levels");
    taken += event == Event::value || event == Event::key                  ? 40
             : event == Event::object_start || event == Event::array_start ? 80
                                                                           : 0;
    if (taken > most) refuse("more values than a model of that length has");
    return true;
  };
  try {
    return Json::parse(text, limit);
  } catch (const Json::exception&) {
    throw_data({fmt::format("model file '{}'", name),
                text.empty() ? "an empty file" : "text that is not JSON",
                "a complete odecast model",
                "The file is truncated or damaged: fit the model again, or take it from a copy."});
  }
}

}  // namespace

std::string model_to_text(const Model& model) {
  const auto& t = model.training;
  Json body = {{"odecast_model", version_of(model)},
               {"variables", model.variables},
               {"kind", model.kind == ModelKind::map ? "map" : "flow"},
               {"inputs",
                {{"names", model.inputs.names},
                 {"offset", to_json(model.inputs.offset)},
                 {"scale", to_json(model.inputs.scale)},
                 {"held", model.inputs.held},
                 {"time", model.inputs.time}}},
               {"scaling",
                {{"offset", to_json(model.scaling.offset)},
                 {"scale", to_json(model.scaling.scale)},
                 {"time", model.scaling.time}}},
               {"law", law_json(model)},
               {"last",
                {{"trajectory", model.last_trajectory},
                 {"time", model.last_time},
                 {"state", to_json(model.last_state)},
                 {"sd", model.last_state_sd ? to_json(*model.last_state_sd) : Json()}}},
               {"step", model.step},
               {"data_scale", model.data_scale},
               {"size", to_json(model.size)},
               {"training",
                {{"trainer", t.trainer},
                 {"derivative", t.derivative},
                 {"noise_factor", t.noise_factor},
                 {"noise_order", t.noise_order},
                 {"status", t.status},
                 {"reason", t.reason},
                 {"rows", t.rows},
                 {"trajectories", t.trajectories},
                 {"iterations", t.iterations},
                 {"objective", t.objective ? Json(*t.objective) : Json()},
                 {"seed", t.seed}}}};
  if (const auto& found = model.trajectory) {
    body["diagnosis"] = {{"noise_ratio", found->noise_ratio},
                         {"autocorrelation", found->autocorrelation},
                         {"persistence", found->persistence},
                         {"continuity", found->continuity},
                         {"misfit", found->misfit}};
    if (found->precision > 0) body["diagnosis"]["precision"] = found->precision;
    if (found->forcing.present())
      body["diagnosis"]["forcing"] = {{"sd", to_json(found->forcing.sd)},
                                      {"interval", found->forcing.interval}};
  }
  if (model.time_name != "t" || model.calendar) {
    body["time"] = {{"name", model.time_name}};
    if (const auto& c = model.calendar)
      body["time"]["calendar"] = {{"unit", unit_code(c->unit)},
                                  {"origin", {c->origin.seconds, c->origin.nanoseconds}},
                                  {"offset", c->offset ? Json(*c->offset) : Json()},
                                  {"detail", kDetails[static_cast<std::size_t>(c->detail)]}};
  }
  body["settings"] = Json::object();
  for (const auto& [name, value] : model.settings) body["settings"][name] = value;
  if (!model.positive.empty()) body["positive"] = model.positive;
  if (const auto& e = model.embedding)
    body["embedding"] = {{"coordinates", embedding_name(*e)}, {"lag", e->lag}, {"step", e->step}};
  if (model.sd.size() > 0) body["sd"] = to_json(model.sd);
  if (model.noise.size() > 0) body["noise"] = to_json(model.noise);
  if (model.relative_noise.size() > 0) body["relative_noise"] = to_json(model.relative_noise);
  if (!model.log_noise.empty()) body["log_noise"] = model.log_noise;
  if (model.calibration)
    body["calibration"] = {{"level", model.calibration->level},
                           {"starts", model.calibration->starts},
                           {"bands", bands_name(model.calibration->bands)},
                           {"observed", model.calibration->observed},
                           {"smoothed", model.calibration->smoothed},
                           {"leads", model.calibration->leads},
                           {"factors", to_json(model.calibration->factors)},
                           {"before", model.calibration->before},
                           {"after", model.calibration->after}};
  if (model.observed) body["observed"] = to_json(*model.observed);
  if (model.inputs.last.size() > 0) body["inputs"]["last"] = to_json(model.inputs.last);
  return sealed(body.dump(2));
}

Model model_from_text(const std::string& text, const std::string& name) {
  const Json json = parse_limited(text, name);
  const Reader read{name};
  if (!json.is_object() || !json.contains("odecast_model"))
    read.fail("start", "no member odecast_model", "a model written by odecast fit");
  const long version = read.whole(json, "odecast_model", 1, 1'000'000);
  if (version > kVersion)
    throw_data({fmt::format("model file '{}'", name), fmt::format("format version {}", version),
                fmt::format("version {} or older", kVersion),
                "It was written by a newer odecast: update this one."});
  if (!has_seal(text))
    read.fail("checksum", "one that does not match the content",
              "the content that odecast fit wrote");

  Model model;
  model.variables = read.names(json, "variables", {});
  const std::size_t n = model.variables.size();
  const Json& scaling = read.member(json, "scaling");
  model.scaling = {read.vector(scaling, "offset", n), read.vector(scaling, "scale", n),
                   read.number(scaling, "time")};
  if (!(model.scaling.scale.array() > 0).all() || !(model.scaling.time > 0))
    read.fail("scale", "a number <= 0", "numbers > 0");

  if (json.contains("kind")) {
    const std::string kind = read.text(json, "kind");
    if (kind != "flow" && kind != "map") read.fail("kind", kind, "flow or map");
    model.kind = kind == "map" ? ModelKind::map : ModelKind::flow;
  }
  if (json.contains("inputs")) {
    const Json& inputs = read.member(json, "inputs");
    model.inputs.names = read.names(inputs, "names", model.variables);
    const std::size_t m = model.inputs.names.size();
    model.inputs.offset = read.vector(inputs, "offset", m);
    model.inputs.scale = read.vector(inputs, "scale", m);
    if (!(model.inputs.scale.array() > 0).all()) read.fail("scale", "a number <= 0", "numbers > 0");
    model.inputs.held = read.boolean(inputs, "held");
    model.inputs.time = read.boolean(inputs, "time");
    if (model.inputs.time && m == 0)
      read.fail("time", "true without inputs", "an input that is the time");
    if (inputs.contains("last"))
      model.inputs.last =
          read.vector(inputs, "last", static_cast<std::size_t>(model.inputs.measured()));
  }
  if (json.contains("time")) {
    const Json& time = read.member(json, "time");
    model.time_name = read.text(time, "name");
    if (const char* fault = name_fault(model.time_name))
      read.fail("time, name", fault, "a name of one line without blanks at its ends");
    if (time.contains("calendar"))
      model.calendar = read_calendar(read, read.member(time, "calendar"));
  }
  const std::size_t arguments = n + model.inputs.names.size();
  if (n == 0) read.fail("variables", "none", "at least one");
  // Before version 7 the diagnosis stood with the coefficients of a trajectory fit.
  const char* diagnosis = version < 7 ? "trajectory" : "diagnosis";
  if (json.contains(diagnosis)) {
    if (model.kind == ModelKind::map) read.fail(diagnosis, "a map", "a flow");
    model.trajectory = read_trajectory(read, read.member(json, diagnosis), n);
  }
  model.law = version < 7 ? read_old_law(read, json, model)
                          : read_law(read, read.member(json, "law"), model);
  if (version < 8 && !model.term_offsets().isZero(0))
    read.fail("offset", "numbers that are not 0", "0 beside coefficients");
  if (json.contains("positive")) model.positive = read_flags(read, json, "positive", n);
  if (json.contains("embedding")) {
    const Json& e = read.member(json, "embedding");
    const std::string coordinates = read.text(e, "coordinates");
    model.embedding = embedding_from_name(coordinates);
    if (!model.embedding || model.embedding->count != static_cast<int>(n))
      read.fail("coordinates", shown(coordinates), "such as delays:3, one for each variable");
    model.embedding->lag = static_cast<int>(read.whole(e, "lag", 1, 1'000'000));
    model.embedding->step = read.number(e, "step");
    if (!(model.embedding->step > 0)) read.fail("step", "a number <= 0", "a number > 0");
  }
  if (model.trajectory && !model.polynomial()) read.fail(diagnosis, "a network", "coefficients");
  if (json.contains("settings")) {
    const Json& given = read.member(json, "settings");
    if (!given.is_object()) read.fail("settings", given.type_name(), "names and values");
    for (const auto& [key, value] : given.items()) {
      if (!value.is_string()) read.fail("settings", value.type_name(), "texts");
      model.settings.emplace_back(key, value.get<std::string>());
    }
  }

  const Json& last = read.member(json, "last");
  model.last_trajectory = read.text(last, "trajectory");
  model.last_time = read.number(last, "time");
  model.last_state = read.vector(last, "state", n);
  if (!read.member(last, "sd").is_null()) model.last_state_sd = read.vector(last, "sd", n);
  if (model.last_state_sd && !(model.last_state_sd->array() >= 0).all())
    read.fail("last, sd", "a number < 0", "numbers >= 0");
  model.step = read.number(json, "step");
  model.data_scale = read.number(json, "data_scale");
  model.size = read.vector(json, "size", arguments);
  if (!(model.size.array() >= 0).all()) read.fail("size", "a number < 0", "numbers >= 0");
  if (json.contains("sd")) model.sd = read.vector(json, "sd", n);
  if (model.sd.size() > 0 && !(model.sd.array() >= 0).all())
    read.fail("sd", "a number < 0", "numbers >= 0");
  if (json.contains("noise")) model.noise = read.vector(json, "noise", n);
  if (model.noise.size() > 0 && !(model.noise.array() >= 0).all())
    read.fail("noise", "a number < 0", "numbers >= 0");
  if (json.contains("relative_noise"))
    model.relative_noise = read.vector(json, "relative_noise", n);
  if (model.relative_noise.size() > 0 &&
      (model.noise.size() == 0 ||
       !(model.relative_noise.array() >= 0 && model.relative_noise.array() <= 1).all()))
    read.fail("relative_noise", "a number outside of [0, 1], or no noise", "shares of the noise");
  if (json.contains("log_noise")) {
    model.log_noise = read_flags(read, json, "log_noise", n);
    for (std::size_t i = 0; i < n; ++i)
      if (model.log_noise[i] && (model.relative_noise.size() == 0 ||
                                 model.relative_noise[static_cast<Eigen::Index>(i)] != 1))
        read.fail("log_noise", "noise of a logarithm that is not relative", "a share of 1");
  }
  if (!(model.step > 0) || !(model.data_scale > 0))
    read.fail("step or data_scale", "a number <= 0", "numbers > 0");
  if (json.contains("calibration")) {
    const Json& c = read.member(json, "calibration");
    CalibrationPart& part = model.calibration.emplace();
    part.level = read.number(c, "level");
    part.starts = static_cast<int>(read.whole(c, "starts", 1, 1'000'000'000));
    part.observed = c.contains("observed") && read.boolean(c, "observed");
    part.smoothed = c.contains("smoothed") && read.boolean(c, "smoothed");
    if (c.contains("bands")) {
      const std::string bands = read.text(c, "bands");
      if (bands != bands_name(Bands::sd) && bands != bands_name(Bands::quantiles))
        read.fail("bands", bands, "sd or quantiles");
      part.bands = bands == bands_name(Bands::sd) ? Bands::sd : Bands::quantiles;
    }
    const Vector leads = read.vector(c, "leads", read.array(c, "leads").size());
    part.leads.assign(leads.begin(), leads.end());
    part.factors = read.matrix(c, "factors");
    for (const auto& [key, shares] :
         {std::pair{"before", &part.before}, std::pair{"after", &part.after}}) {
      if (!c.contains(key)) continue;  // of files before these were kept
      const Vector v = read.vector(c, key, read.array(c, key).size());
      if (v.size() != 0 && v.size() != leads.size())
        read.fail(key, fmt::format("{} shares", v.size()), "one for each lead");
      shares->assign(v.begin(), v.end());
    }
    bool good = !part.leads.empty() && part.leads.front() > 0 &&
                part.factors.rows() == leads.size() &&
                part.factors.cols() == static_cast<Eigen::Index>(n) &&
                (part.factors.array() >= 0).all() && part.level > 0 && (1 + part.level) / 2 < 1;
    for (std::size_t k = 1; k < part.leads.size(); ++k)
      good = good && part.leads[k] > part.leads[k - 1];
    if (!good)
      read.fail("calibration", "a table that does not fit",
                "increasing leads and a factor for each and every variable");
  }
  if (json.contains("observed"))
    model.observed = read_kept_rows(read, read.member(json, "observed"),
                                    static_cast<std::size_t>(model.measured()));
  const Json& t = read.member(json, "training");
  constexpr long many = std::numeric_limits<long>::max();
  model.training = {read.text(t, "trainer"),
                    read.text(t, "derivative"),
                    read.text(t, "status"),
                    read.text(t, "reason"),
                    read.number(t, "noise_factor"),
                    read.number(t, "noise_order"),
                    read.whole(t, "rows", 1, many),
                    read.whole(t, "trajectories", 1, many),
                    read.whole(t, "iterations", 0, many),
                    read.member(t, "objective").is_null()
                        ? std::nullopt
                        : std::optional(read.number(t, "objective")),
                    read.seed(t)};
  return model;
}

std::string checked_model_text(const Model& model) {
  std::string text = model_to_text(model);
  try {
    model_from_text(text, "as it would be written");
  } catch (const Error& e) {
    throw_data({"the model that was learnt",
                fmt::format("what cannot be read again ({})", e.what()),
                "finite numbers that fit together",
                "Nothing was written, and an older file stays. Give more rows or a lower degree; "
                "this should not happen: report it with the data."});
  }
  return text;
}

void save_model(const Model& model, const std::filesystem::path& path) {
  write_file(path, checked_model_text(model));
}

Model load_model(const std::filesystem::path& path) {
  return model_from_text(read_file(path), path.string());
}

}  // namespace odecast
