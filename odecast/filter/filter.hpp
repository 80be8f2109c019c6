#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "odecast/filter/carrier.hpp"
#include "odecast/filter/observing.hpp"

namespace odecast {

/// How an ensemble of states follows what is observed.
enum class FilterMethod {
  automatic,  ///< particle up to six variables where it does not learn, iterated elsewhere
  particle,   ///< regularised particle filter: any distribution, few variables
  iterated,   ///< iterated ensemble Kalman filter: a normal one, over nonlinear intervals
  kalman,     ///< ensemble transform Kalman filter, one linear step at the time of the row
};
inline constexpr std::array<std::string_view, 4> kFilterMethodNames = {"auto", "particle",
                                                                       "iterated", "kalman"};

struct FilterOptions {
  FilterMethod method = FilterMethod::automatic;
  /// 0: 1000 particles, 40 members of the others; of those that learn at least twice as many as
  /// variables and coefficients.
  int members = 0;
  /// Sd of each observed column, its units; default: the model's own, of columns that are
  /// variables.
  std::optional<Vector> noise = {};
  /// State at `from`, user's units, and its sd; by default the data's end continues if the first
  /// row is within the predictability horizon after it, else what is known of the state is the
  /// spread of the model's data.
  std::optional<Vector> init = {}, init_sd = {};
  std::optional<double> from = {};
  /// A row less likely than `gate`, given the forecast, is not used; a third in a row is.
  bool robust = false;
  double gate = 1e-6;
  /// Of posteriors over finitely many fields (masks, replicates): draws go with the states, so that
  /// resampling weighs them: the paper's filter bank. Else each member keeps its own.
  bool bank = false;
  /// Coefficients and numbers inside functions move with the data, too; of models with equations.
  bool learn = false;
  /// How fast they change: sd of a random walk per root of a time unit, in units of their sd in
  /// the posterior. Nothing: slowly, and while rows surprise fast.
  std::optional<double> drift = {};
  int lag = 0;       ///< rows after which states are smoothed by those that came since
  double ahead = 0;  ///< time units; above 0: also the forecast that long after every row
  double level = 0.95;
  double inflation = 1.01;  ///< of the ensembles' anomalies, after each row
  std::uint64_t seed = 1;
  int threads = 1;
};

enum class FilterStatus {
  ok,
  unobserved,  ///< nothing was observed in the row: a forecast alone
  gated,       ///< less likely than the gate: not used
  late,        ///< its time is not after that of the row before: not used
  lost,        ///< rows are far from the forecasts, or most members blew up: the state is sought
               ///< anew from here on
  recovering,  ///< after that, until rows are again as the filter expects them
  changing,    ///< rows surprise, and coefficients move fast: the system is another
};
inline constexpr std::array<std::string_view, 7> kFilterStatusNames = {
    "ok", "unobserved", "gated", "late", "lost", "recovering", "changing"};

/// A state's distribution, user's units. Bands are quantiles of the particles, of the other methods
/// mean ± c sd.
struct StateBand {
  Vector mean, sd, lower, upper;
};

/// What the filter says at one row, user's units.
struct FilterRow {
  double time = 0;
  StateBand state;               ///< given all rows up to this one
  Vector forecast, forecast_sd;  ///< given those before; of the first row what was known
  Vector expected, expected_sd;  ///< of each observed column, its noise included; NaN where empty
  Vector pit;                    ///< P(an observation is below this one | rows before); NaN
  double surprise = 1;           ///< χ² of the row over its number of values; 1 is normal
  double log_score = 0;          ///< log p(row | rows before)
  int used = 0;                  ///< values
  FilterStatus status = FilterStatus::ok;
  std::optional<StateBand> past = {};   ///< `lag` rows before this one, given all up to this one
  std::optional<StateBand> ahead = {};  ///< `ahead` after this one
  long blown_up = 0;                    ///< members, in the interval before
};

/// Where a filter is, after a row: with its model, observing and options all that it needs to go on
/// with the same bits. Model units.
struct FilterState {
  /// Of every member the state, behind it the coefficients that are learnt, and behind these its
  /// states in the last rows, the newest first, where they are smoothed.
  Matrix members;
  Vector weights;               ///< of particles
  std::vector<int> draws = {};  ///< which each member has, where these go with the states
  Vector last_inputs = {};
  double time = 0;
  long rows = 0;                  ///< so far
  long surprises = 0, gated = 0;  ///< in a row
  double averaged = 1;            ///< surprise, over some seven rows
  bool started = false, recovering = false;
};

/// Follows a system with a learnt model: for each row the distribution of the state, given all rows
/// so far. Every member carries its own draw of the posterior. Serial: row after row, in constant
/// memory; the same rows give the same bits, in whatever portions they come, for any number of
/// threads. The model must outlive it. Throws Error (usage) for options out of range.
class Filter {
 public:
  Filter(const Model& model, Observing observing, const FilterOptions& options);
  Filter(Filter&&) = default;
  Filter(const Filter&) = delete;  // members would share what drives them

