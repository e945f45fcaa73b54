# Writes OUT, the definitions behind core/base/version.h, at build time so that the commit is the built one; leaves the file
# alone when nothing changed. Called with -DOUT, -DVERSION, -DCOMPILER, -DSOURCE.
include(${SOURCE}/cmake/describe.cmake)
stitchwork_describe(${SOURCE} ${VERSION})
set(text "#include \"core/base/version.h\"\nnamespace stitchwork {\nconst Version& version() {\n  static const Version value{\"${VERSION}\", \"${STITCHWORK_VERSION}\", \"${STITCHWORK_COMMIT}\", ${STITCHWORK_DIRTY}, \"${COMPILER}\"};\n  return value;\n}\n}  // namespace stitchwork\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
