# What users link: one library, the command, the examples.

# --- op functions, from the table of ops -----------------------------------------------------------------------------------------
add_executable(tandem_opgen ${PROJECT_SOURCE_DIR}/tools/opgen/main.cpp)
target_link_libraries(tandem_opgen PRIVATE tandem_ops)
set(generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated}/tandem/nn ${generated}/src)
add_custom_command(
  OUTPUT ${generated}/tandem/ops.hpp ${generated}/src/ops_generated.cpp
  COMMAND tandem_opgen header ${generated}/tandem/ops.hpp
  COMMAND tandem_opgen source ${generated}/src/ops_generated.cpp
  DEPENDS tandem_opgen
  COMMENT "generating the op functions")
target_sources(tandem_frontend PRIVATE ${generated}/tandem/ops.hpp ${generated}/src/ops_generated.cpp)
add_custom_command(
  OUTPUT ${generated}/tandem/nn/ops.hpp ${generated}/src/symbol_ops_generated.cpp
  COMMAND tandem_opgen symbol-header ${generated}/tandem/nn/ops.hpp
  COMMAND tandem_opgen symbol-source ${generated}/src/symbol_ops_generated.cpp
  DEPENDS tandem_opgen
  COMMENT "generating the op functions on symbols")
target_sources(tandem_nn PRIVATE ${generated}/tandem/nn/ops.hpp ${generated}/src/symbol_ops_generated.cpp)

# --- the library: all layers and all devices in one ------------------------------------------------------------------------------
set(parts tandem_devices)
foreach(row IN LISTS TANDEM_LAYERS)
  string(REGEX MATCH "^[a-z_]+" layer "${row}")
  if(TARGET tandem_${layer})
    list(APPEND parts tandem_${layer})
  endif()
endforeach()
get_target_property(device_parts tandem_devices LINK_LIBRARIES)
list(APPEND parts ${device_parts})
# The objects and not only the archives: a program may use what the library itself does not, such as all of Builder for an op of its own.
set(objects)
foreach(part IN LISTS parts)
  list(APPEND objects $<TARGET_OBJECTS:${part}>)
endforeach()
add_library(tandem SHARED ${objects})
set_target_properties(tandem PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(tandem PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${generated}>)
target_compile_features(tandem PUBLIC cxx_std_20)
list(REMOVE_ITEM parts tandem_devices)
target_link_libraries(tandem PRIVATE ${parts})  # for what they need themselves
target_link_libraries(tandem PUBLIC nlohmann_json::nlohmann_json)  # configs of layers are in the interface
add_library(tandem::tandem ALIAS tandem)

# A program that adds ops links this instead: <tandem/extend.hpp> opens the inner headers that rows are written with.
add_library(tandem_extend INTERFACE)
set_target_properties(tandem_extend PROPERTIES EXPORT_NAME extend)
target_link_libraries(tandem_extend INTERFACE tandem)
target_include_directories(tandem_extend INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
add_library(tandem::extend ALIAS tandem_extend)

# cli/*.cpp -> the command `tandem`.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.cpp)
add_executable(tandem_cli ${sources})
set_target_properties(tandem_cli PROPERTIES OUTPUT_NAME tandem)
target_compile_definitions(tandem_cli PRIVATE TANDEM_VERSION="${PROJECT_VERSION}")
target_link_libraries(tandem_cli PRIVATE tandem_flags tandem ${CMAKE_DL_LIBS})

if(NOT TANDEM_EXAMPLES AND NOT TANDEM_TESTS)  # the tests run them
  return()
endif()
# examples/<name>/*.cpp -> the program tandem_<name>. Folders skeleton_* are there to be copied, and are built by the tests that need them.
# examples/common is what the others share.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/common/*.cpp)
add_library(tandem_examples STATIC ${sources})
target_include_directories(tandem_examples PUBLIC ${PROJECT_SOURCE_DIR}/examples/common)
target_link_libraries(tandem_examples PUBLIC tandem PRIVATE tandem_flags)
file(GLOB examples CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/examples/*)
foreach(folder IN LISTS examples)
  get_filename_component(name ${folder} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(sources AND NOT name MATCHES "^(skeleton_.*|common)$")
    add_executable(tandem_${name} ${sources})
    target_link_libraries(tandem_${name} PRIVATE tandem_flags tandem tandem_examples)
  endif()
endforeach()
