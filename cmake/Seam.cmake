# The interface between the program and its CUDA backend, as a number: the hash of every header of ours that crosses
# it. A module of another build is refused by it (src/cuda/load.cpp).
# Makes cuda/seam_hash.h while building, for those who link memwall_seam_hash.
set(memwall_seam_header ${PROJECT_BINARY_DIR}/generated/seam/cuda/seam_hash.h)
add_custom_command(
  OUTPUT ${memwall_seam_header}
  COMMAND ${CMAKE_COMMAND} -D ROOT=${PROJECT_SOURCE_DIR} -D OUTPUT=${memwall_seam_header}
    -D DEPFILE=${memwall_seam_header}.d -P ${PROJECT_SOURCE_DIR}/cmake/SeamHash.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/SeamHash.cmake ${PROJECT_SOURCE_DIR}/src/cuda/runtime.h
  DEPFILE ${memwall_seam_header}.d
  COMMENT "Hashing the headers of the CUDA backend's interface"
  VERBATIM)
add_custom_target(memwall_seam DEPENDS ${memwall_seam_header})
add_library(memwall_seam_hash INTERFACE)
target_include_directories(memwall_seam_hash INTERFACE ${PROJECT_BINARY_DIR}/generated/seam)
add_dependencies(memwall_seam_hash memwall_seam)
