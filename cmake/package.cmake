# Packages by CPack, as scripts/package makes them: stitchwork, stitchwork-gui and stitchwork-dev as .deb (dependencies by
# dpkg-shlibdeps), everything together as .tar.gz, which runs wherever it is unpacked.
include(cmake/describe.cmake)
stitchwork_describe(${CMAKE_SOURCE_DIR} ${PROJECT_VERSION})
set(CPACK_PACKAGE_NAME stitchwork)
set(CPACK_PACKAGE_VERSION ${STITCHWORK_VERSION})
set(CPACK_PACKAGE_VENDOR "The Stitchwork authors")
set(CPACK_PACKAGE_CONTACT "The Stitchwork authors <authors@stitchwork.dev>")
set(CPACK_PACKAGE_HOMEPAGE_URL https://stitchwork.dev)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "workbench for the fusion of GPU kernels")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME stitchwork-${STITCHWORK_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL stitchwork dev)
if(STITCHWORK_GUI)
  list(APPEND CPACK_COMPONENTS_ALL gui)
endif()

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package_kinds.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_STITCHWORK_PACKAGE_NAME stitchwork)
set(CPACK_COMPONENT_STITCHWORK_DESCRIPTION "workbench for the fusion of GPU kernels
Reads a model as HLO text or ONNX, plans its kernels as XLA, TVM, FusionStitching or
AStitch would, generates their CUDA C++, runs it in a simulator of PTX or on a GPU,
checks the results, and explains every decision.")
set(CPACK_DEBIAN_STITCHWORK_PACKAGE_RECOMMENDS "stitchwork-gui, clang")  # clang: PTX where no CUDA toolkit is
set(CPACK_DEBIAN_GUI_PACKAGE_NAME stitchwork-gui)
set(CPACK_DEBIAN_GUI_PACKAGE_DEPENDS "stitchwork (= ${STITCHWORK_VERSION}), fonts-dejavu-core")
set(CPACK_COMPONENT_GUI_DESCRIPTION "workbench for the fusion of GPU kernels: window and figures
The window, and the module by which the command draws figures.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME stitchwork-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libc6-dev, nlohmann-json3-dev, libfmt-dev, libboost-dev, libsqlite3-dev, libopenblas-dev, coinor-libcbc-dev, zlib1g-dev, libonnx-dev, libprotobuf-dev, pkg-config")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "stitchwork (= ${STITCHWORK_VERSION}), cmake")
set(CPACK_COMPONENT_DEV_DESCRIPTION "workbench for the fusion of GPU kernels: libraries and headers
Static libraries and headers for find_package(Stitchwork).")
include(CPack)
