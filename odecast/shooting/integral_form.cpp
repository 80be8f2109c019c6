#include "odecast/shooting/integral_form.hpp"

#include <Eigen/Cholesky>

namespace odecast {

IntegralForm integral_form(const Shooting& windows, const std::vector<Matrix>& states,
                           const std::vector<double>* z, bool observed) {
  const TermLibrary library = z ? windows.library() : TermLibrary{windows.library().basis};
  const std::vector<double> none;
  const int n = windows.dimension(), F = library.size();
  IntegralForm form{Matrix::Zero(windows.segments(), F), Matrix::Zero(windows.segments(), n)};
  std::vector<double> phi(index(F)), before(index(F));
  Vector arguments(library.basis->variables());
  for (int j = 0; j < windows.segments(); ++j) {
    const auto& s = windows.segment(j);
    const Matrix& smooth = states[index(s.run)];
    const ObservedRun& run = windows.runs()[index(s.run)];
    for (long row = s.first + 1; row <= s.first + s.intervals(); ++row) {
      const double begin = run.times[index(row - 1)], length = run.times[index(row)] - begin;
      const auto evaluate = [&](double t, const Vector& inputs, std::vector<double>& values) {
        const double x = (t - begin) / length;
        arguments.head(n) = ((1 - x) * smooth.row(row - 1) + x * smooth.row(row)).transpose();
        arguments.tail(inputs.size()) = inputs;
        library.evaluate(arguments.data(), z ? *z : none, values.data());
      };
      for (const DrivenPiece& piece : pieces(run, row)) {
        if (windows.inputs() > 0 || row == s.first + 1) evaluate(piece.begin, piece.from, before);
        evaluate(piece.end, piece.to, phi);
        const double h = piece.end - piece.begin;
        for (int m = 0; m < F; ++m)
          form.terms(j, m) += 0.5 * h * (phi[index(m)] + before[index(m)]);
        phi.swap(before);
      }
    }
    const auto state = [&](int row, int i) {
      return observed && run.weights(row, i) > 0 ? run.values(row, i) : smooth(row, i);
    };
    for (int i = 0; i < n; ++i)
      form.change(j, i) = state(s.first + s.intervals(), i) - state(s.first, i);
  }
  return form;
}

Vector integral_regression(const IntegralForm& form, const Support& support, double ridge,
                           Vector* explained) {
  const auto n = static_cast<int>(form.change.cols());
  Vector theta = Vector::Zero(static_cast<long>(support.size()));
  if (explained) *explained = Vector::Zero(n);
  for (int i = 0; i < n; ++i) {
    std::vector<int> terms;
    for (std::size_t c = 0; c < support.size(); ++c)
      if (support[c].equation == i) terms.push_back(static_cast<int>(c));
    const long p = static_cast<long>(terms.size());
    if (p == 0) continue;
    Eigen::MatrixXd X(form.terms.rows(), p);
    for (long c = 0; c < p; ++c) X.col(c) = form.terms.col(support[index(terms[index(c)])].term);
    Eigen::MatrixXd gram = X.transpose() * X;
    gram.diagonal() += ridge * gram.diagonal();
    gram.diagonal().array() += 1e-300;
    const Vector solved =
        Eigen::LDLT<Eigen::MatrixXd>(gram).solve(X.transpose() * form.change.col(i));
    for (long c = 0; c < p; ++c) theta[terms[index(c)]] = solved[c];
    const auto count = static_cast<double>(form.terms.rows()),
               all = form.change.col(i).squaredNorm();
    if (explained && form.terms.rows() > p && all > 0)
      (*explained)[i] = 1 - (form.change.col(i) - X * solved).squaredNorm() / all * count /
                                (count - static_cast<double>(p));
  }
  return theta;
}

}  // namespace odecast
