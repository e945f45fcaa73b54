# Read by cpack for each kind of package: a .deb for each component; everything in one archive.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  unset(CPACK_PACKAGE_DESCRIPTION_SUMMARY)  # each component's description begins with its own
else()
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
endif()
