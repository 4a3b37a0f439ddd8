# Dependencies come from the system. MEMWALL_FETCH_DEPS=ON downloads the ones that are missing (all but
# hwloc), for people whose system does not package them.
find_package(Threads REQUIRED)
find_package(HWLOC REQUIRED)

function(memwall_dependency name target url)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND AND MEMWALL_FETCH_DEPS)
    include(FetchContent)
    string(TOLOWER ${name} id)
    FetchContent_Declare(${id} URL ${url} DOWNLOAD_EXTRACT_TIMESTAMP TRUE SYSTEM)
    FetchContent_MakeAvailable(${id})
  elseif(NOT ${name}_FOUND)
    message(FATAL_ERROR "memwall needs ${name}: install it (scripts/quickstart.sh does on Debian), "
      "or configure with -DMEMWALL_FETCH_DEPS=ON to download it")
  endif()
endfunction()

set(YAML_CPP_BUILD_TESTS OFF)
set(YAML_CPP_BUILD_TOOLS OFF)
set(HWY_ENABLE_TESTS OFF)
set(HWY_ENABLE_EXAMPLES OFF)
set(HWY_ENABLE_CONTRIB OFF)
memwall_dependency(fmt fmt::fmt https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz)
memwall_dependency(yaml-cpp yaml-cpp https://github.com/jbeder/yaml-cpp/archive/refs/tags/0.8.0.tar.gz)
# yaml-cpp 0.7 exports its target without a namespace, later ones with it.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
memwall_dependency(CLI11 CLI11::CLI11 https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.3.2.tar.gz)
memwall_dependency(nlohmann_json nlohmann_json::nlohmann_json
  https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz)
# RapidJSON 1.1.0 is headers alone and defines no target; its own build would only build its tests.
find_package(RapidJSON QUIET)
if(NOT RapidJSON_FOUND AND MEMWALL_FETCH_DEPS)
  include(FetchContent)
  FetchContent_Declare(rapidjson URL https://github.com/Tencent/rapidjson/archive/refs/tags/v1.1.0.tar.gz
    DOWNLOAD_EXTRACT_TIMESTAMP TRUE SOURCE_SUBDIR include)
  FetchContent_MakeAvailable(rapidjson)
  set(RAPIDJSON_INCLUDE_DIRS ${rapidjson_SOURCE_DIR}/include)
elseif(NOT RapidJSON_FOUND)
  message(FATAL_ERROR "memwall needs RapidJSON: install it (scripts/quickstart.sh does on Debian), "
    "or configure with -DMEMWALL_FETCH_DEPS=ON to download it")
endif()
# Others call the variable RapidJSON_INCLUDE_DIRS.
add_library(memwall_rapidjson INTERFACE)
target_include_directories(memwall_rapidjson SYSTEM INTERFACE
  ${RAPIDJSON_INCLUDE_DIRS} ${RapidJSON_INCLUDE_DIRS})
memwall_dependency(hwy hwy::hwy https://github.com/google/highway/archive/refs/tags/1.0.3.tar.gz)
