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

# The page of `stitchwork view`: our own files, and d3 from the system with its licence, which the page has in it.
find_file(STITCHWORK_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH)
find_file(STITCHWORK_D3_LICENCE copyright PATHS /usr/share/doc/node-d3 NO_DEFAULT_PATH)
if(NOT STITCHWORK_D3 OR NOT STITCHWORK_D3_LICENCE)
  message(WARNING "d3 not found, so that `stitchwork view` makes no pages: install node-d3 (5 or later), or set STITCHWORK_D3 "
                  "(d3.min.js) and STITCHWORK_D3_LICENCE")
endif()
file(GLOB page_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/gui/page/assets/*)
file(MAKE_DIRECTORY ${STITCHWORK_BUILT_DATA}/page)
foreach(file ${page_files})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${STITCHWORK_BUILT_DATA}/page/${name} SYMBOLIC)
endforeach()
if(STITCHWORK_D3 AND STITCHWORK_D3_LICENCE)
  file(CREATE_LINK ${STITCHWORK_D3} ${STITCHWORK_BUILT_DATA}/page/d3.min.js SYMBOLIC)
  file(CREATE_LINK ${STITCHWORK_D3_LICENCE} ${STITCHWORK_BUILT_DATA}/page/d3.licence SYMBOLIC)
endif()
