// Sealed semantic mutants: the members of a model are changed, swapped, copied and left out as the
// bytes say, and the checksum fits again. What is read must do all that a model does: equations,
// moments, a forecast, Lyapunov exponents. It may be refused with an Error at any of these, and a
// result that says it is good is finite.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.hpp"
#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/scores/lyapunov.hpp"

namespace odecast::fuzz {
namespace {

using Json = nlohmann::ordered_json;

/// The seeds of the target `model`, whose first byte is that target's choice.
const std::vector<Json>& seeds() {
  static const std::vector<Json> models = [] {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(ODECAST_MODELS))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<Json> found;
    for (const auto& path : paths)
      if (Json json = Json::parse(read_file(path).substr(1), nullptr, false); json.is_object()) {
        json.erase("checksum");
        found.push_back(std::move(json));
      }
    require(found.size() >= 5);
    return found;
  }();
  return models;
}

constexpr double kHuge = std::numeric_limits<double>::max(),
                 kTiny = std::numeric_limits<double>::denorm_min();
constexpr std::array kNumbers = {0.0,   -0.0,   1.0,    -1.0,   0.5,     2.0,          1e-9,
                                 1e9,   1e-150, 1e150,  -1e150, 1e-300,  1e300,        -1e300,
                                 kHuge, -kHuge, kTiny,  -kTiny, 1e19,    -1e19,        3.0,
                                 20.0,  64.0,   1000.0, 1e6,    1 / 3.0, 2147483648.0, 9.3e18};
constexpr std::array kWords = {"",    "x",    "u",        "t",         "alive",      "x, m",
                               "\"",  "a\nb", "\x1b[31m", "=1+1",      "\\input{x}", "a%",
                               "map", "flow", "power",    "converged", "misfit"};

class Mutator {
 public:
  Mutator(Json json, const std::uint8_t* bytes, std::size_t size)
      : json_(std::move(json)), next_(bytes), end_(bytes + size) {}

  Json result() {
    for (int changes = 0; next_ != end_ && changes < 12; ++changes) change();
    return std::move(json_);
  }

 private:
  unsigned byte() { return next_ == end_ ? 0u : *next_++; }

  void collect(Json& node) {
    if (&node != &json_) nodes_.push_back(&node);
    if (node.is_structured())
      for (Json& child : node) collect(child);
  }

  Json& choose() {
    const unsigned high = byte(), low = byte();
    return *nodes_[(high * 256 + low) % nodes_.size()];
  }

  void change() {
    nodes_.clear();
    collect(json_);
    // Copies of copies are long: what is refused or used in a second is a file of some kilobytes.
    if (nodes_.empty() || nodes_.size() > 4000) return;
    const unsigned what = byte();
    Json& node = choose();
    switch (what % 10) {
      case 0: node = kNumbers[byte() % kNumbers.size()]; break;
      case 1:
        if (node.is_number())
          node = std::ldexp(node.get<double>(), static_cast<int>(byte()) * 4 - 510);
        break;
      case 2:
        if (node.is_number())
          node = std::bit_cast<double>(std::bit_cast<std::uint64_t>(node.get<double>()) ^
                                       std::uint64_t{1} << byte() % 64);
        break;
      case 3: node = kWords[byte() % kWords.size()]; break;
      case 4: node = static_cast<int>(byte()) - 8; break;
      case 5:  // longer or shorter
        if (node.is_array()) resize(node);
        break;
      case 6: {
        const Json copy = node;  // of another place, which may lie within this one
        choose() = copy;
        break;
      }
      case 7: {
        Json other = choose();
        std::swap(node, other);
        break;
      }
      case 8: leave_out(node); break;
      default: node = byte() % 3 == 0 ? Json(nullptr) : Json(byte() % 2 == 0); break;
    }
  }

  void resize(Json& array) {
    const unsigned how = byte();
    if (how % 4 == 0 || array.empty()) {
      array.clear();
    } else if (how % 4 == 1) {
      array.erase(array.size() - 1);
    } else {
      const Json last = array.back();
      for (unsigned i = 0; i < how / 4 && i < 40; ++i) array.push_back(last);
    }
  }

