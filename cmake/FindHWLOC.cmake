# Finds hwloc, which brings no CMake configuration of its own, and defines HWLOC::HWLOC.
include(FindPackageHandleStandardArgs)

find_path(HWLOC_INCLUDE_DIR NAMES hwloc.h)
find_library(HWLOC_LIBRARY NAMES hwloc)

find_package_handle_standard_args(HWLOC REQUIRED_VARS HWLOC_LIBRARY HWLOC_INCLUDE_DIR)
mark_as_advanced(HWLOC_INCLUDE_DIR HWLOC_LIBRARY)

if(HWLOC_FOUND AND NOT TARGET HWLOC::HWLOC)
  add_library(HWLOC::HWLOC UNKNOWN IMPORTED)
  set_target_properties(HWLOC::HWLOC PROPERTIES
    IMPORTED_LOCATION ${HWLOC_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${HWLOC_INCLUDE_DIR})
endif()
