#include "odecast/shooting/shooting.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>
#include <complex>

#include "odecast/core/random.hpp"
#include "odecast/field/vector_field.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

/// du/dt of the field, for any number type.
template <class Real>
std::vector<Real> field(const MonomialBasis& basis, const Support& support,
                        const std::vector<Real>& theta, const std::vector<Real>& u) {
  std::vector<Real> f(u.size(), Real(0));
  for (std::size_t c = 0; c < support.size(); ++c) {
    Real term = theta[c];
    for (std::size_t v = 0; v < u.size(); ++v)
      for (int p = 0; p < basis.powers(support[c].term)[v]; ++p) term *= u[v];
    f[static_cast<std::size_t>(support[c].equation)] += term;
  }
  return f;
}

template <class Real>
std::vector<Real> rk4(const MonomialBasis& basis, const Support& support,
                      const std::vector<Real>& theta, std::vector<Real> u, double h) {
  const auto at = [&](const std::vector<Real>& k, double a) {
    std::vector<Real> v = u;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] += a * k[i];
    return field(basis, support, theta, v);
  };
  const auto k1 = field(basis, support, theta, u), k2 = at(k1, h / 2), k3 = at(k2, h / 2),
             k4 = at(k3, h);
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] += h / 6 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
  return u;
}

/// A random problem: irregular times, missing values, runs of different lengths.
struct Problem {
  std::shared_ptr<const MonomialBasis> basis;
  std::vector<ObservedRun> runs;
  Support support;
  Vector theta;
  Matrix starts;

  Problem(int n, int degree, std::vector<int> rows, std::uint64_t seed)
      : basis(std::make_shared<MonomialBasis>(n, degree)) {
    Stream stream(seed, Purpose::initial_state, 0);
    for (const int count : rows) {
      ObservedRun run{{}, Matrix(count, n), Matrix::Ones(count, n)};
      double t = 0;
      for (int k = 0; k < count; ++k) {
        run.times.push_back(t += 0.02 + 0.08 * stream.uniform());
        for (int i = 0; i < n; ++i) {
          run.values(k, i) = stream.normal();
          if (stream.uniform() < 0.2) run.weights(k, i) = 0;
        }
      }
      runs.push_back(std::move(run));
    }
    for (int i = 0; i < n; ++i)
      for (int m = 0; m < basis->size(); ++m)
        if (stream.uniform() < 0.5) support.push_back({i, m});
    theta.resize(static_cast<long>(support.size()));
    for (auto& x : theta) x = 0.5 * stream.normal();
  }
  Shooting shooting(int per_segment, Flow flow = {}) {
    Shooting s(runs, {basis}, per_segment, flow);
    Vector noise(basis->variables());
    for (int i = 0; i < noise.size(); ++i) noise[i] = 0.5 + 0.25 * i;
    s.set_noise(noise);
    Stream stream(9, Purpose::initial_state, 1);
    starts.resize(s.segments(), basis->variables());
    for (long j = 0; j < starts.rows(); ++j)
      for (long i = 0; i < starts.cols(); ++i) starts(j, i) = 0.7 * stream.normal();
    return s;
  }
};

