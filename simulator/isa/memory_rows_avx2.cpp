// Interpreter of control flow and memory for processors with AVX2.
#define STITCHWORK_ISA_FUNCTION isa_memory_rows_avx2
#include "simulator/isa/memory_rows.inc"
