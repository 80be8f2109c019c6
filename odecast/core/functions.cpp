#include "odecast/core/functions.hpp"

#include "odecast/core/detail/functions_kernel.hpp"

namespace odecast {

double sine_of(double x) { return sine(x); }
double cosine_of(double x) { return cosine(x); }
double tangent_of(double x) { return tangent(x); }
double exponential_of(double x) { return exponential(x); }
double logarithm_of(double x) { return logarithm(x); }
double hyperbolic_tangent_of(double x) { return hyperbolic_tangent(x); }
double power_of(double x, double c) { return power(x, c); }
double sign_of(double x) { return sign(x); }

}  // namespace odecast