TEST(ShootingTest, SensitivitiesAreTheComplexStepDerivativesOfTheSameFlow) {
  // Im F(x + iε)/ε is the derivative to round-off (Squire & Trapp, SIAM Rev. 40 (1998) 110).
  using C = std::complex<double>;
  for (const int n : {2, 3, 4}) {
    Problem problem(n, 3, {9, 5, 31}, 7);
    const Shooting s = problem.shooting(4);
    const auto e = s.evaluate(problem.support, problem.theta, problem.starts, true);
    const auto p = problem.theta.size();
    for (int j = 0; j < s.segments(); ++j) {
      const auto& segment = s.segment(j);
      const auto& times = s.runs()[static_cast<std::size_t>(segment.run)].times;
      for (long c = 0; c < n + p; ++c) {
        std::vector<C> u, theta(problem.theta.begin(), problem.theta.end());
        for (int i = 0; i < n; ++i) u.push_back(problem.starts(j, i));
        constexpr double epsilon = 1e-30;
        (c < n ? u[static_cast<std::size_t>(c)] : theta[static_cast<std::size_t>(c - n)]) +=
            C(0, epsilon);
        for (int k = 0; k < segment.intervals(); ++k)
          u = rk4(*problem.basis, problem.support, theta, u,
                  times[static_cast<std::size_t>(segment.first + k + 1)] -
                      times[static_cast<std::size_t>(segment.first + k)]);
        for (int i = 0; i < n; ++i) {
          const double slope = u[static_cast<std::size_t>(i)].imag() / epsilon;
          EXPECT_NEAR(e.flow(j * n + i, c), slope, 1e-12 * (1 + std::abs(slope)));
          EXPECT_NEAR(e.ends(j, i), u[static_cast<std::size_t>(i)].real(),
                      1e-13 * (1 + std::abs(e.ends(j, i))));
        }
      }
    }
  }
}

TEST(ShootingTest, SensitivitiesOfFunctionsAndOfNumbersInsideAreThoseOfDifferences) {
  // Two functions with numbers, one of which both equations share, beside monomials.
  Problem problem(2, 2, {9, 5, 31}, 11);
  Tape tape({"x", "y"});
  const int hill = parse_expression("x^2/(k^2 + x^2)", tape),
            wave = parse_expression("y*sin(x - m)", tape),
            plain = parse_expression("exp(-y)", tape);
  Vector offset(2), scale(2);
  offset << 0.3, 0;
  scale << 1.5, 0.7;
  const auto functions = std::make_shared<const FunctionTerms>(
      tape, std::vector<FunctionTerms::Term>{{hill, 1}, {wave, 2}, {plain, 0.5}},
      std::vector<InnerNumber>{{"k", 0.8, 2e-3, true}, {"m", 0.1, 1e-2, false}}, offset, scale, 2);
  const TermLibrary library{problem.basis, functions};
  const int F = problem.basis->size();
  const Support support = {{0, 2}, {0, F}, {0, F + 1}, {1, 1}, {1, F}, {1, F + 2}};
  Vector theta(8);
  theta << 0.9, -1.1, 0.4, -0.6, 0.7, 0.3, 120, -35;  // the last two are z of k and m
  EXPECT_EQ(numbers_inside(library, support), (std::vector{0, 1}));
  problem.shooting(4);
  for (const FlowMethod method : {FlowMethod::rk4, FlowMethod::rk8}) {
    const Shooting s(problem.runs, library, 4, {method, 0, 1});
    Matrix starts(s.segments(), 2);
    Stream stream(3, Purpose::initial_state, 0);
    for (auto& x : starts.reshaped()) x = 0.7 * stream.normal();
    const auto e = s.evaluate(support, theta, starts, true);
    const auto plainly = s.evaluate(support, theta, starts, false);
    EXPECT_EQ(e.ends, plainly.ends);
    for (long c = 0; c < theta.size(); ++c) {
      const double h = c < 6 ? 1e-4 : 0.1;
      const auto at = [&](double by) {
        Vector moved = theta;
        moved[c] += by;
        return s.evaluate(support, moved, starts, false).ends;
      };
      const Matrix slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      for (int j = 0; j < s.segments(); ++j)
        for (int i = 0; i < 2; ++i)
          EXPECT_NEAR(e.flow(j * 2 + i, 2 + c), slope(j, i),
                      1e-9 * (1e-3 + slope.cwiseAbs().maxCoeff()))
              << "column " << c;
    }
    // What a field of the same terms gives at the starts.
    const SparseField field{library, support, theta};
    const VectorField dense_field(dense(field, 2));
    const Vector u = starts.row(0).transpose();
    Vector f(2), above(2), below(2);
    dense_field(0, u.data(), f.data());
    EXPECT_LT((design(field, u, 2).leftCols(6) * theta.head(6) - f).norm(), 1e-14 * f.norm());
    const Matrix J = jacobian(dense_field, u);
    for (int v = 0; v < 2; ++v) {
      Vector moved = u;
      moved[v] = u[v] + 1e-5;
      dense_field(0, moved.data(), above.data());
      moved[v] = u[v] - 1e-5;
      dense_field(0, moved.data(), below.data());
      EXPECT_LT((J.col(v) - (above - below) / 2e-5).norm(), 1e-8 * J.norm());
    }
  }
}

