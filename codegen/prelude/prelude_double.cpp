#include "codegen/prelude/prelude.h"

namespace stitchwork {

std::string_view prelude_double() {
  return R"cuda(
// Float64 functions both compilers share: NVRTC's own are calls, and the simulator takes none. The relative
// error of sw_pow grows with |y log x|, below 2e-13 throughout. The trigonometric ones reduce any number.
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
// Bits of 2 / pi behind a word of zeros.
static __device__ const unsigned sw_two_over_pi[] = {
    0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u,
    0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu,
    0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u,
    0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u};
// Payne and Hanek, "Radian Reduction for Trigonometric Functions" (1983), for 2^27 <= |x| < infinity: x minus the
// nearest multiple of pi / 2, with that multiple's last bits. The bits of 2 / pi that are left out make multiples of
// four turns of a quarter in front and less than 2^-137 of one behind.
SW_FN double sw_reduce_large(double x, int& quadrant) {
  const unsigned long long mantissa = (sw_bits(x) & 0xfffffffffffffull) | 0x10000000000000ull, low = 0xffffffffull;
  const int place = (int)(sw_bits(x) >> 52 & 0x7ff) - 1075 + 30, shift = place & 31;
  const unsigned* bits = sw_two_over_pi + (place >> 5);
  unsigned long long carry = 0, after = 0, top[2] = {0, 0};
#pragma unroll
  for (int i = 5; i >= 0; --i) {
    const unsigned long long word = (((unsigned long long)bits[i] << 32 | bits[i + 1]) << shift) >> 32;
    const unsigned long long a = (mantissa & low) * word + (carry & low), b = (mantissa >> 32) * after + (a & low);
    carry = (carry >> 32) + (a >> 32) + (b >> 32);
    after = word;
    if (i < 4) top[i / 2] |= i % 2 != 0 ? b & low : b << 32;
  }
  const long long high = (long long)(top[0] << 2 | top[1] >> 62);  // signed: to the nearest multiple
  const int quarter = (int)(top[0] >> 62) + (high < 0 ? 1 : 0);
  const double a = (double)high;
  const double b = (double)(high - (long long)a) + (double)(top[1] << 2) * 5.421010862427522e-20;  // 2^-64
  const double p = a * 1.5707963267948966;
  const double q = fma(a, 1.5707963267948966, -p) + fma(a, 6.123233995736766e-17, b * 1.5707963267948966);
  const double r = (p + q) * 5.421010862427522e-20;
  quadrant = x < 0.0 ? -quarter : quarter;
  return x < 0.0 ? -r : r;
}
SW_FN double sw_reduce(double x, int& quadrant) {
  if (fabs(x) < 134217728.0) {  // 2^27: the third part of pi / 2 is below 2^-82 of a unit
    const double k = rint(x * 0.6366197723675814);
    quadrant = (int)k;
    return k == 0.0 ? x : fma(k, -6.123233995736766e-17, fma(k, -1.5707963267948966, x));
  }
  quadrant = 0;
  return fabs(x) < sw_double(0x7ff0000000000000ull) ? sw_reduce_large(x, quadrant) : x - x;
}
SW_FN double sw_sine(double x, int ahead) {
  int quadrant;
  const double r = sw_reduce(x, quadrant);
  const int q = quadrant + ahead;
  const double v = (q & 1) ? sw_cos_kernel(r) : sw_sin_kernel(r);
  return (q & 2) ? -v : v;
}
SW_FN double sw_sin(double x) { return sw_sine(x, 0); }
SW_FN double sw_cos(double x) { return sw_sine(x, 1); }
SW_FN double sw_tan(double x) {
  int quadrant;
  const double r = sw_reduce(x, quadrant), s = sw_sin_kernel(r), c = sw_cos_kernel(r);
  return (quadrant & 1) ? -c / s : s / c;
}
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
SW_FN float sw_powf(float x, float y) { return powf(x, y); }
// An exponent that all elements share: products are nearer the truth than sw_pow, and powf nearer than products.
template <int kExponent, class T> SW_FN T sw_product(T x) {
  T product = (T)1, square = kExponent < 0 ? (T)1 / x : x;
#pragma unroll
  for (int left = kExponent < 0 ? -kExponent : kExponent; left != 0; left >>= 1) {
    if (left & 1) product *= square;
    square *= square;
  }
  return product;
}
template <int kExponent> SW_FN double sw_integer_power(double x) { return sw_product<kExponent>(x); }
template <int kExponent> SW_FN float sw_integer_powf(float x) { return powf(x, (float)kExponent); }
)cuda";
}

}  // namespace stitchwork
