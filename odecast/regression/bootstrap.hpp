#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "odecast/regression/selection.hpp"

namespace odecast {

/// Least squares on rows drawn again with replacement, in circular blocks so that neighbours which
/// depend on each other stay together (Künsch, Ann. Statist. 17 (1989) 1217; Politis & Romano,
/// 1992). Rows [A | Y] come in chunks c of neighbours; a block is kChunksPerBlock of them from any
/// chunk on, the first following the last, and a replicate is as many blocks as make up the number
/// of chunks.
///
/// A replicate never sees the rows. With A = Q R of all rows, every chunk leaves
///   G_c = Q_cᵀ Q_c,   h_c = Q_cᵀ Y_c,   y_c = |Y_c|²,   Q_c = A_c R⁻¹,
/// and multiplicities m_c give x = R⁻¹ G⁻¹ Σ m_c h_c, G = Σ m_c G_c. These are normal equations,
/// but those of Q: Σ G_c = I, so that G is near I and nothing is lost to its condition. Rows that
/// the model explains exactly give the same x in every replicate.
class BlockBootstrap {
 public:
  static constexpr int kChunksPerBlock = 4;

  /// `triangle` of [A | Y], the first `unknowns` columns being A's. A column that those before it
  /// determine, to 1e-10, is left out: its unknown is 0.
  BlockBootstrap(const Eigen::MatrixXd& triangle, int unknowns);

  /// The next chunk, [A_c | Y_c].
  void add(const Eigen::MatrixXd& chunk);
  int chunks() const { return static_cast<int>(parts_.size()); }
  double rows() const { return rows_; }

  /// How often each chunk is in a replicate.
  std::vector<int> multiplicities(std::uint64_t seed, std::uint64_t replicate) const;
  /// The unknowns of one column of Y, with the covariance that the residuals of the replicate give,
  /// or that of rows of variance `least` where that is more.
  Estimate replicate(const std::vector<int>& multiplicities, int output, double least) const;

 private:
  struct Part {
    Eigen::MatrixXd gram, pull;  // G_c, h_c
    Eigen::VectorXd square;      // y_c
  };
  int unknowns_;
  std::vector<int> kept_;
  Eigen::MatrixXd inverse_;  // R⁻¹ of the columns kept
  std::vector<Part> parts_;
  double rows_ = 0;
};

/// Rows in a chunk, for blocks of so many.
int chunk_rows(double block);

}  // namespace odecast