/// Runs whose inputs are known at more times than the states: a held one and a linear one.
struct DrivenProblem {
  int n;
  std::shared_ptr<const MonomialBasis> basis;
  std::vector<ObservedRun> runs;
  Support support;
  Vector theta;

  DrivenProblem(int variables, std::vector<int> rows, std::uint64_t seed)
      : n(variables), basis(std::make_shared<MonomialBasis>(n + 2, 2)) {
    Stream stream(seed, Purpose::initial_state, 0);
    for (const int count : rows) {
      ObservedRun run{{}, Matrix::Zero(count, n), Matrix::Ones(count, n), {}, 1};
      std::vector<double> knots = {0.3};
      for (int k = 0; k < count; ++k) {
        run.times.push_back(knots.back());
        const int between = static_cast<int>(4 * stream.uniform());
        for (int i = 0; i <= between; ++i)
          knots.push_back(knots.back() + 0.01 + 0.04 * stream.uniform());
      }
      Matrix w(static_cast<long>(knots.size()), 2);
      for (long i = 0; i < w.rows(); ++i) w.row(i) << stream.normal(), stream.normal();
      run.inputs = {knots, w};
      runs.push_back(std::move(run));
    }
    for (int i = 0; i < n; ++i)
      for (int m = 0; m < basis->size(); ++m)
        if (stream.uniform() < 0.5) support.push_back({i, m});
    theta.resize(static_cast<long>(support.size()));
    for (auto& x : theta) x = 0.5 * stream.normal();
  }
  Matrix starts(const Shooting& s) const {
    Stream stream(9, Purpose::initial_state, 1);
    Matrix result(s.segments(), n);
    for (long j = 0; j < result.rows(); ++j)
      for (long i = 0; i < n; ++i) result(j, i) = 0.7 * stream.normal();
    return result;
  }
};

