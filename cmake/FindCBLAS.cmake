# Finds any library with the CBLAS interface and defines CBLAS::CBLAS.
# OpenBLAS is preferred: it carries its own cblas.h and openblas_set_num_threads, which
# CBLAS_HAS_OPENBLAS_THREADS reports.
include(FindPackageHandleStandardArgs)
include(CheckSymbolExists)

find_path(CBLAS_INCLUDE_DIR NAMES cblas.h PATH_SUFFIXES openblas openblas-pthread)
find_library(CBLAS_LIBRARY NAMES openblas cblas blas)

find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_LIBRARY CBLAS_INCLUDE_DIR)
mark_as_advanced(CBLAS_INCLUDE_DIR CBLAS_LIBRARY)

if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS UNKNOWN IMPORTED)
  set_target_properties(CBLAS::CBLAS PROPERTIES
    IMPORTED_LOCATION ${CBLAS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CBLAS_INCLUDE_DIR})
  set(CMAKE_REQUIRED_INCLUDES ${CBLAS_INCLUDE_DIR})
  set(CMAKE_REQUIRED_LIBRARIES ${CBLAS_LIBRARY})
  check_symbol_exists(openblas_set_num_threads cblas.h CBLAS_HAS_OPENBLAS_THREADS)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(CBLAS_HAS_OPENBLAS_THREADS)
    set_target_properties(CBLAS::CBLAS PROPERTIES INTERFACE_COMPILE_DEFINITIONS MEMWALL_HAS_OPENBLAS)
  endif()
endif()
