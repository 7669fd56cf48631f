# Kernels for several instruction sets (fathom/isa.h): part of the package, and of this build.
#
# fathom_add_kernels(TARGET FILE...) compiles the files, named *_kernels.c by habit, once per set and
# adds the objects to TARGET. Each compilation has
#   FTH_ISA        base, v3 or v4: the last part of the names that a file exports
#   FTH_ISA_LEVEL  1, 3 or 4: for #if and for fathom/vector.h
# and TARGET's own files have FTH_HAVE_ISA_V3 and FTH_HAVE_ISA_V4 where there are such kernels. Which
# one runs is decided when the program runs.
set(FATHOM_ISA_SETS base)
set(FATHOM_ISA_DEFINITIONS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(APPEND FATHOM_ISA_SETS v3 v4)
    set(FATHOM_ISA_DEFINITIONS FTH_HAVE_ISA_V3=1 FTH_HAVE_ISA_V4=1)
endif()
set(FATHOM_ISA_LEVEL_base 1)
set(FATHOM_ISA_LEVEL_v3 3)
set(FATHOM_ISA_LEVEL_v4 4)
set(FATHOM_ISA_FLAGS_base)
set(FATHOM_ISA_FLAGS_v3 -march=x86-64-v3)
set(FATHOM_ISA_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)

function(fathom_add_kernels target)
    target_compile_definitions(${target} PRIVATE ${FATHOM_ISA_DEFINITIONS})
    foreach(set IN LISTS FATHOM_ISA_SETS)
        set(objects ${target}_kernels_${set})
        add_library(${objects} OBJECT ${ARGN})
        set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
        target_link_libraries(${objects} PRIVATE fathom::fathom)
        target_compile_definitions(${objects} PRIVATE ${FATHOM_ISA_DEFINITIONS} FTH_ISA=${set}
                                   FTH_ISA_LEVEL=${FATHOM_ISA_LEVEL_${set}})
        target_compile_options(${objects} PRIVATE -ffp-contract=off ${FATHOM_ISA_FLAGS_${set}})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endforeach()
endfunction()
