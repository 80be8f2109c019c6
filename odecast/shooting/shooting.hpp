#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "odecast/core/aligned.hpp"
#include "odecast/core/budget.hpp"
#include "odecast/core/matrix.hpp"
#include "odecast/field/coefficients.hpp"
#include "odecast/field/polynomial.hpp"
#include "odecast/observations/observed_run.hpp"

namespace odecast {

/// The one-step method of the segments: its sensitivities are those of the discrete flow, exactly.
enum class FlowMethod {
  rk4,  ///< the classical method of order 4
  rk8,  ///< Fehlberg's method of order 8 (NASA TR R-287, 1968), for data whose noise is small
};

/// How segments are integrated.
struct Flow {
  FlowMethod method = FlowMethod::rk4;
  double longest_step = 0;  ///< intervals are cut into equal steps of at most this; 0: one step
  int substeps = 1;         ///< each of those cut again
};

/// Weak-constraint multiple shooting. The runs are cut into segments j of consecutive observations,
/// each with its own start s_j; F_j is the discrete flow of du/dt = Σ θ_c φ_c(u, w(t)), w the
/// inputs of the run, from the start of segment j to that of the next. Steps end where an input may
/// jump or bend. Of θ and all s_j,
///   cost = Σ_obs w (y - u)² / σ²  +  Σ_j |η_j / g|²  +  κ |θ|²,   η_j = F_j(s_j) - s_{j+1},
/// with g the sd of a gap η, per variable: g → ∞ leaves the segments independent, g → 0 is single
/// shooting along each run. Behind the coefficients θ has the numbers inside functions. (Bock 1987
/// for the shooting; Trémolet 2006 for the weak constraint.)
class Shooting {
 public:
  /// Segments of about `per_segment` observations, never across runs. Terms are of the
  /// variables and behind them the inputs. What evaluations and sweeps cost is counted in the
  /// budget, where one is given.
  Shooting(std::vector<ObservedRun> runs, TermLibrary library, int per_segment, Flow flow,
           int threads = 1, Budget* budget = nullptr);

  int threads() const { return threads_; }
  int dimension() const { return static_cast<int>(runs_.front().values.cols()); }
  int inputs() const { return basis().variables() - dimension(); }
  int segments() const { return static_cast<int>(segments_.size()); }
  const std::vector<ObservedRun>& runs() const { return runs_; }
  const TermLibrary& library() const { return library_; }
  const MonomialBasis& basis() const { return *library_.basis; }
  const Flow& flow() const { return flow_; }
  const Vector& noise() const { return noise_; }
  /// Observed values of each variable.
  const Vector& counts() const { return counts_; }

  struct Segment {
    int run, first, count;  ///< its observations
    bool last;              ///< of its run: it ends at the run's last observation
    int intervals() const { return last ? count - 1 : count; }
  };
  const Segment& segment(int j) const { return segments_[static_cast<std::size_t>(j)]; }
  int per_segment() const { return per_segment_; }
  /// About how many operations an evaluation of so many coefficients takes, with so many nodes of
  /// functions.
  double work(long theta, bool sensitivities, long nodes = 0) const;
  void spend(double operations) const {
    if (budget_) budget_->spend(operations);
  }
  /// Mean time from one segment's start to the next one's; 0 where every run is one segment.
  double segment_time() const;

  void set_noise(const Vector& sd);
  void set_flow(const Flow& flow);
  /// Weights of the observations, run by run.
  void set_weights(const std::vector<Matrix>& weights);

  /// The flow of all segments from `starts` (segments × variables), and with `sensitivities` the
  /// normal equations of their observations.
  struct Evaluation {
    double misfit = 0;  ///< Σ_obs w (y - u)² / σ²; not finite where a segment blows up
    Vector squares;     ///< Σ_obs w (y - u)² of each variable
    Matrix ends;        ///< segments × variables
    /// With C = variables + size of θ + 1: S_start' W [S_start, S_theta, r], and S = [∂u/∂s, ∂u/∂θ]
    /// at the end; (segments × variables) rows each.
    Matrix state_rows, flow;
    Matrix theta_theta;     ///< Σ S_theta' W S_theta
    Vector theta_residual;  ///< Σ S_theta' W r
  };
  Evaluation evaluate(const Support& support, const Vector& theta, const Matrix& starts,
                      bool sensitivities) const;

  /// u at every observation, run by run.
  std::vector<Matrix> path(const Support& support, const Vector& theta, const Matrix& starts) const;

  /// Largest difference of the segments' ends between this flow and another, per variable.
  Vector flow_error(const Flow& other, const Support& support, const Vector& theta,
                    const Matrix& starts) const;

 private:
  void lay_out();
  void lay_out_inputs();
  void lay_out_weights();
  Evaluation run_jobs(const Support& support, const Vector& theta, const Matrix& starts,
                      bool sensitivities, double* path) const;