TEST(ShootingTest,
     DrivenSensitivitiesAreTheComplexStepDerivativesOfTheFlowFromRowToRowOfTheInputs) {
  using C = std::complex<double>;
  for (const int n : {1, 2, 3, 4}) {
    // 1250 rows make more segments than one job takes.
    const DrivenProblem problem(
        n, n == 2 ? std::vector<int>{9, 5, 31, 1250} : std::vector<int>{9, 5, 31}, 7);
    const Shooting s(problem.runs, {problem.basis}, 4, {});
    EXPECT_EQ(s.dimension(), n);
    const Matrix starts = problem.starts(s);
    const auto e = s.evaluate(problem.support, problem.theta, starts, true);
    for (int j = 0; j < s.segments(); ++j) {
      const auto& segment = s.segment(j);
      const ObservedRun& run = s.runs()[static_cast<std::size_t>(segment.run)];
      const auto& knots = run.inputs.times;
      const double begin = run.times[static_cast<std::size_t>(segment.first)],
                   end = run.times[static_cast<std::size_t>(segment.first + segment.intervals())];
      for (long c = 0; c < n + problem.theta.size(); ++c) {
        std::vector<C> u, theta(problem.theta.begin(), problem.theta.end());
        for (int i = 0; i < n; ++i) u.push_back(starts(j, i));
        constexpr double epsilon = 1e-30;
        (c < n ? u[static_cast<std::size_t>(c)] : theta[static_cast<std::size_t>(c - n)]) +=
            C(0, epsilon);
        for (std::size_t k = 0; k + 1 < knots.size(); ++k) {
          if (knots[k] < begin || knots[k] >= end) continue;
          const double h = knots[k + 1] - knots[k];
          const auto row = static_cast<long>(k);
          const auto slope = [&](const std::vector<C>& at, double x) {
            std::vector<C> arguments = at;
            arguments.push_back(run.inputs.values(row, 0));
            arguments.push_back((1 - x) * run.inputs.values(row, 1) +
                                x * run.inputs.values(row + 1, 1));
            return field(*problem.basis, problem.support, theta, arguments);
          };
          const auto moved = [&](const std::vector<C>& f, double a) {
            std::vector<C> v = u;
            for (std::size_t i = 0; i < v.size(); ++i) v[i] += a * f[i];
            return v;
          };
          const auto k1 = slope(u, 0), k2 = slope(moved(k1, h / 2), 0.5),
                     k3 = slope(moved(k2, h / 2), 0.5), k4 = slope(moved(k3, h), 1);
          for (std::size_t i = 0; i < u.size(); ++i)
            u[i] += h / 6 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
        for (int i = 0; i < n; ++i) {
          const double slope = u[static_cast<std::size_t>(i)].imag() / epsilon;
          EXPECT_NEAR(e.flow(j * n + i, c), slope, 1e-12 * (1 + std::abs(slope)));
          EXPECT_NEAR(e.ends(j, i), u[static_cast<std::size_t>(i)].real(),
                      1e-13 * (1 + std::abs(e.ends(j, i))));
        }
      }
    }
  }
}

TEST(ShootingTest, ALinearInputIsAVariableWithAConstantSlope) {
  // w = 0.2 + 0.7 t as an input, or as a variable with dw/dt = 0.7: every Runge–Kutta method has w
  // exactly at its stages (row sums of a are c), so flow and sensitivities are the same numbers but
  // for round-off.
  for (const int n : {2, 3}) {
    const MonomialBasis basis(n + 1, 3);
    Stream stream(5, Purpose::initial_state, 0);
    ObservedRun driven{{}, Matrix::Zero(12, n), Matrix::Ones(12, n)},
        whole{{}, Matrix::Zero(12, n + 1), Matrix::Ones(12, n + 1)};
    double t = 0;
    driven.inputs.values.resize(12, 1);
    for (int k = 0; k < 12; ++k) {
      driven.times.push_back(t);
      driven.inputs.values(k, 0) = 0.2 + 0.7 * t;
      t += 0.1 + 0.2 * stream.uniform();
    }
    driven.inputs.times = whole.times = driven.times;
    Support support;
    std::vector<double> theta;
    for (int i = 0; i < n; ++i)
      for (int m = 0; m < basis.size(); ++m)
        if (stream.uniform() < 0.5)
          support.push_back({i, m}), theta.push_back(0.3 * stream.normal());
    Support with_slope = support;
    with_slope.push_back({n, 0});
    const auto p = static_cast<long>(support.size());
    Vector coefficients(p + 1);
    for (long c = 0; c < p; ++c) coefficients[c] = theta[static_cast<std::size_t>(c)];
    coefficients[p] = 0.7;
    for (const FlowMethod method : {FlowMethod::rk4, FlowMethod::rk8}) {
      const auto shared = std::make_shared<MonomialBasis>(n + 1, 3);
      const Flow flow{method, 0.07, 1};
      const Shooting a({driven}, {shared}, 3, flow), b({whole}, {shared}, 3, flow);
      ASSERT_EQ(a.segments(), b.segments());
      Matrix starts(a.segments(), n + 1);
      for (int j = 0; j < a.segments(); ++j) {
        for (int i = 0; i < n; ++i) starts(j, i) = 0.5 * stream.normal();
        starts(j, n) = driven.inputs.values(a.segment(j).first, 0);
      }
      const auto ea = a.evaluate(support, coefficients.head(p), starts.leftCols(n), true);
      const auto eb = b.evaluate(with_slope, coefficients, starts, true);
      for (int j = 0; j < a.segments(); ++j)
        for (int i = 0; i < n; ++i) {
          EXPECT_NEAR(ea.ends(j, i), eb.ends(j, i), 1e-13);
          for (int c = 0; c < n; ++c)
            EXPECT_NEAR(ea.flow(j * n + i, c), eb.flow(j * (n + 1) + i, c), 1e-12);
          for (long c = 0; c < p; ++c)
            EXPECT_NEAR(ea.flow(j * n + i, n + c), eb.flow(j * (n + 1) + i, n + 1 + c), 1e-12);
        }
    }
  }
}

TEST(ShootingTest, NormalEquationsAreHalfTheDerivativesOfTheMisfit) {
  for (const FlowMethod method : {FlowMethod::rk4, FlowMethod::rk8}) {
    Problem problem(3, 2, {14, 23}, 3);
    const Shooting s = problem.shooting(5, {method, 0.04, 1});
    const auto e = s.evaluate(problem.support, problem.theta, problem.starts, true);
    const auto misfit = [&](const Vector& theta, const Matrix& starts) {
      return s.evaluate(problem.support, theta, starts, false).misfit;
    };
    EXPECT_EQ(e.misfit, misfit(problem.theta, problem.starts));
    const double h = 1e-5;
    for (long c = 0; c < problem.theta.size(); ++c) {
      Vector up = problem.theta, down = up;
      up[c] += h, down[c] -= h;
      const double slope = (misfit(up, problem.starts) - misfit(down, problem.starts)) / (2 * h);
      EXPECT_NEAR(-2 * e.theta_residual[c], slope, 1e-6 * (1 + std::abs(slope)));
    }
    for (int j = 0; j < s.segments(); ++j)
      for (int i = 0; i < 3; ++i) {
        Matrix up = problem.starts, down = up;
        up(j, i) += h, down(j, i) -= h;
        const double slope = (misfit(problem.theta, up) - misfit(problem.theta, down)) / (2 * h);
        EXPECT_NEAR(-2 * e.state_rows(j * 3 + i, e.state_rows.cols() - 1), slope,
                    1e-6 * (1 + std::abs(slope)));
      }
  }
}

/// The linearised cost as one dense least-squares problem: rows are weighted residuals, columns θ
/// and all starts. Sensitivities at the observations come from segments cut off there.
struct Dense {
  Eigen::MatrixXd J;
  Vector r;
  Dense(Problem& problem, const Shooting& s, double q) {
    const int n = s.dimension();
    const long p = problem.theta.size(), unknowns = p + static_cast<long>(s.segments()) * n;
    std::vector<Vector> rows;
    std::vector<double> right;
    for (int j = 0; j < s.segments(); ++j) {
      const auto& segment = s.segment(j);
      const auto& run = s.runs()[static_cast<std::size_t>(segment.run)];
      for (int k = 0; k < segment.count; ++k) {
        ObservedRun part{
            {run.times.begin() + segment.first, run.times.begin() + segment.first + k + 1},
            Matrix::Zero(k + 1, n),
            Matrix::Zero(k + 1, n)};
        const Shooting one({part}, s.library(), k + 1, s.flow());
        const auto e = one.evaluate(problem.support, problem.theta, problem.starts.row(j), true);
        for (int i = 0; i < n; ++i) {
          const double w = std::sqrt(run.weights(segment.first + k, i)) / s.noise()[i];
          Vector row = Vector::Zero(unknowns);
          row.head(p) = w * e.flow.row(i).tail(p).transpose();
          row.segment(p + j * n, n) = w * e.flow.row(i).head(n).transpose();
          rows.push_back(row);
          right.push_back(w * (run.values(segment.first + k, i) - e.ends(0, i)));
        }
      }
      if (segment.last) continue;
      const auto e = s.evaluate(problem.support, problem.theta, problem.starts, true);
      for (int i = 0; i < n; ++i) {
        const double w = 1 / (q * s.noise()[i]);
        Vector row = Vector::Zero(unknowns);
        row.head(p) = w * e.flow.row(j * n + i).tail(p).transpose();
        row.segment(p + j * n, n) = w * e.flow.row(j * n + i).head(n).transpose();
        row[p + (j + 1) * n + i] -= w;
        rows.push_back(row);
        right.push_back(-w * (e.ends(j, i) - problem.starts(j + 1, i)));
      }
    }
    for (long c = 0; c < p; ++c) {
      Vector row = Vector::Zero(unknowns);
      row[c] = std::sqrt(kThetaPrior);
      rows.push_back(row);
      right.push_back(-std::sqrt(kThetaPrior) * problem.theta[c]);
    }
    J.resize(static_cast<long>(rows.size()), unknowns);
    r = Eigen::Map<Vector>(right.data(), static_cast<long>(right.size()));
    for (std::size_t k = 0; k < rows.size(); ++k) J.row(static_cast<long>(k)) = rows[k].transpose();
  }
};

TEST(ShootingTest, SweepSolvesTheDenseNormalEquations) {
  for (const double q : {0.01, 1.0, 30.0}) {
    Problem problem(2, 2, {60, 41}, 11);
    const Shooting s = problem.shooting(6);
    const auto e = s.evaluate(problem.support, problem.theta, problem.starts, true);
    const Sweep done = sweep(s, e, problem.theta, problem.starts, q * s.noise());
    const Vector dtheta = theta_step(done, 0);
    const Matrix ds = state_steps(s, done, dtheta);
    const Dense dense(problem, s, q);
    const Eigen::MatrixXd N = dense.J.transpose() * dense.J;
    const Vector x = N.ldlt().solve(dense.J.transpose() * dense.r);
    const long p = problem.theta.size();
    const double size = x.cwiseAbs().maxCoeff();
    for (long c = 0; c < p; ++c) EXPECT_NEAR(dtheta[c], x[c], 1e-7 * size) << q;
    for (int j = 0; j < s.segments(); ++j)
      for (int i = 0; i < 2; ++i) EXPECT_NEAR(ds(j, i), x[p + j * 2 + i], 1e-7 * size) << q;
    // Covariance of θ and, jointly, of the end of the last run.
    const Eigen::MatrixXd covariance =
        N.ldlt().solve(Eigen::MatrixXd::Identity(N.rows(), N.cols()));
    const Eigen::MatrixXd of_theta = done.Q.inverse();
    EXPECT_LT((of_theta - covariance.topLeftCorner(p, p)).norm(), 1e-6 * of_theta.norm());
    Eigen::MatrixXd end = Eigen::MatrixXd::Zero(2, N.cols());
    const long last = s.segments() - 1;
    end.leftCols(p) = e.flow.block(last * 2, 2, 2, p);
    end.rightCols(2) = e.flow.block(last * 2, 0, 2, 2);
    const Eigen::MatrixXd exact = end * covariance * end.transpose();
    const Eigen::MatrixXd swept =
        done.ends.back().covariance +
        done.ends.back().slope * of_theta * done.ends.back().slope.transpose();
    EXPECT_LT((exact - swept).norm(), 1e-6 * exact.norm());
    // Half the gradient with the states eliminated is what the θ-step solves for.
    EXPECT_LT((done.Q * dtheta - done.gamma).norm(), 1e-8 * done.gamma.norm());
    // The gaps' likelier sd, with the covariance of all unknowns.
    const Vector gap_sd = q * s.noise();
    Vector squares = Vector::Zero(2), determined = squares;
    for (int j = 0; j < s.segments(); ++j) {
      if (s.segment(j).last) continue;
      for (int i = 0; i < 2; ++i) {
        Vector gap = Vector::Zero(N.cols());
        gap.head(p) = e.flow.row(j * 2 + i).tail(p).transpose();
        gap.segment(p + j * 2, 2) = e.flow.row(j * 2 + i).head(2).transpose();
        gap[p + (j + 1) * 2 + i] = -1;
        squares[i] += std::pow(e.ends(j, i) - problem.starts(j + 1, i), 2);
        determined[i] += 1 - gap.dot(covariance * gap) / (gap_sd[i] * gap_sd[i]);
      }
    }
    const Vector likelier = likelier_gaps(s, e, done, problem.starts, gap_sd, of_theta);
    for (int i = 0; i < 2; ++i)
      EXPECT_NEAR(likelier[i], std::sqrt(squares[i] / determined[i]), 1e-5 * likelier[i]) << q;
  }
}

TEST(ShootingTest, GapsOfTheSizeThatForecastsNeed) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // u' = -u in 4000 segments, kicked at their ends; coefficient known.
  const int segments = 4000;
  const double decay = std::exp(-0.1);
  const auto basis = std::make_shared<MonomialBasis>(1, 1);
  const Support support = {{0, 1}};
  const Vector theta = Vector::Constant(1, -1), gap_sd = Vector::Constant(1, 0.1);
  ObservedRun run{{}, Matrix::Zero(segments + 1, 1), Matrix::Ones(segments + 1, 1)};
  for (int k = 0; k <= segments; ++k) run.times.push_back(0.1 * k);
  const Shooting s({run}, {basis}, 1, {FlowMethod::rk8, 0.1, 1});
  ASSERT_GE(s.segments(), segments);
  // Kicks of that size, each like the last: cov(κ_j, κ_k) = size² ρ^|j-k|.
  const auto needed = [&](double size, double rho, std::uint64_t seed) {
    Stream stream(seed, Purpose::initial_state, 0);
    Matrix starts = Matrix::Zero(s.segments(), 1);
    double kick = stream.normal();
    for (int j = 0; j + 1 < s.segments(); ++j) {
      starts(j + 1, 0) = decay * starts(j, 0) + size * kick;
      kick = rho * kick + std::sqrt(1 - rho * rho) * stream.normal();
    }
    return gaps_needed(s, support, theta, starts, gap_sd, Matrix::Zero(1, 1), Vector::Ones(1));
  };
  // An error over l segments is normal, of r_l times the variance that independent gaps of gap_sd
  // give:
  //   r_l = size² Σ_m Σ_k a^(m+k) ρ^|m-k| / (gap_sd² Σ_m a^2m),   and   mean over l of P(χ²₁ r_l
  //   <= 1.96² λ) = .95.
  const auto exact = [&](double size, double rho) {
    std::vector<double> ratios;
    for (const int lead : {1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94}) {
      double forced = 0, white = 0;
      for (int m = 0; m < lead; ++m) {
        white += std::pow(decay, 2 * m);
        for (int k = 0; k < lead; ++k)
          forced += std::pow(decay, m + k) * std::pow(rho, std::abs(m - k));
      }
      ratios.push_back(size * size * forced / (gap_sd[0] * gap_sd[0] * white));
    }
    double low = 0, high = 1000;
    while (high - low > 1e-9) {
      const double lambda = (low + high) / 2;
      double held = 0;
      for (const double r : ratios)
        held += std::erf(1.959964 * std::sqrt(lambda / r / 2)) / static_cast<double>(ratios.size());
      (held < 0.95 ? low : high) = lambda;
    }
    return low;
  };
  EXPECT_NEAR(exact(0.2, 0), 4, 1e-5);
  for (const double rho : {0.0, 0.9}) {
    const int seeds = 16;
    double sum = 0, squares = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const double x = needed(0.2, rho, seed);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / seeds,
                 error = std::sqrt((squares / seeds - mean * mean) / (seeds - 1));
    std::printf("rho %.1f: %.2f +- %.2f, exactly %.2f\n", rho, mean, error, exact(0.2, rho));
    EXPECT_LT(error, 0.05 * mean) << "of no use as a test";
    EXPECT_NEAR(mean, exact(0.2, rho), 5 * error) << rho;
  }
  EXPECT_NEAR(needed(0.4, 0, 1) / needed(0.2, 0, 1), 4, 1e-9);
  EXPECT_EQ(needed(0.01, 0, 1), 1);
}

