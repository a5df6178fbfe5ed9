# One library a folder of src/, with exactly the links it is allowed. tools/check_layers reads this very table and holds the
# #include lines to it (a header can leak what a linker never sees). Order: data flows downwards, nothing calls back up.
#
#   folder      may use (what those may use is included)
set(TANDEM_LAYERS
  "base        "
  "profile     base"
  "ir          base"
  "ops         ir"
  "transform   ops"
  "codegen     ops"
  "passes      codegen"
  "device      codegen profile"
  "plan        device"
  "exec        plan"
  "engine      transform passes exec"
  "frontend    engine"
  "io          frontend"
  "data        frontend"
  "train       data"
  "nn          train io"
  "forecast    nn"
)

# The layer that each public header include/tandem/<name>.hpp belongs to; one that is not named here belongs to frontend, and
# include/tandem/<layer>/*.hpp to that layer.
set(TANDEM_PUBLIC_HEADERS
  "base        dtype shape error dim precision"
  "data        data"
  "train       train"
  "nn          tandem"
)
# Each folder devices/<name> may use this layer (and what that may use) and itself; nobody may use a folder of devices/.
set(TANDEM_DEVICES_USE "device")

foreach(row IN LISTS TANDEM_LAYERS)
  string(REGEX MATCHALL "[a-z_]+" words "${row}")
  list(POP_FRONT words layer)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp)
  if(sources)
    add_library(tandem_${layer} STATIC ${sources})
    target_link_libraries(tandem_${layer} PUBLIC tandem_flags)
    foreach(dependency IN LISTS words)
      target_link_libraries(tandem_${layer} PUBLIC tandem_${dependency})
    endforeach()
  endif()
endforeach()
target_link_libraries(tandem_base PUBLIC Threads::Threads)

# Headers that most files include and that never change, read once (ADR 0033). Ours are not among them, so
# that a change to one compiles what uses it and no more.
set(TANDEM_PRECOMPILED <algorithm> <array> <atomic> <cmath> <condition_variable> <cstdint> <cstring> <functional> <limits> <map>
    <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
foreach(row IN LISTS TANDEM_LAYERS)
  string(REGEX MATCH "^[a-z_]+" layer "${row}")
  if(layer STREQUAL "base")
    target_precompile_headers(tandem_base PRIVATE ${TANDEM_PRECOMPILED})
  elseif(layer STREQUAL "nn")
    target_precompile_headers(tandem_nn PRIVATE ${TANDEM_PRECOMPILED} <nlohmann/json.hpp>)
  elseif(TARGET tandem_${layer})
    target_precompile_headers(tandem_${layer} REUSE_FROM tandem_base)
  endif()
endforeach()

# What single layers need from outside.
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(nlohmann_json REQUIRED GLOBAL)  # a project that contains this one links it too
if(TARGET tandem_io)  # zip archives
  target_link_libraries(tandem_io PRIVATE ZLIB::ZLIB)
endif()
if(TARGET tandem_data)  # images, compressed records
  target_link_libraries(tandem_data PRIVATE JPEG::JPEG PNG::PNG ZLIB::ZLIB)
endif()
if(TARGET tandem_nn)  # configs of layers
  target_link_libraries(tandem_nn PUBLIC nlohmann_json::nlohmann_json)
endif()
