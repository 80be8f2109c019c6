#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "odecast/observations/dataset.hpp"

namespace odecast {

enum class EmbeddingKind { delays, derivatives };

/// How one measured variable x becomes several, from rows that are evenly spaced by h. No
/// coordinate of a row looks at later rows, so that what is held out stays held out.
///   delays:       x(t), x(t - τ), x(t - 2 τ) …, τ = lag h
///   derivatives:  x(t), x'(t), x''(t) …, those of the parabola, or for more of the polynomial of
///                 one degree more, that fits the lag + 1 last rows best.
/// (Takens 1981; Packard et al., Phys. Rev. Lett. 45 (1980) 712.)
struct Embedding {
  EmbeddingKind kind = EmbeddingKind::delays;
  int count = 3;    ///< coordinates, the measured one among them
  int lag = 1;      ///< rows
  double step = 1;  ///< h
  /// The rows before one that its coordinates need.
  int history() const { return kind == EmbeddingKind::delays ? (count - 1) * lag : lag; }
  bool operator==(const Embedding&) const = default;
};

/// "delays:3"
std::string embedding_name(const Embedding& embedding);
/// Kind and count of such a text; nothing where it is none.
std::optional<Embedding> embedding_from_name(std::string_view name);

/// The same with lag and step for these data. The time on which x forgets itself is the first lag
/// at which its autocorrelation falls below 1/e (or, of one that oscillates, at most the first
/// below 0); delays are a half of it, derivatives are taken over a third, at least as many rows as
/// they need. Throws Error (data) for more than one variable, uneven rows, or too few.
Embedding fitted_embedding(const Dataset& data, Embedding kind_and_count);

/// The coordinates of every row that has its history, "x", "x(t-0.2)", "x(t-0.4)" or "x", "x'",
/// "x''"; gaps begin a trajectory anew. Throws Error (data) for rows that are not spaced by h, or
/// too few.
Dataset embedded(const Dataset& data, const Embedding& embedding);

}  // namespace odecast
