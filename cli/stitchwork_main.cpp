#include <cstdio>
#include <iostream>

#include "cli/cli.h"

int main(int argc, char** argv) { return stitchwork::run_cli(argc, argv, std::cout, std::cerr); }
