# The CUDA backend: libmemwall_cuda.so, a module that the program loads when a command uses a device. Nothing
# else links CUDA, and the module links its runtime alone: it opens cuBLAS where it finds it, and is built without it
# where its headers are not there.
#   MEMWALL_CUDA                 AUTO: where nvcc is found and works; ON: it must be; OFF
#   MEMWALL_CUDA_ARCHITECTURES   to narrow what it is built for ("90"); empty: all that nvcc knows of the list
# Sets MEMWALL_CUDA_FOUND, and MEMWALL_CUDA_WHY_NOT where it is not.

set(MEMWALL_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO (where CUDA is found), ON or OFF")
set_property(CACHE MEMWALL_CUDA PROPERTY STRINGS AUTO ON OFF)
set(MEMWALL_CUDA_ARCHITECTURES "" CACHE STRING
  "Architectures of the CUDA backend, as 80;90 (empty: 75;80;86;89;90;100;120, as far as nvcc knows them)")

set(MEMWALL_CUDA_FOUND FALSE)
set(MEMWALL_CUDA_WHY_NOT "")

# nvcc, where CMake was told, on PATH, or where NVIDIA's installers put it; which of the wanted architectures
# it knows; whether it works with this C++ compiler, which enable_language would take for granted.
function(memwall_find_nvcc)
  find_program(MEMWALL_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
    PATH_SUFFIXES bin)
  mark_as_advanced(MEMWALL_NVCC)
  set(nvcc ${CMAKE_CUDA_COMPILER})
  if(NOT nvcc)
    set(nvcc ${MEMWALL_NVCC})
  endif()
  if(NOT nvcc)
    set(MEMWALL_CUDA_WHY_NOT "there is no nvcc" PARENT_SCOPE)
    return()
  endif()

  execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+" known "${known}")
  set(architectures ${MEMWALL_CUDA_ARCHITECTURES})
  if(NOT architectures)
    set(architectures 75 80 86 89 90 100 120)
  endif()
  foreach(architecture IN LISTS architectures)
    if(NOT architecture IN_LIST known)
      list(REMOVE_ITEM architectures ${architecture})
    endif()
  endforeach()
  if(NOT architectures)
    set(MEMWALL_CUDA_WHY_NOT "${nvcc} knows none of the wanted architectures" PARENT_SCOPE)
    return()
  endif()

  if(NOT CMAKE_CUDA_COMPILER_LOADED AND NOT nvcc STREQUAL MEMWALL_CUDA_WORKS)
    set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/memwall_probe.cu)
    file(WRITE ${probe} "#include <string>\n__global__ void kernel() {}\n")
    # A C++ compiler that is newer than nvcc's list mostly works all the same, if it is told to try.
    foreach(flag "" -allow-unsupported-compiler)
      execute_process(COMMAND ${nvcc} -std=c++17 ${flag} -ccbin ${memwall_host_compiler} -c ${probe} -o ${probe}.o
        RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
      set(MEMWALL_CUDA_HOST_FLAG "${flag}" CACHE INTERNAL "what that nvcc wants for this C++ compiler")
      if(status EQUAL 0 OR NOT output MATCHES "allow-unsupported-compiler")
        break()
      endif()
    endforeach()
    if(NOT status EQUAL 0)
      string(REGEX MATCH "[^\n]*(error|unsupported|cannot)[^\n]*" first "${output}")
      set(MEMWALL_CUDA_WHY_NOT "${nvcc} does not compile: ${first}" PARENT_SCOPE)
      return()
    endif()
    set(MEMWALL_CUDA_WORKS ${nvcc} CACHE INTERNAL "the nvcc that compiled a probe")
  endif()
  set(memwall_nvcc ${nvcc} PARENT_SCOPE)
  set(memwall_architectures ${architectures} PARENT_SCOPE)
endfunction()

# The toolkit of the nvcc that was enabled.
function(memwall_find_toolkit)
  find_package(CUDAToolkit 12.0 QUIET)
  set(MEMWALL_CUDA_FOUND FALSE PARENT_SCOPE)
  if(NOT CUDAToolkit_FOUND)
    set(MEMWALL_CUDA_WHY_NOT "there is no toolkit of CUDA 12.0 or later beside nvcc" PARENT_SCOPE)
  elseif(NOT TARGET CUDA::cudart_static)
    set(MEMWALL_CUDA_WHY_NOT "libcudart_static.a is missing" PARENT_SCOPE)
  else()
    set(MEMWALL_CUDA_FOUND TRUE PARENT_SCOPE)
  endif()
  set(memwall_cuda_version ${CUDAToolkit_VERSION} PARENT_SCOPE)
  list(GET CUDAToolkit_INCLUDE_DIRS 0 include)
  set(memwall_cuda_include ${include} PARENT_SCOPE)
endfunction()

# cuBLAS's headers, of the toolkit or of NVIDIA's Python packages; its libraries are found when they are used. Sets
# memwall_cublas, and memwall_no_cublas to why not.
function(memwall_find_cublas_headers)
  set(packages "")
  foreach(prefix $ENV{VIRTUAL_ENV} $ENV{HOME}/.local /opt/* /opt/*/.venv /usr/local /usr)
    file(GLOB found ${prefix}/lib/python3*/site-packages/nvidia/cu*/include
      ${prefix}/lib/python3*/dist-packages/nvidia/cu*/include)
    list(APPEND packages ${found})
  endforeach()
  find_path(MEMWALL_CUBLAS_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${memwall_cuda_include}
    PATHS ${packages} DOC "Folder of cublasLt.h (OFF: the CUDA backend is built without cuBLAS)")
  mark_as_advanced(MEMWALL_CUBLAS_INCLUDE_DIR)
  set(memwall_cublas FALSE PARENT_SCOPE)
  if(NOT MEMWALL_CUBLAS_INCLUDE_DIR OR NOT EXISTS ${MEMWALL_CUBLAS_INCLUDE_DIR}/cublas_api.h)
    set(memwall_no_cublas "its headers are not here; MEMWALL_CUBLAS_INCLUDE_DIR can name their folder" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${MEMWALL_CUBLAS_INCLUDE_DIR}/cublas_api.h version REGEX "define +CUBLAS_VER_MAJOR +[0-9]+")
  string(REGEX REPLACE ".* ([0-9]+).*" "\\1" version "${version}")
  string(REGEX MATCH "^[0-9]+" wanted "${memwall_cuda_version}")
  if(NOT version STREQUAL wanted)
    set(memwall_no_cublas "${MEMWALL_CUBLAS_INCLUDE_DIR} is of cuBLAS ${version}, nvcc of CUDA ${wanted}" PARENT_SCOPE)
    return()
  endif()
  set(memwall_cublas TRUE PARENT_SCOPE)
endfunction()

if(CMAKE_CUDA_HOST_COMPILER)
  set(memwall_host_compiler ${CMAKE_CUDA_HOST_COMPILER})
elseif(DEFINED ENV{CUDAHOSTCXX})
  set(memwall_host_compiler $ENV{CUDAHOSTCXX})
else()
  set(memwall_host_compiler ${CMAKE_CXX_COMPILER})
endif()

if(NOT MEMWALL_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "MEMWALL_CUDA is \"${MEMWALL_CUDA}\": it can be AUTO, ON or OFF")
elseif(MEMWALL_CUDA STREQUAL "OFF")
  set(MEMWALL_CUDA_WHY_NOT "MEMWALL_CUDA is OFF")
elseif(MEMWALL_SANITIZE)
  set(MEMWALL_CUDA_WHY_NOT "nvcc knows no sanitizers (MEMWALL_SANITIZE is ${MEMWALL_SANITIZE})")
else()
  memwall_find_nvcc()
endif()
if(memwall_nvcc)
  # CMake 3.25 knows no C++20 for CUDA and drops it silently: .cu files are C++17. Real code for each
  # architecture, and PTX of the newest for cards that are newer than all.
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  list(TRANSFORM memwall_architectures APPEND -real OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  list(GET memwall_architectures -1 newest)
  list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest}-virtual)
  set(CMAKE_CUDA_COMPILER ${memwall_nvcc} CACHE FILEPATH "nvcc")
  set(CMAKE_CUDA_HOST_COMPILER ${memwall_host_compiler})
  if(MEMWALL_CUDA_HOST_FLAG)
    string(APPEND CMAKE_CUDA_FLAGS " ${MEMWALL_CUDA_HOST_FLAG}")
  endif()
  enable_language(CUDA)
  memwall_find_toolkit()
