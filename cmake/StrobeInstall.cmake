# The installed package: find_package(strobe) and pkg-config strobe.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/strobe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS strobe EXPORT strobe-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS strobe_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(STROBE_BUILD_CLI)
  install(TARGETS strobe_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/strobe)
install(EXPORT strobe-targets NAMESPACE strobe:: DESTINATION ${package_dir})
configure_package_config_file(cmake/strobe-config.cmake.in strobe-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(strobe-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/strobe-config.cmake"
              "${PROJECT_BINARY_DIR}/strobe-config-version.cmake" DESTINATION ${package_dir})

# Relative, so that the installed tree may be moved; the depth is that of the library folder.
file(RELATIVE_PATH STROBE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/strobe.pc.in strobe.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/strobe.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
