# What `cmake --install` puts under a prefix: programs, both libraries, public
# headers, a pkg-config file and the CMake package fathom::fathom. Everything
# finds its neighbours relative to itself, so the prefix can be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fathom)

set_target_properties(fathom ${FTH_PROGRAMS} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS fathom EXPORT fathomTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fathom_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET fathom_instruments_shared)
    set_target_properties(fathom_instruments_shared PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS fathom_instruments_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET fathom_cuda)
    set_target_properties(fathom_cuda PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS fathom_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(FTH_PROGRAMS)
    install(TARGETS ${FTH_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    foreach(name IN LISTS FTH_LINKS)
        install(PROGRAMS $<TARGET_FILE_DIR:fathom_cli>/${name}
                DESTINATION ${CMAKE_INSTALL_BINDIR})
    endforeach()
endif()
install(DIRECTORY include/fathom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inc")
install(FILES LICENSE README.md CHANGELOG.md docs/licenses/DejaVu.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
if(FTH_PROGRAMS)
    foreach(page nanoBragg:bragg nanoBraggCUDA:bragg noisify:bragg-noisify nonBragg:bragg-nonbragg)
        string(REPLACE ":" ";" page ${page})
        list(GET page 0 name)
        list(GET page 1 command)
        install(CODE "file(CREATE_LINK fathom-${command}.1
            \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/${name}.1\" SYMBOLIC)")
    endforeach()
endif()
install(FILES docs/completions/fathom.bash RENAME fathom
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES docs/completions/fathom.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES docs/completions/_fathom
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
file(GLOB python CONFIGURE_DEPENDS bindings/python/*.py bindings/python/*.pyi)
if(python)
    install(FILES ${python} DESTINATION ${CMAKE_INSTALL_DATADIR}/fathom/python)
endif()

# ${pcfiledir} makes the file right wherever the prefix is moved to.
string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(cmake/fathom.pc.in fathom.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fathom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT fathomTargets NAMESPACE fathom:: DESTINATION ${package_dir})
configure_package_config_file(cmake/fathomConfig.cmake.in fathomConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fathomConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fathomConfig.cmake cmake/FathomKernels.cmake
              ${PROJECT_BINARY_DIR}/fathomConfigVersion.cmake
        DESTINATION ${package_dir})
