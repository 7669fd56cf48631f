# fth_add_kernels(out name sources...) appends objects to the list `out`: files named *_kernels.c, in
# src/cpu and in the rooms of instruments, compiled once per instruction set as FathomKernels.cmake
# says, with the flags of this build. All files of the build know which sets there are.
include(${CMAKE_CURRENT_LIST_DIR}/FathomKernels.cmake)
# Those that this machine has a better set for run here only where tests compare the sets.
option(FTH_SPARE_QUICK "Optimise kernels less for sets below the best of this machine: for ./check" OFF)
set(best v4)
if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo features REGEX "^flags" LIMIT_COUNT 1)
    if(NOT features MATCHES " avx512vl ")
        set(best v3)
    endif()
endif()
# Sanitizers make kernels slow to compile, and the sets share their source: there base and the best
# one of this machine are enough.
if(FTH_SANITIZE)
    set(spare v4)
    if(best STREQUAL "v4")
        set(spare v3)
    endif()
    list(REMOVE_ITEM FATHOM_ISA_SETS ${spare})
    string(TOUPPER ${spare} spare)
    list(REMOVE_ITEM FATHOM_ISA_DEFINITIONS FTH_HAVE_ISA_${spare}=1)
endif()
target_compile_definitions(fathom_flags INTERFACE ${FATHOM_ISA_DEFINITIONS})

function(fth_add_kernels out name)
    if(NOT ARGN)
        return()
    endif()
    foreach(set IN LISTS FATHOM_ISA_SETS)
        add_library(${name}_${set} OBJECT ${ARGN})
        target_link_libraries(${name}_${set} PRIVATE fathom_flags fathom_dependencies)
        target_compile_definitions(${name}_${set} PRIVATE
            FTH_ISA=${set} FTH_ISA_LEVEL=${FATHOM_ISA_LEVEL_${set}})
        target_compile_options(${name}_${set} PRIVATE ${FTH_HOT_OPTIONS} ${FATHOM_ISA_FLAGS_${set}})
        if(FTH_SPARE_QUICK AND NOT set STREQUAL best)
            target_compile_options(${name}_${set} PRIVATE -O1)
        endif()
        # Only what compares the sets runs base there: compiling it takes longer than what it does.
        if(FTH_SANITIZE AND NOT FTH_FUZZ AND set STREQUAL "base")
            target_compile_options(${name}_${set} PRIVATE -O0)
        endif()
        # Frames that gcc 12 keeps to find uses after return lie at multiples of 32 bytes, and vectors
        # of 64 in them crash (gcc bug 110027).
        if(FTH_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
            target_compile_options(${name}_${set} PRIVATE --param=asan-use-after-return=0)
        endif()
        list(APPEND ${out} $<TARGET_OBJECTS:${name}_${set}>)
    endforeach()
    set(${out} "${${out}}" PARENT_SCOPE)
endfunction()
