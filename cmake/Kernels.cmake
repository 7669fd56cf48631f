# fth_add_kernels(out name sources...) appends objects to the list `out`. Files named *_kernels.c, in
# src/cpu and in the rooms of instruments, are compiled once per instruction set, with
#   FTH_ISA        base, v3 or v4: to be glued to the names of functions
#   FTH_ISA_LEVEL  1, 3 or 4: for #if
# and everything else is told which sets exist, by FTH_HAVE_ISA_V3 and
# FTH_HAVE_ISA_V4. Which one runs is decided when the program starts.
function(fth_add_kernels out name)
    set(sources ${ARGN})
    set(sets base)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        list(APPEND sets v3 v4)
        target_compile_definitions(fathom_flags INTERFACE FTH_HAVE_ISA_V3=1 FTH_HAVE_ISA_V4=1)
    endif()
    set(level_base 1)
    set(level_v3 3)
    set(level_v4 4)
    set(flags_base)
    set(flags_v3 -march=x86-64-v3)
    set(flags_v4 -march=x86-64-v4 -mprefer-vector-width=512)
    if(NOT sources)
        return()
    endif()
    foreach(set IN LISTS sets)
        add_library(${name}_${set} OBJECT ${sources})
        target_link_libraries(${name}_${set} PRIVATE fathom_flags fathom_dependencies)
        target_compile_definitions(${name}_${set} PRIVATE
            FTH_ISA=${set} FTH_ISA_LEVEL=${level_${set}})
        target_compile_options(${name}_${set} PRIVATE ${FTH_HOT_OPTIONS} ${flags_${set}})
        # Frames that gcc 12 keeps to find uses after return lie at multiples of 32 bytes, and vectors
        # of 64 in them crash (gcc bug 110027).
        if(FTH_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
            target_compile_options(${name}_${set} PRIVATE --param=asan-use-after-return=0)
        endif()
        list(APPEND ${out} $<TARGET_OBJECTS:${name}_${set}>)
    endforeach()
    set(${out} "${${out}}" PARENT_SCOPE)
endfunction()
