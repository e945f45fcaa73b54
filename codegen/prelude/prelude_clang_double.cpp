#include "codegen/prelude/prelude.h"

namespace stitchwork {

// Series are run until the next term is below 1e-17 on the reduced interval; cbrt, atan2 and the remainder of
// float go through these.
std::string_view prelude_clang_double() {
  return R"cuda(SW_FN double fabs(double x) { return __builtin_fabs(x); }
SW_FN double floor(double x) { return __builtin_floor(x); }
SW_FN double ceil(double x) { return __builtin_ceil(x); }
SW_FN double trunc(double x) { return __builtin_trunc(x); }
SW_FN double rint(double x) { return __builtin_rint(x); }
SW_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
SW_FN double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
SW_FN double rsqrt(double x) { return 1.0 / sqrt(x); }
SW_FN double round(double x) {
  const double t = trunc(x);
  return fabs(x - t) >= 0.5 ? t + __builtin_copysign(1.0, x) : t;
}
SW_FN double sw_exp2i_double(int e) {
  union { unsigned long long u; double f; } bits;
  bits.u = (unsigned long long)(e + 1023) << 52;
  return bits.f;
}
SW_FN double exp(double x) {
  if (x > 709.79) return __builtin_inf();
  if (x < -745.2) return 0.0;
  const double k = rint(x * 1.4426950408889634);
  const double r = fma(k, -2.3190468138462996e-17, fma(k, -0.6931471805599453, x));
  double p = 1.0;
  for (int n = 14; n > 0; --n) p = fma(p, r / n, 1.0);
  const int e = (int)k, half = e / 2;
  return p * sw_exp2i_double(half) * sw_exp2i_double(e - half);
}
SW_FN double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -__builtin_inf() : __builtin_nan("");
  if (x == __builtin_inf()) return x;
  int e = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    e = -54;
  }
  union { double f; long long i; } bits;
  bits.f = x;
  const long long shift = (bits.i - 0x3fe6a09e667f3bcdLL) >> 52;
  bits.i -= shift << 52;
  e += (int)shift;
  const double f = bits.f - 1.0, s = f / (2.0 + f), z = s * s;
  double p = 0.0;
  for (int n = 21; n > 1; n -= 2) p = fma(p, z, 1.0 / n);
  const double tail = fma((double)e, 2.3190468138462996e-17, 2.0 * s * z * p);
  return fma((double)e, 0.6931471805599453, tail + 2.0 * s);
}
SW_FN double log1p(double x) {
  const double u = 1.0 + x;
  if (u == 1.0 || u == __builtin_inf()) return x;
  return log(u) * (x / (u - 1.0));
}
SW_FN double expm1(double x) {
  if (fabs(x) > 0.5) return exp(x) - 1.0;
  double p = 1.0;
  for (int n = 17; n > 1; --n) p = fma(p, x / n, 1.0);
  return p * x;
}
SW_FN double tanh(double x) {
  const double a = fabs(x);
  const double t = expm1(2.0 * (a > 20.0 ? 20.0 : a));
  return __builtin_copysign(t / (t + 2.0), x);
}
SW_FN double erf(double x) {
  const double a = fabs(x), z = x * x;
  if (a < 2.5) {
    double term = x, sum = x;
    for (int n = 1; n < 60; ++n) {
      term *= -z / n;
      sum += term / (2 * n + 1);
    }
    return __builtin_copysign(1.1283791670955126 * sum, x);  // of -0
  }
  if (a > 6.0) return __builtin_copysign(1.0, x);
  double tail = a;  // continued fraction of erfc
  for (int n = 80; n > 0; --n) tail = a + 0.5 * n / tail;
  return __builtin_copysign(1.0 - exp(-z) * 0.5641895835477563 / tail, x);
}
SW_FN double cbrt(double x) {
  if (!(fabs(x) > 0.0) || fabs(x) == __builtin_inf()) return x;
  const bool subnormal = fabs(x) < 2.2250738585072014e-308;
  const double a = subnormal ? fabs(x) * 18014398509481984.0 : fabs(x);  // 2^54
  const double t = exp(log(a) * 0.3333333333333333), root = t - (t * t * t - a) / (3.0 * t * t);
  return __builtin_copysign(subnormal ? root * 3.814697265625e-06 : root, x);  // 2^-18
}
SW_FN double sw_atan_unit(double a) {  // 0 <= a <= 1
  const bool upper = a > 0.4142135623730951;
  const double t = upper ? (a - 1.0) / (a + 1.0) : a;
  double p = 0.0;
  for (int n = 43; n > 0; n -= 2) p = fma(-p, t * t, 1.0 / n);
  return (upper ? 0.7853981633974483 : 0.0) + p * t;
}
SW_FN double atan2(double y, double x) {
  if (x != x || y != y) return x + y;
  const double ax = fabs(x), ay = fabs(y);
  const double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
  const double ratio = big == 0.0 ? 0.0 : (small == big ? 1.0 : small / big);
  double r = sw_atan_unit(ratio);
  if (ay > ax) r = 1.5707963267948966 - r;
  if (__builtin_copysign(1.0, x) < 0.0) r = 3.141592653589793 - r;
  return __builtin_copysign(r, y);
}
SW_FN double fmod(double x, double y) {
  double a = fabs(x);
  const double b = fabs(y);
  if (!(b > 0.0) || !(a < __builtin_inf()) || x != x) return __builtin_nan("");
  double t = b;
  int left = 0;
  for (; t <= a - t; ++left) t *= 2.0;
  for (; left >= 0; --left) {  // subtract each b * 2^left that fits: every step is exact
    if (a >= t) a -= t;
    t *= 0.5;
  }
  return __builtin_copysign(a, x);
}
SW_FN float cbrtf(float x) { return (float)cbrt((double)x); }
SW_FN float atan2f(float y, float x) { return (float)atan2((double)y, (double)x); }
SW_FN float fmodf(float x, float y) { return (float)fmod((double)x, (double)y); }
#endif
)cuda";
}

}  // namespace stitchwork
