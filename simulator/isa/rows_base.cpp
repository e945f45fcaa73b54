// Interpreter for any x86-64 processor.
#define STITCHWORK_ISA_FUNCTION isa_rows_base
#define STITCHWORK_ISA_MEMORY_FUNCTION isa_memory_rows_base
#include "simulator/isa/rows.inc"
