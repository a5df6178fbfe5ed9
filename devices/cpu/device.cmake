# The code generator is a library of its own, loaded at run time: a run whose kernels are all cached never maps LLVM.
set(llvm_hints /usr/lib/llvm-19/lib/cmake/llvm)
find_package(LLVM 19.1 CONFIG HINTS ${llvm_hints})
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM 19.1 is not here; on Debian: apt-get install llvm-19-dev, elsewhere: -DLLVM_DIR=<folder of LLVMConfig.cmake>")
endif()
if(NOT TARGET zstd::libzstd_shared OR NOT TARGET ZLIB::ZLIB)
  message(FATAL_ERROR "LLVM's static libraries need zlib and zstd; on Debian: apt-get install zlib1g-dev libzstd-dev")
endif()
file(GLOB emit_sources CONFIGURE_DEPENDS ${folder}/llvm_emit*.cpp)
add_library(tandem_llvm MODULE ${emit_sources})
target_include_directories(tandem_llvm PRIVATE ${folder})
target_include_directories(tandem_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_options(tandem_llvm PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
# Only the parts of LLVM that make x86 code, linked in: the shared libLLVM has every target, and takes five times as long to load.
llvm_map_components_to_libnames(llvm_parts x86codegen)
target_link_libraries(tandem_llvm PRIVATE tandem_codegen ${llvm_parts})
# What is linked in stays inside; what is not called is left out, and so are the libraries that only such parts need. The wrapped
# function is in llvm_emit.cpp.
target_link_options(tandem_llvm PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--as-needed -Wl,--wrap=__cxa_atexit)
set_target_properties(tandem_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Part of every key of the disk cache: code from an older emitter is never taken for this one's. It covers all that the plug-in is
# made of and that reads a kernel: the emitter, the schedule, canonical loops and how they are taken apart, scalars, element types.
file(GLOB key_sources CONFIGURE_DEPENDS ${folder}/llvm_emit* ${folder}/schedule.* ${folder}/target.hpp ${PROJECT_SOURCE_DIR}/src/codegen/*
     ${PROJECT_SOURCE_DIR}/src/ir/scalar.* ${PROJECT_SOURCE_DIR}/src/ir/loops.* ${PROJECT_SOURCE_DIR}/src/base/dtype.*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${key_sources})
set(emitter_key "${LLVM_PACKAGE_VERSION}")
foreach(source IN LISTS key_sources)
  file(SHA256 ${source} hash)
  string(APPEND emitter_key ${hash})
endforeach()
string(SHA256 emitter_key "${emitter_key}")
string(SUBSTRING ${emitter_key} 0 16 emitter_key)
set_source_files_properties(${folder}/kernels/generated.cpp PROPERTIES COMPILE_DEFINITIONS TANDEM_EMITTER_KEY="${emitter_key}")

target_link_libraries(tandem_device_cpu PUBLIC ${CMAKE_DL_LIBS})
add_dependencies(tandem_device_cpu tandem_llvm)

# Chosen at run time by what the processor has. These files include nothing that could leave code for these instructions elsewhere.
file(GLOB avx2_sources CONFIGURE_DEPENDS ${folder}/kernels/*_avx2.cpp)
file(GLOB avx512_sources CONFIGURE_DEPENDS ${folder}/kernels/*_avx512.cpp)
set(avx512 "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mprefer-vector-width=512")
set_source_files_properties(${avx2_sources} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
set_source_files_properties(${avx512_sources} PROPERTIES COMPILE_OPTIONS "${avx512}")
set_source_files_properties(${folder}/kernels/tile_avx512_pairs.cpp PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512bf16")
set_source_files_properties(${avx2_sources} ${avx512_sources} ${folder}/kernels/tile_avx512_pairs.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
