# What the libraries link, as targets: asked for by the build, and by who uses an installation (StitchworkConfig.cmake).
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
# CBC solves the planners' integer programs (analysis/ilp/binary_program.cpp).
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc)
# ONNX's protobuf classes alone (libonnx_proto); its checker and shape inference are not wanted.
find_library(STITCHWORK_ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
find_path(STITCHWORK_ONNX_INCLUDE_DIR onnx/onnx_pb.h REQUIRED)
if(NOT TARGET Stitchwork::onnx_proto)
  add_library(Stitchwork::onnx_proto UNKNOWN IMPORTED)
  set_target_properties(Stitchwork::onnx_proto PROPERTIES IMPORTED_LOCATION ${STITCHWORK_ONNX_PROTO_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${STITCHWORK_ONNX_INCLUDE_DIR}
                        INTERFACE_LINK_LIBRARIES protobuf::libprotobuf)
endif()