  std::vector<ObservedRun> runs_;
  TermLibrary library_;
  std::vector<Segment> segments_;
  Flow flow_;
  int per_segment_, threads_, slots_ = 0, blocks_ = 0;
  Budget* budget_;
  Vector noise_, counts_;
  std::vector<int> substeps_, first_piece_;
  AlignedDoubles length_, observed_, root_weight_, piece_length_, piece_inputs_;
};

/// The cost beside the observations': continuity, with the sd of a gap per variable, and the prior
/// of θ.
constexpr double kThetaPrior = 1e-6;  ///< κ: sd 1000 in model units
double continuity_cost(const Shooting& shooting, const Shooting::Evaluation& evaluation,
                       const Matrix& starts, const Vector& gap_sd);
double total_cost(const Shooting& shooting, const Shooting::Evaluation& evaluation,
                  const Vector& theta, const Matrix& starts, const Vector& gap_sd);

/// One Gauss–Newton step by a forward information sweep: the linearised cost is minimised over the
/// segment starts one after another, given θ. At segment j what is known of δs from the left is
/// normal with mean a + D δθ and information Λ; with the segment's own normal equations H, g
///   M = (Λ + H_ss)⁻¹,  m = a + M (g_s - H_ss a),  E = D - M (H_ss D + H_sθ):  δs | δθ ~ (m + E δθ,
///   M), Q += Dᵀ(H_ss E + H_sθ) + H_sθᵀ E + H_θθ,  γ -= Dᵀ(H_ss m - g_s) + H_sθᵀ m - g_θ,
/// and through the flow s' = F + A δs + P δθ into the next: V = A M Aᵀ + W, W = diag(g²), G = M Aᵀ
/// V⁻¹, Λ = V⁻¹, a = A m + F - s', D = A E + P. No term grows as g → 0. In the end Q δθ = γ, and
/// backwards
///   δs_j = m_j + E_j δθ + G_j (δs_{j+1} - a_{j+1} - D_{j+1} δθ).
struct Sweep {
  Matrix Q;      ///< information of θ, its prior included, without damping
  Vector gamma;  ///< half the downhill gradient in θ, states eliminated
  // Stacked over segments: (segments × variables) rows.
  Matrix m, E, G, a, D;
  Matrix M, information;  ///< M_j and Λ_j
  /// End of the last segment of each run: u = end + end_mean + end_slope δθ, covariance given θ.
  struct End {
    Vector mean;
    Matrix slope, covariance;
  };
  std::vector<End> ends;
};
/// `damping` adds damping × (observations of the segment)/σ² to each state's information.
Sweep sweep(const Shooting& shooting, const Shooting::Evaluation& evaluation, const Vector& theta,
            const Matrix& starts, const Vector& gap_sd, double damping = 0);

/// Q δθ = γ with damping × diag Q added.
Vector theta_step(const Sweep& s, double damping);
/// δs of all segments (segments × variables) for a step in θ.
Matrix state_steps(const Shooting& shooting, const Sweep& s, const Vector& dtheta);

/// One step of MacKay's iteration for the gaps' variances W_i = g_i² that make the data most
/// likely, from a sweep at the minimum of the cost:
///   W_i ← Σ_j η_ji² / Σ_j (1 - Var(η_ji | data) / W_i),   Cov(η_j | data) = W - W Λ (Λ⁻¹ - P - X
///   Q⁻¹ Xᵀ) Λ W,
/// Λ = V⁻¹ and P what is known of s_{j+1} from the left and from all data, given θ, and X =
/// ∂(s_{j+1} - a_{j+1})/∂θ (MacKay 1992 for the iteration; Durbin & Koopman 2012, §4.5, for the
/// smoothed disturbances). `covariance` is Q⁻¹. Returns g.
Vector likelier_gaps(const Shooting& shooting, const Shooting::Evaluation& evaluation,
                     const Sweep& sweep, const Matrix& starts, const Vector& gap_sd,
                     const Matrix& covariance);

/// By which factor λ ≥ 1 the gaps' variance must grow for forecasts within the data to be held by
/// their 95 % bands, where gaps are not independent but alike at neighbours, as a motion that the
/// equations lack makes them. From every segment start s_j, over l = 1, 2, 3, 4, 6, 9 … segments,
/// up to a quarter of them all or 100, the forecast errs by F^l(s_j) - s_{j+l} with, to first
/// order, the covariance
///   λ S + Z C Zᵀ,   S ← A S Aᵀ + W,   Z ← A Z + P,
/// C that of θ. λ is the 95 % quantile of what the errors need one by one, all leads and all
/// variables that are `active` (not 0) together.
double gaps_needed(const Shooting& shooting, const Support& support, const Vector& theta,
                   const Matrix& starts, const Vector& gap_sd, const Matrix& covariance,
                   const Vector& active);

}  // namespace odecast
