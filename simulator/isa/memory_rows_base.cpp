// Interpreter of control flow and memory for any x86-64 processor.
#define STITCHWORK_ISA_FUNCTION isa_memory_rows_base
#include "simulator/isa/memory_rows.inc"