endif()

if(NOT MEMWALL_CUDA_FOUND)
  if(MEMWALL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MEMWALL_CUDA is ON, but ${MEMWALL_CUDA_WHY_NOT}")
  endif()
  message(STATUS "CUDA backend: not built: ${MEMWALL_CUDA_WHY_NOT}")
  return()
endif()
list(JOIN memwall_architectures ", " memwall_built_for)
memwall_find_cublas_headers()
set(without "")
if(NOT memwall_cublas)
  set(without ", without cuBLAS: ${memwall_no_cublas}")
endif()
message(STATUS "CUDA backend: built by CUDA ${memwall_cuda_version} for ${memwall_built_for}${without}")

# The names of cuBLASLt's tiles and stages, hundreds of them and more with every release, from its header.
function(memwall_lt_names variable enumeration)
  file(STRINGS ${MEMWALL_CUBLAS_INCLUDE_DIR}/cublasLt.h lines
    REGEX "^ *CUBLASLT_MATMUL_${enumeration}_[0-9]+x[0-9A-Z]+ += *[0-9]+")
  set(names "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^ *CUBLASLT_MATMUL_${enumeration}_([0-9]+x[0-9A-Z]+) += *([0-9]+).*" "    {\\2, \"\\1\"},\n"
      name "${line}")
    string(APPEND names "${name}")
  endforeach()
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()
if(memwall_cublas)
  memwall_lt_names(tiles TILE)
  memwall_lt_names(stages STAGES)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/cublaslt_names.h @ONLY CONTENT [[
// Made by cmake/Cuda.cmake from cublasLt.h.
#pragma once

struct LtName {
  unsigned id;
  const char* words;
};
inline constexpr LtName kLtTiles[] = {
    {0, "?"},
@tiles@};
inline constexpr LtName kLtStages[] = {
    {0, "?"},
@stages@};
]])
endif()

