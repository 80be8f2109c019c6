include(CMakePackageConfigHelpers)

install(TARGETS ${ODECAST_TARGETS} EXPORT odecastTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Headers of the stages; those that only the kernel sources include stay behind.
install(DIRECTORY odecast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp"
        PATTERN "lane_kernel.hpp" EXCLUDE PATTERN "gradient_kernel.hpp" EXCLUDE PATTERN "pattern_kernel.hpp" EXCLUDE
        PATTERN "moments_kernel.hpp" EXCLUDE PATTERN "normal_kernel.hpp" EXCLUDE PATTERN "kernel_gradient.hpp" EXCLUDE PATTERN "gradient_job.hpp" EXCLUDE
        PATTERN "stepper.hpp" EXCLUDE PATTERN "ensemble.hpp" EXCLUDE PATTERN "pack.hpp" EXCLUDE
        PATTERN "assets.hpp" EXCLUDE PATTERN "page_data.hpp" EXCLUDE)
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
