# What `cmake --install` puts where: the library with its plug-in beside it, the command, headers, and what find_package and pkg-config
# read. All of it finds the rest from where it lies itself, so the folder may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS tandem tandem_extend EXPORT tandem LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tandem_llvm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tandem_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set_target_properties(tandem_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tandem ${generated}/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
# For <tandem/extend.hpp>: the layers that rows are written with, which include nothing outside of themselves, and what calls a row.
set(inner ${CMAKE_INSTALL_INCLUDEDIR}/tandem/inner)
target_include_directories(tandem_extend INTERFACE $<INSTALL_INTERFACE:${inner}>)
foreach(layer base ir ops)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${layer} DESTINATION ${inner} FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/src/frontend/apply.hpp ${PROJECT_SOURCE_DIR}/src/frontend/thread_state.hpp DESTINATION ${inner}/frontend)

# The build folder has the same three files, so that it can be found too: -Dtandem_DIR=build/release.
configure_file(${PROJECT_SOURCE_DIR}/cmake/tandemConfig.cmake.in ${PROJECT_BINARY_DIR}/tandemConfig.cmake @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/compiler.cmake ${PROJECT_BINARY_DIR}/compiler.cmake COPYONLY)
export(EXPORT tandem NAMESPACE tandem:: FILE ${PROJECT_BINARY_DIR}/tandemTargets.cmake)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(EXPORT tandem NAMESPACE tandem:: FILE tandemTargets.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tandemConfig.cmake ${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake
  ${PROJECT_BINARY_DIR}/compiler.cmake DESTINATION ${package})

file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tandem.pc.in ${PROJECT_BINARY_DIR}/tandem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tandem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
