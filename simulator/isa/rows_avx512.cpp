// Interpreter for processors with AVX512.
#define STITCHWORK_ISA_FUNCTION isa_rows_avx512
#define STITCHWORK_ISA_MEMORY_FUNCTION isa_memory_rows_avx512
#include "simulator/isa/rows.inc"
