#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "cli/cli.h"
#include "core/base/memory.h"
#include "core/base/on_interrupt.h"

int main(int argc, char** argv) {
  stitchwork::exit_on_interrupt();
  const int code = stitchwork::run_cli(argc, argv, std::cout, std::cerr);
  std::cout.flush();
  std::fflush(nullptr);
#ifdef SW_ADDRESS_SANITIZER
  return code;  // leaks are told behind this
#else
  // Without destructors of libraries: where memory is short OpenBLAS's threads, which it starts when it is
  // loaded, wait for theirs forever, and its destructor for them.
  std::_Exit(code);
#endif
}
