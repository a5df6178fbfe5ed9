# Which compilers: one table for those who build tandem and for those who use an installed one (tandemConfig.cmake includes this file).
# g++ 12 is what builds and tests tandem. clang++ 16 and 19 compile the public headers, and programs that use them.
set(tandem_oldest_GNU 12)
set(tandem_oldest_Clang 16)

# Sets `result` to why the compiler is too old or unknown, or to the empty text.
function(tandem_compiler_problem result)
  set(oldest "${tandem_oldest_${CMAKE_CXX_COMPILER_ID}}")
  set(${result} "" PARENT_SCOPE)
  if(NOT oldest OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
    set(${result} "tandem needs g++ ${tandem_oldest_GNU} or clang++ ${tandem_oldest_Clang} or newer, and this is ${CMAKE_CXX_COMPILER_ID} \
${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER})" PARENT_SCOPE)
  endif()
endfunction()
