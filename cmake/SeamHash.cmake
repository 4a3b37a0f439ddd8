# cmake -D ROOT=SOURCES -D OUTPUT=HEADER [-D DEPFILE=FILE] -P SeamHash.cmake
# Writes a header with the hash of what crosses the seam of src/cuda/runtime.h: that header, those of the errors that
# pass it, and every header of ours that one of them includes.
cmake_minimum_required(VERSION 3.25)

set(wanted src/cuda/runtime.h src/input/error.h src/bench/device_lost.h src/bench/out_of_memory.h
  src/bench/unsupported.h)
set(headers "")
while(wanted)
  list(POP_FRONT wanted header)
  if(header IN_LIST headers)
    continue()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${ROOT}/${header} includes REGEX "^ *# *include +\"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^ *# *include +\"([^\"]+)\".*" "\\1" name "${include}")
    # As the compiler is told: the source folder, then the root. Headers that are made while building do not cross.
    foreach(path src/${name} ${name})
      if(EXISTS ${ROOT}/${path})
        list(APPEND wanted ${path})
        break()
      endif()
    endforeach()
  endforeach()
endwhile()
list(SORT headers)

set(hashes "")
foreach(header IN LISTS headers)
  file(SHA256 ${ROOT}/${header} hash)
  string(APPEND hashes "${header} ${hash}\n")
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
list(JOIN headers "\n//   " list)

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Made by cmake/SeamHash.cmake from
//   @list@
#pragma once

#include <cstdint>

namespace memwall::cuda {

// Of the headers that cross the seam between the program and the CUDA backend.
inline constexpr std::uint64_t kSeamHash = 0x@hash@U;

}  // namespace memwall::cuda
]])
if(DEPFILE)
  list(TRANSFORM headers PREPEND ${ROOT}/ OUTPUT_VARIABLE paths)
  list(TRANSFORM paths REPLACE " " "\\\\ ")
  list(JOIN paths " " paths)
  file(WRITE ${DEPFILE} "${OUTPUT}: ${paths}\n")
endif()
