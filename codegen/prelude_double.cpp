#include "codegen/prelude.h"

namespace stitchwork {

std::string_view prelude_double() {
  return R"cuda(
// Float64 functions both compilers share: NVRTC's own are calls, and the simulator takes none. The relative
// error of sw_pow grows with |y log x|, below 2e-13 throughout; the trigonometric ones are good to |x| = 1e8.
SW_FN double sw_pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return x + y;
  const double a = fabs(x), inf = sw_double(0x7ff0000000000000ull);
  const bool integer = trunc(y) == y, odd = integer && trunc(0.5 * y) != 0.5 * y;
  double r;
  if (a == 0.0) r = y < 0.0 ? inf : 0.0;
  else if (a == inf) r = y < 0.0 ? 0.0 : inf;
  else if (fabs(y) == inf) r = a == 1.0 ? 1.0 : ((a > 1.0) == (y > 0.0) ? inf : 0.0);
  else if (x < 0.0 && !integer) r = sw_double(0x7ff8000000000000ull);
  else r = exp(y * log(a));
  return odd && (sw_bits(x) >> 63) != 0 ? -r : r;
}
SW_FN double sw_sin_kernel(double r) {
  double p = 1.0;
  for (int n = 18; n > 0; n -= 2) p = fma(p, -r * r / (n * (n + 1)), 1.0);
  return p * r;
}
SW_FN double sw_cos_kernel(double r) {
  double p = 1.0;
  for (int n = 19; n > 0; n -= 2) p = fma(p, -r * r / (n * (n + 1)), 1.0);
  return p;
}
SW_FN double sw_sine(double x, int quadrant) {
  const double k = rint(x * 0.6366197723675814);
  const double r = fma(k, -6.123233995736766e-17, fma(k, -1.5707963267948966, x));
  const int q = ((int)(long long)k + quadrant) & 3;
  const double v = (q & 1) ? sw_cos_kernel(r) : sw_sin_kernel(r);
  return (q & 2) ? -v : v;
}
SW_FN double sw_sin(double x) { return sw_sine(x, 0); }
SW_FN double sw_cos(double x) { return sw_sine(x, 1); }
SW_FN double sw_tan(double x) { return sw_sine(x, 0) / sw_sine(x, 1); }
#define pow sw_pow
#define sin sw_sin
#define cos sw_cos
#define tan sw_tan
#ifdef SW_CLANG
SW_FN float powf(float x, float y) { return (float)sw_pow((double)x, (double)y); }
SW_FN float sinf(float x) { return (float)sw_sin((double)x); }
SW_FN float cosf(float x) { return (float)sw_cos((double)x); }
SW_FN float tanf(float x) { return (float)sw_tan((double)x); }
#endif
)cuda";
}

}  // namespace stitchwork