TEST(ShootingTest, ContinuityLimits) {
  Problem problem(2, 2, {40}, 5);
  const Shooting s = problem.shooting(8);
  const auto e = s.evaluate(problem.support, problem.theta, problem.starts, true);
  // q → ∞: segments know nothing of each other; Q is the sum of their own Schur complements.
  const Sweep loose = sweep(s, e, problem.theta, problem.starts, 1e8 * s.noise());
  Eigen::MatrixXd Q = e.theta_theta;
  for (int j = 0; j < s.segments(); ++j) {
    const Eigen::MatrixXd Hss = e.state_rows.block(2 * j, 0, 2, 2);
    const Eigen::MatrixXd Hst = e.state_rows.block(2 * j, 2, 2, problem.theta.size());
    Q -= Hst.transpose() * Hss.inverse() * Hst;
  }
  Q.diagonal().array() += kThetaPrior;
  EXPECT_LT((Q - loose.Q).norm(), 1e-8 * Q.norm());
  // q → 0: from starts that lie on one trajectory the step is that of single shooting.
  Matrix chain = problem.starts;
  for (int j = 0; j + 1 < s.segments(); ++j)
    chain.row(j + 1) = s.evaluate(problem.support, problem.theta, chain, false).ends.row(j);
  const auto on = s.evaluate(problem.support, problem.theta, chain, true);
  const Sweep tight = sweep(s, on, problem.theta, chain, 1e-7 * s.noise());
  Shooting whole(problem.runs, {problem.basis}, 40, {});
  whole.set_noise(s.noise());
  const auto one = whole.evaluate(problem.support, problem.theta, chain.topRows(1), true);
  const Sweep shot = sweep(whole, one, problem.theta, chain.topRows(1), 1.0 * whole.noise());
  EXPECT_LT((tight.Q - shot.Q).norm(), 1e-6 * shot.Q.norm());
  EXPECT_LT((tight.gamma - shot.gamma).norm(), 1e-6 * shot.gamma.norm());
}