  void leave_out(Json& node) {
    Json* parent = nullptr;
    const auto find = [&](auto& self, Json& at) -> void {
      if (!at.is_structured()) return;
      for (Json& child : at) {
        if (&child == &node) parent = &at;
        self(self, child);
      }
    };
    find(find, json_);
    for (auto member = parent->begin(); member != parent->end(); ++member)
      if (&*member == &node) {
        parent->erase(member);
        return;
      }
  }

  Json json_;
  std::vector<Json*> nodes_;
  const std::uint8_t *next_, *end_;
};

std::string sealed(const Json& json) {
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  return fmt::format("{},\n  \"checksum\": \"fnv1a64:{:016x}\"\n}}\n", text, fnv1a(text));
}

void write_and_read(const Model& model) {
  const std::string text = model_to_text(model);
  require(model_to_text(model_from_text(text, "back")) == text);
}

/// Runs one use of a model; an Error is an answer.
template <class Use>
void answer(const Use& use) {
  try {
    use();
  } catch (const Error&) {
  }
}

void use(const Model& model) {
  answer([&] {
    for (const auto format : {EquationFormat::text, EquationFormat::latex, EquationFormat::c})
      format_equations(model, format);
    readable_equations(model, 0, Centre::median);
  });
  const auto posterior = make_posterior(model);
  answer([&] {
    const Moments m = posterior->moments(
        Vector::Constant(static_cast<Eigen::Index>(model.arguments().size()), 0.5));
    require(m.mean.size() == model.dimension());
    for (const double variance : m.covariance.diagonal())
      require(!(std::isfinite(variance) && variance < 0));
  });
  answer([&] {
    ForecastOptions o;
    o.draws = 4;
    o.attempts_per_draw = 2;
    o.samples = 1;
    o.solver = default_solver(model);
    o.solver->max_steps = 100;
    const double start = forecast_start(model, o).time;
    o.times = {start + model.step, start + 3 * model.step};
    if (model.inputs.measured() > 0)
      o.inputs = InputSignal{{start, start + 4 * model.step},
                             Matrix::Constant(2, model.inputs.measured(), 0.25)};
    const Forecast f = forecast(model, o, ignore_progress);
    if (f.status == ForecastStatus::complete)
      for (const Matrix* m :
           {&f.mean, &f.sd, &f.lower, &f.upper, &f.q_lower, &f.q_median, &f.q_upper})
        require(m->allFinite());
  });
  if (model.inputs.size() > 0 || model.dimension() > 4) return;
  answer([&] {
    const double unit = model.kind == ModelKind::map ? 1 : model.step / model.scaling.time;
    const LyapunovOptions o{.until = 8 * unit,
                            .transient = unit,
                            .interval = unit,
                            .rtol = 1e-4,
                            .atol = 1e-6,
                            .max_steps = 20,
                            .map = model.kind == ModelKind::map};
    // The mean of many networks is slow to follow.
    const VectorField field =
        model.polynomial() ? posterior->mean_field() : posterior->point_field();
    const LyapunovSpectrum s =
        lyapunov_spectrum(field, model.scaling.to_model(model.last_state), o);
    if (s.status == SolveStatus::finished) require(!s.exponents.hasNaN());
  });
}

}  // namespace
}  // namespace odecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  if (size < 2 || size > 64) return 0;
  const auto& models = fuzz::seeds();
  const fuzz::SecondAtMost limit;
  const std::string text =
      fuzz::sealed(fuzz::Mutator(models[bytes[0] % models.size()], bytes + 1, size - 1).result());
  fuzz::answer([&] {
    const Model model = model_from_text(text, "fuzz");
    if (bytes[0] & 128) fuzz::write_and_read(model);  // not always: it takes half of the time
    fuzz::use(model);
  });
  return 0;
}
