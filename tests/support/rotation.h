// A rotary embedding with its halves beside each other: what several heads share is worth computing again.
#pragma once

namespace stitchwork::testing {

/// Instructions of an entry computation.
inline constexpr char kOneRotation[] = R"(
    x = f32[2,8,128,64] parameter(0)
    p = f32[128] parameter(1)
    i = f32[32] iota(), iota_dimension=0
    l = f32[] constant(-0.287823)
    lb = f32[32] broadcast(l), dimensions={}
    e = f32[32] multiply(i, lb)
    f = f32[32] exponential(e)
    pb = f32[128,32] broadcast(p), dimensions={0}
    fb = f32[128,32] broadcast(f), dimensions={1}
    t = f32[128,32] multiply(pb, fb)
    c = f32[128,32] cosine(t)
    s = f32[128,32] sine(t)
    cb = f32[2,8,128,32] broadcast(c), dimensions={2,3}
    sb = f32[2,8,128,32] broadcast(s), dimensions={2,3}
    a = f32[2,8,128,32] slice(x), slice={[0:2], [0:8], [0:128], [0:32]}
    b = f32[2,8,128,32] slice(x), slice={[0:2], [0:8], [0:128], [32:64]}
    ac = f32[2,8,128,32] multiply(a, cb)
    bs = f32[2,8,128,32] multiply(b, sb)
    as = f32[2,8,128,32] multiply(a, sb)
    bc = f32[2,8,128,32] multiply(b, cb)
    re = f32[2,8,128,32] subtract(ac, bs)
    im = f32[2,8,128,32] add(as, bc)
    ROOT r = f32[2,8,128,64] concatenate(re, im), dimensions={3})";

}  // namespace stitchwork::testing
