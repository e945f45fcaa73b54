// Interpreter of control flow and memory for processors with AVX-512.
#define STITCHWORK_ISA_FUNCTION isa_memory_rows_avx512
#include "simulator/isa/memory_rows.inc"
