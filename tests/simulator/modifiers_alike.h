// Modifiers of which no result, finding or counter of the simulator can tell one from another, each with why.
// A test fails for an entry, or an instruction of one, that is of no use.
#pragma once

namespace stitchwork::sim {

struct AlikeModifiers {
  const char* bases;      ///< instructions
  const char* modifiers;  ///< any two of these; "-": none
  const char* of;         ///< only where both spellings hold one of these; "": wherever
  const char* with;       ///< and one of these
  const char* reason;
};

constexpr char kIntegersOfFloat[] = "u8.f32 s8.f32 u16.f32 s16.f32 u32.f32 s32.f32 u64.f32 s64.f32",
               kUnsignedOfFloat[] = "u8.f32 u16.f32 u32.f32 u64.f32";

constexpr AlikeModifiers kAlikeModifiers[] = {
    // Bits.
    {"add sub", "u16 s16", "", "", "sums modulo 2^n have no sign"},
    {"add sub addc subc", "u32 s32", "", "", "sums modulo 2^n have no sign"},
    {"add sub addc subc", "u64 s64", "", "", "sums modulo 2^n have no sign"},
    {"add", "u16x2 s16x2", "", "", "sums modulo 2^n have no sign"},
    {"mul mad", "u16 s16", "lo", "", "the low half of a product has no sign"},
    {"mul mad madc", "u32 s32", "lo", "", "the low half of a product has no sign"},
    {"mul mad madc", "u64 s64", "lo", "", "the low half of a product has no sign"},
    {"mov", "b16 u16 s16 f16 bf16", "", "", "a copy of 16 bits"},
    {"mov", "b32 u32 s32 f32", "", "", "a copy of 32 bits"},
    {"mov", "b64 u64 s64 f64", "", "", "a copy of 64 bits"},
    {"selp", "b16 u16 s16 f16 bf16", "", "", "a choice between 16 bits"},
    {"selp slct", "b32 u32 s32 f32", "", "", "a choice between 32 bits"},
    {"selp slct", "b64 u64 s64 f64", "", "", "a choice between 64 bits"},
    {"shr", "b16 u16", "", "", "PTX ISA, shr: bits are filled with zeros"},
    {"shr", "b32 u32", "", "", "PTX ISA, shr: bits are filled with zeros"},
    {"shr", "b64 u64", "", "", "PTX ISA, shr: bits are filled with zeros"},
    {"neg abs", "f16 bf16", "", "", "the sign is the highest bit of both"},
    {"neg abs", "f16x2 bf16x2", "", "", "the sign is the highest bit of both"},
    // Comparisons.
    {"setp set", "b16 u16 s16", "eq ne", "", "equality has no sign"},
    {"setp set", "b32 u32 s32", "eq ne", "", "equality has no sign"},
    {"setp set", "b64 u64 s64", "eq ne", "", "equality has no sign"},
    {"set", "u32 s32", "", "", "a result of all ones or zeros; sources differ elsewhere"},
    {"set", "u16 s16", "f16 bf16", "", "a result of all ones or zeros"},
    {"setp set", "lt lo", "u16 u32 u64", "", "PTX ISA, setp: lo is lt of unsigned integers"},
    {"setp set", "le ls", "u16 u32 u64", "", "PTX ISA, setp: ls is le of unsigned integers"},
    {"setp set", "gt hi", "u16 u32 u64", "", "PTX ISA, setp: hi is gt of unsigned integers"},
    {"setp set", "ge hs", "u16 u32 u64", "", "PTX ISA, setp: hs is ge of unsigned integers"},
    {"setp set", "ftz -", "num nan", "", "whether a number is none does not change as it is flushed"},
    // Rounding.
    {"add sub mul", "rn -", "", "", "PTX ISA: without a rounding, to nearest"},
    {"sqrt", "rz rm", "", "", "roots are not negative"},
    {"div rcp sqrt", "rn approx full", "f32", "",
     "computed exactly, which lies within what .approx and .full may err"},
    {"cos", "ftz -", "", "", "the cosine of a subnormal number is 1, and no float's cosine is subnormal"},
    {"cvt", "rn rz rm rp",
     "f32.u8 f32.s8 f32.u16 f32.s16 f64.u8 f64.s8 f64.u16 f64.s16 f64.u32 f64.s32 f64.f32 f16.u8 f16.s8 "
     "bf16.u8 bf16.s8",
     "", "the type holds every such number"},
    {"cvt", "rz rm",
     "f32.u32 f32.u64 f64.u64 f16.u8 f16.u16 f16.u32 f16.u64 bf16.u8 bf16.u16 bf16.u32 bf16.u64", "",
     "unsigned numbers are not negative"},
    {"cvt", "rn rz rm rp",
     "sat.f32.u32 sat.f32.s32 sat.f32.u64 sat.f32.s64 sat.f64.u64 sat.f64.s64 sat.f16.u16 sat.f16.s16 "
     "sat.f16.u32 sat.f16.s32 sat.f16.u64 sat.f16.s64",
     "", "integers saturate to 0 or 1"},
    {"cvt", "rzi rmi",
     "u8.f16 u16.f16 u32.f16 u64.f16 u8.f32 u16.f32 u32.f32 u64.f32 u8.f64 u16.f64 u32.f64 u64.f64 u8.bf16 "
     "u16.bf16 u32.bf16 u64.bf16 sat.f32.f32 sat.f64.f64",
     "", "what is negative becomes 0"},
    {"cvt", "sat -", "rni rzi rmi rpi", "",
     "PTX ISA, cvt: floats converted to integers are clamped, .sat or not"},
    {"cvt", "rz rm", "sat.f32.f64 sat.f16.f64 sat.f16.f32 sat.f16.bf16", "", "what is negative becomes 0"},
    {"cvt", "rzi rmi", "sat.f16.f16", "", "what is negative becomes 0"},
    {"cvt", "ftz -", "rni rzi", "f32.f32", "a subnormal float is rounded to 0"},
    {"cvt", "ftz -", "rmi", "sat.f32.f32", "a subnormal float becomes 0"},
    {"cvt", "ftz -", "rm", "sat.f16.f32", "a subnormal float becomes 0"},
    {"cvt", "ftz -", "f32.u8 f32.s8 f32.u16 f32.s16 f32.u32 f32.s32 f32.u64 f32.s64 f32.f16", "",
     "no such number is a subnormal float"},
    {"cvt", "ftz sat -", "rni rzi", kIntegersOfFloat,
     "a subnormal float is rounded to 0, and .sat is what is done anyway"},
    {"cvt", "ftz sat -", "rmi", kUnsignedOfFloat,
     "a subnormal float becomes 0, and .sat is what is done anyway"},
    {"cvt", "ftz -", "rn rz", "f16.f32", "a subnormal float is far below the smallest half"},
    {"cvt", "u8 u16 u32 u64", "sat", "s8", "what is negative becomes 0, and the rest fits"},
    {"cvt", "u16 u32 u64", "sat", "s16", "what is negative becomes 0, and the rest fits"},
    {"cvt", "u32 u64", "sat", "s32", "what is negative becomes 0, and the rest fits"},
    // Warps and barriers.
    {"redux", "u32 s32", "add", "", "sums modulo 2^n have no sign"},
    {"bar barrier", "cta -", "sync arrive red", "", "PTX ISA, barrier: .cta is the default"},
    {"barrier", "aligned -", "arrive", "", "who arrives waits for nobody"},
    {"isspacep", "shared shared::cta", "", "", "PTX ISA, isspacep: .shared means .shared::cta"},
    {"isspacep", "param param::entry", "", "", "PTX ISA, isspacep: .param means .param::entry"},
    // Memory.
    {"ld", "u8 b8", "", "", "only signed types extend the sign"},
    {"ld", "u16 b16", "", "", "only signed types extend the sign"},
    {"ld", "u32 b32 f32", "", "", "only signed types extend the sign"},
    {"ld", "s32 f32", "", "", "fills a register of a float"},
    {"ld", "u64 s64 b64 f64", "", "", "fills the register"},
    {"st", "u8 s8 b8", "", "", "bits are stored"},
    {"st", "u16 s16 b16", "", "", "bits are stored"},
    {"st", "u32 s32 b32 f32", "", "", "bits are stored"},
    {"st", "u64 s64 b64 f64", "", "", "bits are stored"},
    {"atom red", "u32 s32", "add", "", "sums modulo 2^n have no sign"},
    {"atom red", "u64 s64", "add", "", "sums modulo 2^n have no sign"},
    {"ld st", "shared shared::cta shared::cluster", "", "",
     "of the block's own memory, .shared::cluster is .shared"},
    {"cp", "shared shared::cta", "", "", "PTX ISA, cp.async: .shared means .shared::cta"},
    {"ld st atom red", "- global", "", "", "a generic address may be global"},
    {"ld",
     "- weak ca cs lu L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate "
     "L2::64B L2::128B L2::256B",
     "", "", "hints, and what is done without them"},
    {"cp", "- L2::64B L2::128B L2::256B", "", "", "hints"},
    {"ld", "cg cv volatile", "", "", "past L1; that .volatile orders shows where blocks send messages"},
    {"ld", "mmio -", "", "", "PTX ISA, ld: for memory of devices, of which there is none"},
    {"st",
     "- weak wb cg cs wt L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged "
     "L1::no_allocate",
     "", "", "hints: L1 is written through, and L2 holds what is stored"},
    {"st", "- volatile", "u8 s8 b8 u16 s16 b16 s32 b32 f32 u64 s64 b64 f64 v2 v4 L2::cache_hint", "",
     "that it orders shows where blocks send messages, in words of .u32"},
    {"ld", "- weak volatile cg cv", "shared shared::cta shared::cluster local const", "",
     "there is no L1 to go past"},
    {"st", "- weak volatile", "shared shared::cta shared::cluster local", "", "there is one copy"},
    {"ld", "relaxed acquire", "shared", "", "only order others' accesses, as they do in global memory"},
    {"st", "relaxed release", "shared", "", "only order others' accesses, as they do in global memory"},
    {"ld st atom red", "cta cluster gpu sys", "relaxed acquire release acq_rel", "",
     "one memory, coherent for all: accesses of every scope are the device's to the race check"},
    {"atom red", "- cta cluster gpu sys", "", "",
     "PTX ISA, atom: .gpu where no scope is named; and as above"},
    {"atom red", "- relaxed", "", "", "PTX ISA, atom: .relaxed where no order is named"},
    {"atom", "- relaxed acquire release acq_rel",
     "exch cas min max and or xor inc dec s32 u64 s64 f32 f64 f16 bf16 f16x2 bf16x2 shared", "",
     "orders show where blocks send messages, by .add.u32 in global memory"},
    {"red", "- relaxed release",
     "min max and or xor inc dec s32 u64 s64 f32 f64 f16 bf16 f16x2 bf16x2 shared", "",
     "orders show where blocks send messages, by .add.u32 in global memory"},
    {"atom", "release acq_rel", "", "", "a release has emptied L1: what the atomic finds has been published"},
    {"fence", "- sc acq_rel acquire release", "", "", "every fence orders both ways to the race check"},
    {"fence", "cluster gpu sys", "", "", "one memory, coherent for all"},
    {"membar", "gl sys", "", "", "one memory, coherent for all"},
    // Matrices.
    {"ldmatrix stmatrix", "- shared shared::cta", "", "",
     "PTX ISA: without a space, a generic address of shared memory"},
    {"wmma", "- global", "", "", "a generic address may be global"},
    {"wmma", "a b", "load", "m16n16k16",
     "the parts of square matrices that lanes hold are the implementation's choice"},
    {"wmma", "f16 bf16", "load", "m32n8k16 m8n32k16", "bits are moved"},
    {"wmma", "m16n16k16 m16n16k8", "c d", "", "an accumulator is of m and n"},
    {"wmma", "row col", "mma", "", "said of matrices that wmma.load has taken apart by it"},
    {"mma", "sp sp::ordered_metadata", "", "", "PTX ISA, mma.sp: the same of metadata in order"},
    {"wmma", "f32 s32", "c d", "", "bits are moved"},
    {"wmma", "s8 u8", "a b", "", "bits are moved"},
};

}  // namespace stitchwork::sim
