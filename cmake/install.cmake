# What `cmake --install` puts where (GNUInstallDirs), in three components, which are packages, too (package.cmake):
# stitchwork (the command, its data, pages and completion), gui (the workbench, and what draws for the command: Qt), dev (libraries
# and headers for find_package(Stitchwork)).
include(CMakePackageConfigHelpers)

# The libraries by layer, as Stitchwork::NAME.
set(exported sw_core:core sw_occupancy:occupancy_model sw_simulator:simulator sw_analysis:analysis sw_codegen:codegen
    sw_runtime:runtime sw_figure:figure sw_figures_draw:figures_draw sw_figures:figures sw_experiments:experiments)
foreach(entry ${exported})
  string(REPLACE ":" ";" entry ${entry})
  list(GET entry 0 target)
  list(GET entry 1 layer)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer} OUTPUT_NAME stitchwork_${layer})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/stitchwork>)
  add_library(Stitchwork::${layer} ALIAS ${target})
  install(TARGETS ${target} EXPORT StitchworkTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endforeach()
foreach(folder core occupancy_model simulator analysis codegen runtime figures/data experiments)
  get_filename_component(above ${folder} DIRECTORY)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stitchwork/${above} COMPONENT dev
          FILES_MATCHING PATTERN *.h PATTERN results EXCLUDE)
endforeach()
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Stitchwork)
install(EXPORT StitchworkTargets NAMESPACE Stitchwork:: DESTINATION ${config_folder} COMPONENT dev)
configure_package_config_file(cmake/StitchworkConfig.cmake.in StitchworkConfig.cmake INSTALL_DESTINATION ${config_folder})
# Until 1.0 a minor version may change what it likes.
write_basic_package_version_file(StitchworkConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/StitchworkConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/StitchworkConfigVersion.cmake
        cmake/StitchworkDependencies.cmake DESTINATION ${config_folder} COMPONENT dev)
install(DIRECTORY examples/find_package DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT dev)

# The command, and what it opens (core/base/data.h). Devices are compiled in: their files are there to be copied and changed.
install(TARGETS stitchwork RUNTIME COMPONENT stitchwork)
install(DIRECTORY datasets DESTINATION ${STITCHWORK_DATADIR} COMPONENT stitchwork
        FILES_MATCHING PATTERN *.hlo PATTERN *.hlo.gz PATTERN *.json PATTERN README.md PATTERN export EXCLUDE PATTERN golden EXCLUDE)
install(DIRECTORY experiments DESTINATION ${STITCHWORK_DATADIR} COMPONENT stitchwork
        FILES_MATCHING PATTERN *.json PATTERN results EXCLUDE)
install(DIRECTORY gui/page/assets/ DESTINATION ${STITCHWORK_DATADIR}/page COMPONENT stitchwork)
if(STITCHWORK_D3 AND STITCHWORK_D3_LICENCE)
  install(FILES ${STITCHWORK_D3} DESTINATION ${STITCHWORK_DATADIR}/page COMPONENT stitchwork)
  install(FILES ${STITCHWORK_D3_LICENCE} DESTINATION ${STITCHWORK_DATADIR}/page RENAME d3.licence COMPONENT stitchwork)
endif()
install(DIRECTORY occupancy_model/devices DESTINATION ${STITCHWORK_DATADIR} COMPONENT stitchwork FILES_MATCHING PATTERN *.json)
install(DIRECTORY docs/schema DESTINATION ${STITCHWORK_DATADIR} COMPONENT stitchwork)
install(DIRECTORY python DESTINATION ${STITCHWORK_DATADIR} COMPONENT stitchwork
        FILES_MATCHING PATTERN *.py PATTERN *.toml PATTERN *.md PATTERN test_*.py EXCLUDE PATTERN __pycache__ EXCLUDE)
install(FILES README.md CHANGELOG.md LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT stitchwork)
install(FILES NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT stitchwork)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT stitchwork
        PATTERN sample EXCLUDE PATTERN schema EXCLUDE)

# Pages and completion are what the built command says of itself.
set(pages ${CMAKE_BINARY_DIR}/pages)
if(CMAKE_CROSSCOMPILING)
  message(STATUS "cross compiling: no man pages and no completion, which the program writes itself")
else()
  add_custom_command(OUTPUT ${pages}/made DEPENDS stitchwork
                     COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/completion
                     COMMAND stitchwork man -o ${pages}/man1
                     COMMAND stitchwork completion bash > ${pages}/completion/stitchwork
                     COMMAND stitchwork completion zsh > ${pages}/completion/_stitchwork
                     COMMAND stitchwork completion fish > ${pages}/completion/stitchwork.fish
                     COMMAND ${CMAKE_COMMAND} -E touch ${pages}/made COMMENT "Man pages and completion" VERBATIM)
  add_custom_target(stitchwork_pages ALL DEPENDS ${pages}/made)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT stitchwork)
  foreach(shell bash-completion/completions:stitchwork zsh/site-functions:_stitchwork
          fish/vendor_completions.d:stitchwork.fish)
    string(REPLACE ":" ";" shell ${shell})
    list(GET shell 0 folder)
    list(GET shell 1 file)
    install(FILES ${pages}/completion/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT stitchwork)
  endforeach()
endif()

if(STITCHWORK_GUI)
  install(TARGETS stitchwork_figures LIBRARY DESTINATION ${STITCHWORK_MODULEDIR} COMPONENT gui)
  install(TARGETS stitchwork-gui RUNTIME COMPONENT gui)
  install(FILES gui/stitchwork-gui.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications COMPONENT gui)
  install(FILES gui/stitchwork-gui.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps COMPONENT gui)
  install(FILES gui/stitchwork-gui.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT gui)
endif()
