include(CMakePackageConfigHelpers)

install(TARGETS ${ODECAST_TARGETS} EXPORT odecastTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Public headers; those in detail/ stay behind.
install(DIRECTORY odecast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp"
        PATTERN "detail" EXCLUDE PATTERN "assets" EXCLUDE)
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/odecast)
install(EXPORT odecastTargets NAMESPACE odecast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/odecast)
configure_package_config_file(cmake/odecastConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/odecastConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/odecast)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/odecastConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/odecastConfig.cmake
              ${PROJECT_BINARY_DIR}/odecastConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/odecast)