TEST(ShootingTest, FlowsHaveTheirOrder) {
  // u' = u² from 1/2 is 1/(2 - t). Halving the step divides the error by 2^order.
  const auto basis = std::make_shared<MonomialBasis>(1, 2);
  const Support support = {{0, 2}};
  const auto error = [&](FlowMethod method, int substeps) {
    const Shooting s({{{0, 1.2}, Matrix::Zero(2, 1), Matrix::Zero(2, 1)}}, {basis}, 2,
                     {method, 0, substeps});
    return std::abs(
        s.evaluate(support, Vector::Ones(1), Matrix::Constant(1, 1, 0.5), false).ends(0, 0) -
        1 / 0.8);
  };
  EXPECT_NEAR(std::log2(error(FlowMethod::rk4, 32) / error(FlowMethod::rk4, 64)), 4, 0.1);
  EXPECT_NEAR(std::log2(error(FlowMethod::rk8, 3) / error(FlowMethod::rk8, 6)), 8, 0.6);
  EXPECT_LT(error(FlowMethod::rk8, 12), 1e-11);
}

TEST(ShootingTest, ThreadsDoNotChangeBits) {
  Problem problem(3, 2, {4000}, 13);
  Shooting one(problem.runs, {problem.basis}, 5, {}, 1),
      four(problem.runs, {problem.basis}, 5, {}, 4);
  const Matrix starts = Matrix::Constant(one.segments(), 3, 0.3);
  const auto a = one.evaluate(problem.support, problem.theta, starts, true);
  const auto b = four.evaluate(problem.support, problem.theta, starts, true);
  EXPECT_EQ(a.misfit, b.misfit);
  EXPECT_EQ(a.theta_theta, b.theta_theta);
  EXPECT_EQ(a.state_rows, b.state_rows);
}

}  // namespace
}  // namespace odecast
