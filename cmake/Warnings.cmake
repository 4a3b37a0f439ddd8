# memwall_warnings: an interface target, so that warnings apply to our code and to nobody else's.
add_library(memwall_warnings INTERFACE)
target_compile_options(memwall_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-align -Wunused -Wdouble-promotion -Wformat=2)
# g++ 12 sees overlapping copies in std::string's operator+ that are not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(memwall_warnings INTERFACE -Wno-restrict)
endif()
if(MEMWALL_WERROR)
  target_compile_options(memwall_warnings INTERFACE -Werror)
endif()

# Sanitizers are global: every translation unit of the build must agree on them.
if(MEMWALL_SANITIZE)
  add_compile_options(-fsanitize=${MEMWALL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MEMWALL_SANITIZE})
endif()