  /// A row: its time, its observed columns (NaN: empty) and the measured inputs there, all in the
  /// user's units. Of a driven model inputs are linear, or held, from row to row.
  FilterRow update(double time, const Vector& values, const Vector& inputs = {});

  const Model& model() const { return model_; }
  const Observing& observing() const { return observing_; }
  const FilterOptions& options() const { return options_; }
  /// Terms of the coefficients that are learnt.
  const Support& terms() const { return carrier_.joint().support; }
  FilterMethod method() const { return method_; }
  /// Begins with what another filter of the same model and options has learnt of the coefficients;
  /// before the first row.
  void learn_from(const Filter& other);

  /// The states in the last `lag` rows, or fewer where there were not so many, given all rows: the
  /// oldest first.
  std::vector<StateBand> recent() const;

  const FilterState& state() const { return now_; }
  /// To go on from a state of a filter of the same model, observing and options; rows up to its
  /// time are late. Throws Error (data) for one of other sizes.
  void continue_from(FilterState state);

 private:
  void begin(double time, const InputSignal& inputs);
  void seek(const Seen& seen);
  void scatter(const Vector& mean, const Vector& sd);
  bool continues_to(double time, const InputSignal& inputs);
  InputSignal signal_to(double time, const Vector& inputs);
  Seen seen_of(const Vector& values) const;
  void expect(const Vector& values, const Seen& seen, FilterRow& row) const;
  void analyse(double begin, double time, const InputSignal& inputs, const Seen& seen,
               const Matrix& before, FilterRow& row);
  void analyse_particles(const Seen& seen, FilterRow& row);
  void resample();
  void take_members(const std::vector<Eigen::Index>& from);
  void drift(double duration);
  auto states() { return now_.members.leftCols(model_.dimension()); }
  auto states() const { return now_.members.leftCols(model_.dimension()); }
  void remember();
  StateBand band(const Matrix& states) const;
  StateBand band_before(int rows) const;
  StateBand look_ahead(const Vector& inputs);
  EnsembleMoments moments(const Matrix& states) const;
  Seen padded(const Seen& seen) const;
  bool surprised() const;

  const Model& model_;
  Observing observing_;
  FilterOptions options_;
  FilterMethod method_;
  Carrier carrier_;
  Matrix drift_root_;  ///< R Rᵀ = covariance of a drift of size 1
  FilterState now_;
  bool resumed_ = false;  ///< and has seen no row since
};

/// What the rows of a filter say together.
struct FilterSummary {
  long rows = 0, values = 0, gated = 0, late = 0, lost = 0, blown_up = 0;
  double log_score = 0;             ///< mean over the used rows after the first
  double surprise = 0;              ///< mean of those
  double early = 0;                 ///< of the first thirty of them
  long scored = 0;                  ///< rows that these are over
  long forecasts = 0, inside = 0;   ///< values, and those inside their band one row ahead
  std::array<long, 10> ranks = {};  ///< of the values among what was expected, by their pit
  FilterStatus last = FilterStatus::ok;

  void add(const FilterRow& row, double level);
  double coverage() const {
    return forecasts > 0 ? static_cast<double>(inside) / static_cast<double>(forecasts) : 0;
  }
  /// Empty where the filter followed the rows, else why it is not to be trusted, a sentence.
  std::string distrust() const;
};

}  // namespace odecast
