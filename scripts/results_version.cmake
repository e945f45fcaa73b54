# Writes OUT, the definitions of results_version() and compile_version() (core/base/version.h): hashes of every source that
# plans, generated code, simulation and timing follow from, and of those that compiled kernels follow from. Made at build
# time, so that no edit is missed and nobody has to raise a number; leaves the file alone when they are the same. Called
# with -DOUT, -DSOURCE.
set(folders core occupancy_model analysis simulator codegen runtime)
# How a trial is carried out, and which of its numbers are recorded.
set(files experiments/device_limits.cpp experiments/device_limits.h experiments/trial.cpp experiments/trial.h
    experiments/trial_metrics.cpp experiments/trial_metrics.h)
foreach(folder ${folders})
  file(GLOB_RECURSE found LIST_DIRECTORIES false RELATIVE ${SOURCE} ${SOURCE}/${folder}/*)
  list(FILTER found INCLUDE REGEX "\\.(cpp|h|inc|json)$|/CMakeLists\\.txt$")
  list(APPEND files ${found})
endforeach()
list(SORT files)
set(contents "")
foreach(file ${files})
  file(SHA256 ${SOURCE}/${file} hash)
  string(APPEND contents "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${contents}")
string(SUBSTRING ${hash} 0 12 version)
# Compiled kernels follow from their text, the compiler and these alone.
string(REGEX MATCHALL "codegen/compile/[^\n]*" compile_contents "${contents}")
string(SHA256 hash "${compile_contents}")
string(SUBSTRING ${hash} 0 12 compile_version)
set(text "#include \"core/base/version.h\"\nnamespace stitchwork {\nconst std::string& results_version() {\n  static const std::string value = \"${version}\";\n  return value;\n}\nconst std::string& compile_version() {\n  static const std::string value = \"${compile_version}\";\n  return value;\n}\n}  // namespace stitchwork\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
