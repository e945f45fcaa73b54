// The precompiled headers of tests need a source of their own (tests/CMakeLists.txt).
