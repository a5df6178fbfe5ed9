# The code generator is a library of its own, loaded at run time: a run whose kernels are all cached never maps LLVM.
set(llvm_hints /usr/lib/llvm-19/lib/cmake/llvm)
find_package(LLVM 19.1 CONFIG HINTS ${llvm_hints})
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM 19.1 is not here; on Debian: apt-get install llvm-19-dev, elsewhere: -DLLVM_DIR=<folder of LLVMConfig.cmake>")
endif()
file(GLOB emit_sources CONFIGURE_DEPENDS ${folder}/llvm_emit*.cpp)
add_library(tandem_llvm MODULE ${emit_sources})
target_include_directories(tandem_llvm PRIVATE ${folder})
target_include_directories(tandem_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_options(tandem_llvm PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
target_link_libraries(tandem_llvm PRIVATE tandem_codegen LLVM)
target_link_options(tandem_llvm PRIVATE -Wl,--exclude-libs,ALL)  # what is linked in stays inside
set_target_properties(tandem_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Part of every key of the disk cache: code from an older emitter is never taken for this one's.
file(GLOB key_sources CONFIGURE_DEPENDS ${folder}/llvm_emit* ${folder}/schedule.*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${key_sources})
set(emitter_key "${LLVM_PACKAGE_VERSION}")
foreach(source IN LISTS key_sources)
  file(SHA256 ${source} hash)
  string(APPEND emitter_key ${hash})
endforeach()
string(SHA256 emitter_key "${emitter_key}")
string(SUBSTRING ${emitter_key} 0 16 emitter_key)
set_source_files_properties(${folder}/kernels/generated.cpp PROPERTIES COMPILE_DEFINITIONS TANDEM_EMITTER_KEY="${emitter_key}")

target_compile_definitions(tandem_device_cpu PRIVATE TANDEM_PLUGIN_FOLDER="${CMAKE_BINARY_DIR}/lib")
target_link_libraries(tandem_device_cpu PUBLIC ${CMAKE_DL_LIBS})
add_dependencies(tandem_device_cpu tandem_llvm)

# Chosen at run time by what the processor has. These files include nothing that could leave code for these instructions elsewhere.
set_source_files_properties(${folder}/kernels/tile_avx2.cpp PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
set_source_files_properties(${folder}/kernels/tile_avx512.cpp PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mprefer-vector-width=512")
