// Functions as terms: in the equations, the coefficients, C and the file.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/model/coefficients.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

TEST(FunctionsTest, StandInTheEquationsWithTheNumbersInside) {
  const Model model = model_with_functions();
  const std::string text = format_equations(model, EquationFormat::text, 0, Centre::best);
  EXPECT_NE(text.find("dtheta/dt = 1.0000"), text.npos) << text;
  EXPECT_NE(text.find(") sin(theta)"), text.npos) << text;
  EXPECT_NE(text.find(") \"the S\"/(k + \"the S\")"), text.npos) << text;
  EXPECT_NE(text.find("\nk = 0.3000(±0.0030)\n"), text.npos) << text;
  const std::string latex = format_equations(model, EquationFormat::latex);
  EXPECT_NE(latex.find("\\sin\\left(\\mathrm{theta}\\right)"), latex.npos) << latex;
  const auto all = equations(model);
  ASSERT_EQ(all[1].terms.size(), 2u);
  EXPECT_EQ(all[1].terms[1].function, 0);
  EXPECT_NEAR(all[1].terms[1].mean, -0.9, 1e-12);
  EXPECT_EQ(all[1].terms[1].probability, 1);
  const auto numbers = numbers_inside(model);
  ASSERT_EQ(numbers.size(), 1u);
  EXPECT_NEAR(numbers[0].mean, 0.325, 1e-12);
  // Between the sets 0.25 · 0.75 · 0.1², inside them (10⁻² k)².
  EXPECT_NEAR(numbers[0].sd * numbers[0].sd, 0.001875 + 1e-4 * (0.75 * 0.09 + 0.25 * 0.16), 1e-12);
  EXPECT_NEAR(best_set(model)->probability, 1, 1e-15);
}

/// The posterior's mean field in the user's units is the reference for the compiled C.
TEST(FunctionsTest, CompiledCIsTheMeanField) {
  Model model = model_with_functions();
  model.polynomial()->sets[0].support.push_back({0, 6});  // sqrt and sign
  CoefficientSet& set = model.polynomial()->sets[0];
  const Vector before = set.theta;
  set.theta.resize(6);
  set.theta << before.head(4), 0.2, before[4];
  set.covariance = 1e-6 * Matrix::Identity(6, 6);
  const std::string base = testing::TempDir() + "odecast_c_" + std::to_string(getpid());
  std::ofstream(base + ".c") << format_equations(model, EquationFormat::c)
                             << "#include <stdio.h>\nint main(void) { double u[] = {0.7, 0.4, 1.3},"
                                " f[3]; odecast_field(0, u, f); printf(\"%.17g %.17g %.17g\", f[0],"
                                " f[1], f[2]); return 0; }\n";
  ASSERT_EQ(std::system(("cc -std=c99 -Wall -Wextra -Werror -o " + base + " " + base +
                         ".c -lm && " + base + " > " + base + ".out")
                            .c_str()),
            0);
  Vector c(3), f(3);
  std::ifstream(base + ".out") >> c[0] >> c[1] >> c[2];
  const Vector v = model.to_model(Eigen::Vector3d(0.7, 0.4, 1.3));
  make_posterior(model)->mean_field()(0, v.data(), f.data());
  EXPECT_LT((c - model.rate().cwiseProduct(f)).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(FunctionsTest, DrawsAndCovarianceHaveThem) {
  const Model model = model_with_functions();
  const auto posterior = make_posterior(model);
  const CoefficientDraws drawn = draw_coefficients(model, 20, 7);
  const FunctionTerms& functions = *model.polynomial()->functions;
  const Vector u = Eigen::Vector3d(0.7, 0.4, 1.3), v = model.to_model(u);
  for (std::uint64_t k = 0; k < 20; ++k) {
    Vector f(3), phi(4 + 3);
    phi.head(4) << 1, u;
    std::vector<double> nodes(static_cast<std::size_t>(functions.tape().size()));
    const double number = drawn.numbers(static_cast<Eigen::Index>(k), 0);
    evaluate(functions.tape(), u.data(), &number, nodes.data());
    for (int g = 0; g < 3; ++g)
      phi[4 + g] = nodes[static_cast<std::size_t>(functions.term(g).node)];
    posterior->draw(7, k)(0, v.data(), f.data());
    EXPECT_LT((drawn.coefficients[k] * phi - model.rate().cwiseProduct(f)).norm(), 1e-12);
  }
  const SetOfTerms best = most_probable_terms(model);
  EXPECT_EQ(best.numbers, std::vector<int>{0});
  EXPECT_NEAR(best.mean[4], 0.3, 1e-15);
  EXPECT_NEAR(best.covariance(4, 4), 9e-6, 1e-18);
}

TEST(FunctionsTest, TheFileKeepsThem) {
  const Model model = model_with_functions();
  const std::string text = model_to_text(model);
  EXPECT_NE(text.find("\"odecast_model\": 10"), text.npos);
  const Model back = model_from_text(text, "test");
  EXPECT_EQ(model_to_text(back), text);
  const Vector v = Eigen::Vector3d(0.2, 0.3, 0.9);
  Vector f(3), g(3);
  for (std::uint64_t k = 0; k < 9; ++k) {
    make_posterior(model)->draw(1, k)(0, v.data(), f.data());
    make_posterior(back)->draw(1, k)(0, v.data(), g.data());
    EXPECT_EQ(f, g);
  }
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const auto at = other.find(from);
    ASSERT_NE(at, other.npos) << from;
    other.replace(at, from.size(), to);
    other = sealed(other.substr(0, other.rfind(",\n  \"checksum\"")) + "\n}");
    ASSERT_TRUE(has_seal(other));
    try {
      model_from_text(other, "test");
      ADD_FAILURE() << to;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).find("JSON"), std::string::npos) << e.what();
    }
  };
  refused("\"sin(theta)\"", "\"sin(other)\"");
  refused("\"sin(theta)\"", "\"sin(theta\"");
  refused("\"sin(theta)\"", "7");
  refused("\"unit\": 0.7", "\"unit\": 0");
  refused("\"unit\": 0.7", "\"unit\": -1");
  refused("\"name\": \"k\"", "\"name\": \"theta\"");
  refused("\"name\": \"k\"", "\"name\": \"k k\"");
  refused("\"centre\": 0.25", "\"centre\": -0.25");
  refused("\"spread\": 0.001", "\"spread\": 0");
  refused("\"spread\": 0.001", "\"spread\": 1e300");  // times z: exp of it is no number
  refused("\"function\": 0", "\"function\": 3");
  refused("\"function\": 0", "\"function\": -1");
  refused("\"function\": 1", "\"function\": 0");  // which has no number inside
}

}  // namespace
}  // namespace odecast
