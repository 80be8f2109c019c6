#pragma once

#include "odecast/core/detail/kernel.hpp"
#include "odecast/field/node.hpp"

namespace odecast {

/// What the segment kernels see: plain numbers and pointers. Segments stand in blocks of eight, one
/// per lane; lane l of slot k is at [k × 8 + l], variable i of it at [(k × variables + i) × 8 + l].
/// Slot 0 is the observation at the segment's start, slot k > 0 an interval and the observation at
/// its end. A lane whose segment has fewer slots goes on with intervals of length 0 and no weight.
struct SegmentJob {
  int variables, slots, blocks;
  int order;  ///< of the method: 4 (Kutta) or 8 (Fehlberg)
  bool sensitivities;

  // The field, as FieldLists has it: du_i/dt = Σ over terms c of equation i of theta[c]
  // φ_{term[c]}(u, w), w the inputs.
  int monomials;                 ///< that are needed, the constant first
  const int *parent, *variable;  ///< φ_m = φ_parent × argument number `variable` of (u, w), m > 0
  const Node* tape;              ///< φ_m, m >= monomials
  int nodes, value_nodes;        ///< of the tape; without slopes the first of them suffice
  int parameters;                ///< of the tape
  const double* parameter_values;
  int terms;
  const int *equation, *term;  ///< of each term
  int summed;                  ///< those whose coefficient is not 0
  const int *summed_equation, *summed_term;
  const double* summed_theta;
  int slopes;              ///< entries of the Jacobian: ∂f_row/∂u_column += value φ
  const int* slope_place;  ///< row × variables + column
  const int* slope_term;
  const double* slope_value;
  int numbers;  ///< inside functions: columns of S behind those of the terms
  const int *first_force, *force_equation, *force_term;  ///< ∂f_equation/∂z += value φ_term
  const double* force_value;

  const int* substeps;        ///< block × slots
  const double* length;       ///< block × slots × 8: of the interval that ends here
  const double* observed;     ///< block × slots × variables × 8
  const double* root_weight;  ///< the same: √w / σ, 0 where nothing is observed
  const double* starts;       ///< block × variables × 8

  // With inputs, each interval is a row of pieces on which they are linear in time; each piece is
  // cut into `substeps`.
  int inputs;
  const int* first_piece;  ///< block × slots, and one beyond: pieces [k], …, [k + 1] - 1 are those
                           ///< of slot k
  const double* piece_length;  ///< piece × 8
  const double* piece_inputs;  ///< piece × inputs × (begin, end) × 8

  // Results by block; sums over a segment's observations, S = [∂u/∂start, ∂u/∂theta].
  double* cost;     ///< block × 8: Σ |weighted residual|²
  double* squares;  ///< block × variables × 8: the same by variable
  double* end;      ///< block × variables × 8: state at the end
  double* path;     ///< block × slots × variables × 8: the state at every slot; or null
  // With sensitivities, C = variables + terms + numbers + 1 columns (start, theta, residual):
  double* state_rows;  ///< block × variables × C × 8: S_start' W [S, r]
  double* flow;        ///< block × variables × (C - 1) × 8: S at the end
  double* theta_rows;  ///< theta × C: S_theta' W [·, S_theta, r] over all segments; upper part only
  double* work;        ///< segment_work_size() doubles, aligned to 64 bytes
};

constexpr int kHistory = 8;      ///< observations that are added to the normal matrix at once
constexpr int kFlowStages = 12;  ///< of the longest method

/// `values` are monomials and nodes, `theta` terms and numbers.
constexpr long segment_work_size(int n, int inputs, int theta, int values, int parameters) {
  const long columns = n + theta + 1L;
  return 8 *
         (kFlowStages * (3L * n + static_cast<long>(values) + static_cast<long>(n) * n) + 4L * n +
          inputs + parameters + columns * n + columns * n * kHistory + columns * (columns + 1));
}

ODECAST_KERNEL(run_segments, const SegmentJob)

}  // namespace odecast
