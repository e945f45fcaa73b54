// Interpreter for processors with AVX2.
#define STITCHWORK_ISA_FUNCTION isa_rows_avx2
#define STITCHWORK_ISA_MEMORY_FUNCTION isa_memory_rows_avx2
#include "simulator/isa/rows.inc"
