# Programs: cli/ with instruments/ -> bin/fathom, bench/ -> bin/fathom-bench, and each
# examples/NAME.c -> examples/NAME, which is also a test.
file(GLOB cli CONFIGURE_DEPENDS cli/*.c cli/*/*.c)
file(GLOB_RECURSE instruments CONFIGURE_DEPENDS instruments/*.c) # in rooms of any depth
file(GLOB bench CONFIGURE_DEPENDS bench/*.c)
file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
set(FTH_PROGRAMS)

if(cli)
    # All but main() is compiled apart: tests and the generator of the pages use it too.
    list(FILTER cli EXCLUDE REGEX "/main\\.c$")
    add_library(fathom_cli_objects OBJECT ${cli})
    target_link_libraries(fathom_cli_objects PRIVATE fathom_flags PkgConfig::MICROHTTPD PkgConfig::FTH_DEP_zlib)
    target_include_directories(fathom_cli_objects PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(fathom_cli_objects PRIVATE
        CLI_BUILD_TYPE="${CMAKE_BUILD_TYPE}" CLI_SANITIZE="${FTH_SANITIZE}")
    set(kernels ${instruments})
    list(FILTER kernels INCLUDE REGEX "_kernels\\.c$")
    list(FILTER instruments EXCLUDE REGEX "_kernels\\.c$")
    # The viewer of splat: files of their own, and arrays in the program.
    set(viewer ${PROJECT_SOURCE_DIR}/instruments/splat/view/viewer.html
               ${PROJECT_SOURCE_DIR}/instruments/splat/view/viewer.js)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/viewer.c
        COMMAND ${CMAKE_COMMAND} -DOUT=${PROJECT_BINARY_DIR}/viewer.c -DPREFIX=gs_ "-DFILES=${viewer}"
                -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
        DEPENDS ${viewer} cmake/Embed.cmake VERBATIM)
    # The page of spatial, likewise.
    set(spatial_page ${PROJECT_SOURCE_DIR}/instruments/spatial/page/page.html
                     ${PROJECT_SOURCE_DIR}/instruments/spatial/page/page.js)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/spatial_page.c
        COMMAND ${CMAKE_COMMAND} -DOUT=${PROJECT_BINARY_DIR}/spatial_page.c -DPREFIX=sp_
                "-DFILES=${spatial_page}" -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
        DEPENDS ${spatial_page} cmake/Embed.cmake VERBATIM)
    add_library(fathom_instruments OBJECT ${instruments} ${PROJECT_BINARY_DIR}/viewer.c
                                          ${PROJECT_BINARY_DIR}/spatial_page.c)
    target_link_libraries(fathom_instruments PRIVATE fathom_flags)
    set(instrument_objects $<TARGET_OBJECTS:fathom_instruments>)
    fth_add_kernels(instrument_objects fathom_instrument_kernels ${kernels})
    # Tests and the bench reach into instruments through the static library.
    add_library(fathom_instruments_static STATIC ${instrument_objects})
    target_link_libraries(fathom_instruments_static PUBLIC fathom_static m)
    # The program and other languages reach their list and the few functions of their python.h.
    add_library(fathom_instruments_shared SHARED ${instrument_objects})
    set_target_properties(fathom_instruments_shared PROPERTIES OUTPUT_NAME fathom_instruments
        LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    target_link_libraries(fathom_instruments_shared PRIVATE fathom fathom_flags fathom_link_flags m)
    add_executable(fathom_cli cli/main.c $<TARGET_OBJECTS:fathom_cli_objects>)
    set_target_properties(fathom_cli PROPERTIES OUTPUT_NAME fathom)
    target_link_libraries(fathom_cli PRIVATE fathom_instruments_shared fathom fathom_flags
                          PkgConfig::MICROHTTPD PkgConfig::FTH_DEP_zlib m ${CMAKE_DL_LIBS})
    # Names under which the program is one of its instruments: fth_direct of instrument.h.
    set(FTH_LINKS nanoBragg nanoBraggCUDA noisify nonBragg)
    foreach(name IN LISTS FTH_LINKS)
        add_custom_command(TARGET fathom_cli POST_BUILD
            COMMAND ${CMAKE_COMMAND} -E create_symlink fathom
                    $<TARGET_FILE_DIR:fathom_cli>/${name})
    endforeach()
    list(APPEND FTH_PROGRAMS fathom_cli)
endif()
if(bench)
    # The peers it times against are the libraries themselves.
    add_executable(fathom_bench ${bench} tests/testing/splat/densify.c)
    set_target_properties(fathom_bench PROPERTIES OUTPUT_NAME fathom-bench)
    target_link_libraries(fathom_bench PRIVATE fathom_instruments_static fathom_static fathom_flags
                          ${CMAKE_DL_LIBS})
    target_include_directories(fathom_bench PRIVATE ${PROJECT_SOURCE_DIR}
                               ${PROJECT_SOURCE_DIR}/tests)
    target_compile_options(fathom_bench PRIVATE ${FTH_HOT_OPTIONS})
    list(APPEND FTH_PROGRAMS fathom_bench)
endif()

if(FTH_TESTS)
    foreach(source IN LISTS examples)
        get_filename_component(name ${source} NAME_WE)
        add_executable(example_${name} ${source})
        set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
        target_link_libraries(example_${name} PRIVATE fathom fathom_flags m)
    endforeach()
endif()
