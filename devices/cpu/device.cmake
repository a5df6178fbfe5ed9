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

target_compile_definitions(tandem_device_cpu PRIVATE TANDEM_PLUGIN_FOLDER="${CMAKE_BINARY_DIR}/lib")
target_link_libraries(tandem_device_cpu PUBLIC ${CMAKE_DL_LIBS})
add_dependencies(tandem_device_cpu tandem_llvm)
