# Where things lie in an installation (GNUInstallDirs), and in the build's folder, which is laid out alike for what the
# program opens at run time (core/base/data.h): programs in a folder (cli/, gui/, tests/) of it, data under share/stitchwork
# (links to the sources'), modules under lib/stitchwork. So no program knows where it was built.
include(GNUInstallDirs)
set(STITCHWORK_DATADIR ${CMAKE_INSTALL_DATADIR}/stitchwork)
set(STITCHWORK_MODULEDIR ${CMAKE_INSTALL_LIBDIR}/stitchwork)
file(RELATIVE_PATH STITCHWORK_DATA_FROM_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/stitchwork)
file(RELATIVE_PATH STITCHWORK_MODULES_FROM_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/stitchwork)
get_filename_component(STITCHWORK_BUILT_DATA ${CMAKE_BINARY_DIR}/cli/${STITCHWORK_DATA_FROM_PROGRAM} ABSOLUTE)
get_filename_component(STITCHWORK_BUILT_MODULES ${CMAKE_BINARY_DIR}/cli/${STITCHWORK_MODULES_FROM_PROGRAM} ABSOLUTE)

# Tells a source of the target whose folder this is where to look.
function(stitchwork_layout source)
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS
    "STITCHWORK_DATA_FROM_PROGRAM=\"${STITCHWORK_DATA_FROM_PROGRAM}\";\
STITCHWORK_DATA_CONFIGURED=\"${CMAKE_INSTALL_FULL_DATADIR}/stitchwork\";\
STITCHWORK_MODULES_FROM_PROGRAM=\"${STITCHWORK_MODULES_FROM_PROGRAM}\";\
STITCHWORK_MODULES_CONFIGURED=\"${CMAKE_INSTALL_FULL_LIBDIR}/stitchwork\"")
endfunction()

file(MAKE_DIRECTORY ${STITCHWORK_BUILT_DATA} ${STITCHWORK_BUILT_MODULES})
foreach(folder datasets experiments)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${STITCHWORK_BUILT_DATA}/${folder} SYMBOLIC)
endforeach()