file(GLOB memwall_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/module/*.cu
  ${PROJECT_SOURCE_DIR}/src/cuda/module/*.cpp)
set(left_out cublas.cpp cublaslt.cpp cublas_library.cpp gemms.cpp)
if(memwall_cublas)
  set(left_out no_matrix_library.cpp)
endif()
list(TRANSFORM left_out PREPEND ${PROJECT_SOURCE_DIR}/src/cuda/module/)
list(REMOVE_ITEM memwall_cuda_sources ${left_out})
add_library(memwall_cuda MODULE ${memwall_cuda_sources})
target_include_directories(memwall_cuda PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_BINARY_DIR}/generated)
# Behind the toolkit's own: a folder of Python packages may hold the headers of another release.
add_library(memwall_cublas_headers INTERFACE)
if(memwall_cublas)
  target_include_directories(memwall_cublas_headers SYSTEM INTERFACE ${MEMWALL_CUBLAS_INCLUDE_DIR})
endif()
target_link_libraries(memwall_cuda PRIVATE memwall_seam_hash CUDA::cudart_static memwall_cublas_headers
  ${CMAKE_DL_LIBS})
target_compile_definitions(memwall_cuda PRIVATE MEMWALL_CUDA_BUILT_FOR="${memwall_built_for}")
target_compile_options(memwall_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:memwall_warnings,INTERFACE_COMPILE_OPTIONS>>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v;-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${MEMWALL_WERROR}>>:-Werror=all-warnings>)
# It exports the two functions of src/cuda/runtime.h, and of the libraries inside it nothing.
set(exports ${PROJECT_SOURCE_DIR}/src/cuda/module/exports.map)
target_link_options(memwall_cuda PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
set_target_properties(memwall_cuda PROPERTIES LINK_DEPENDS ${exports})
set(launcher ${PROJECT_SOURCE_DIR}/scripts/ptxas_report ${CMAKE_CUDA_COMPILER_LAUNCHER})
set_target_properties(memwall_cuda PROPERTIES
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  SKIP_BUILD_RPATH ON
  CUDA_COMPILER_LAUNCHER "${launcher}")
install(TARGETS memwall_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/memwall)
