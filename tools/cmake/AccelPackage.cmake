# accel-opt as a Debian package: cpack -G DEB in the build folder, after
# tools/package has written completions and man pages to build/package/share.
set(ACCEL_SHARE ${PROJECT_BINARY_DIR}/package/share)
install(TARGETS accel-opt RUNTIME DESTINATION bin COMPONENT accel-opt)
install(DIRECTORY ${ACCEL_SHARE}/ DESTINATION share COMPONENT accel-opt OPTIONAL)
install(FILES LICENSE DESTINATION share/doc/accel-opt RENAME copyright
        COMPONENT accel-opt)
install(FILES ${PROJECT_BINARY_DIR}/package/THIRD-PARTY-LICENSES
        DESTINATION share/doc/accel-opt COMPONENT accel-opt OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME accel-opt)
set(CPACK_PACKAGE_VENDOR accel-opt)
set(CPACK_PACKAGE_CONTACT "the authors of accel-opt <accel-opt@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "planner for sharded training jobs")
set(CPACK_PACKAGE_DESCRIPTION
    "Reads an accelerate configuration and a model, and says what each rank will\nhold and take before anything runs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL accel-opt)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ACCEL-OPT_PACKAGE_NAME accel-opt)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# Which libraries it needs is what the binary says.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
