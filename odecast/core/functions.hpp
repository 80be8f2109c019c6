#pragma once

namespace odecast {

/// The elementary functions by + - * / alone: the same bits on every processor, with every compiler
/// and as in packs (core/detail/functions_kernel.hpp), which those of the C library do not have.
/// Errors in units in the last place, as measured; what is undefined is not a number.
double sine_of(double x);                ///< 0.85, |x| <= 2^20
double cosine_of(double x);              ///< 0.85, |x| <= 2^20
double tangent_of(double x);             ///< 1.1, |x| <= 2^20
double exponential_of(double x);         ///< 0.65; 0.8 below 2^-1022
double logarithm_of(double x);           ///< 0.85
double hyperbolic_tangent_of(double x);  ///< 0.8
double power_of(double x, double c);     ///< 1.2; x < 0 for whole c alone
double sign_of(double x);                ///< -1, 0, 1

}  // namespace odecast
