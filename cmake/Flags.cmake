# How every C file of the repository is compiled.
#
# -ffp-contract=off keeps a*b+c at two roundings on every instruction set, so
# that all variants of a kernel give the same bits; fma is a written operation.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-g")
if(FTH_SANITIZE) # lines are enough for its reports
    set(CMAKE_C_FLAGS_DEBUG "-g1")
endif()

add_library(fathom_flags INTERFACE)
target_include_directories(fathom_flags INTERFACE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(fathom_flags INTERFACE _GNU_SOURCE)
target_compile_options(fathom_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -Wcast-qual -Wswitch-enum -Wundef -Wformat=2 -Wdouble-promotion
    -fno-common -fstack-protector-strong
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= # error messages and builds know no folder of ours
    -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(FTH_WERROR)
    target_compile_options(fathom_flags INTERFACE -Werror)
endif()

add_library(fathom_link_flags INTERFACE)
if(FTH_SANITIZE)
    add_compile_options(-fsanitize=${FTH_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${FTH_SANITIZE})
    if(CMAKE_C_COMPILER_ID MATCHES "Clang") # checks keep it from turning loops into vectors; so be it
        add_compile_options(-Wno-pass-failed)
        # What gcc defines; clang 14 has another way to ask.
        if(FTH_SANITIZE MATCHES "address")
            add_compile_definitions(__SANITIZE_ADDRESS__=1)
        elseif(FTH_SANITIZE MATCHES "thread")
            add_compile_definitions(__SANITIZE_THREAD__=1)
        endif()
    endif()
    if(FTH_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=all)
        # Of a null pointer and of an access beyond its object the address sanitizer tells too. Asked at
        # every access once more they are a seventh of what compiling takes.
        if(FTH_SANITIZE MATCHES "address")
            add_compile_options(-fno-sanitize=null,object-size)
        endif()
        # clang takes NULL + 0, the place of an empty array, for an overflow; compilers and the next C
        # define it.
        if(CMAKE_C_COMPILER_ID MATCHES "Clang")
            add_compile_options(-fno-sanitize=pointer-overflow)
        endif()
    endif()
else()
    # A sanitizer's own symbols stay open in a shared library; ours never do.
    target_link_options(fathom_link_flags INTERFACE -Wl,--no-undefined)
    target_compile_options(fathom_flags INTERFACE
        $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
endif()
if(FTH_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "FTH_FUZZ needs clang: cmake -DCMAKE_C_COMPILER=clang ...")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The folders where time is spent.
set(FTH_HOT_OPTIONS $<$<CONFIG:Release>:-O3>)
file(GLOB hot CONFIGURE_DEPENDS src/cpu/*.c src/ops/*.c)
list(FILTER hot EXCLUDE REGEX "_kernels\\.c$")
set_source_files_properties(${hot} PROPERTIES COMPILE_OPTIONS "${FTH_HOT_OPTIONS}")
# Cases of tests run once, and there are many: compiling them takes longer than what they do. What
# they compare with, which loops, is in tests/testing and optimised. Under a sanitizer, which makes
# optimising slow, that holds for all of the library and of the instruments that does not compute.
set(FTH_CASE_OPTIONS $<$<CONFIG:Release>:-O0 -U_FORTIFY_SOURCE>)
if(FTH_SANITIZE AND NOT FTH_FUZZ)
    set(FTH_CASE_OPTIONS -O0)
    file(GLOB cold CONFIGURE_DEPENDS bench/*.c cli/*.c cli/*/*.c src/config/*.c src/io/*.c src/job/*/*.c src/plot/*.c
         src/text/*.c src/trace/*.c)
    # What is done for every pixel of a figure is not.
    list(FILTER cold EXCLUDE REGEX "/src/(plot/(column|gif|palette|png|points|resolve|save|thumbnail)|text/png)\\.c$")
    # Instruments compute in ops/ and in kernels; beside those, what a profile of their tests shows.
    file(GLOB_RECURSE rooms CONFIGURE_DEPENDS instruments/*.c)
    list(FILTER rooms EXCLUDE REGEX "_kernels\\.c$|/ops/|/bragg/(companions/(nonbragg|noisify)|geometry/(cell|crystal|rotate)|refine/lattice)\\.c$")
    list(FILTER rooms EXCLUDE REGEX "/focus/(fuse|stitch|toy)/|/spatial/(preprocess/counts|statistics/sums|prior/pnmf)\\.c$|/spatial/(inducing|start|neighbours|grid|toy)/")
    set_source_files_properties(${cold} ${rooms} PROPERTIES COMPILE_OPTIONS -O0)
endif()
# Vectors of 64 bytes on the stack, as in cmake/Kernels.cmake.
if(FTH_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set_source_files_properties(src/cpu/amx.c PROPERTIES COMPILE_OPTIONS
        "${FTH_HOT_OPTIONS};--param=asan-use-after-return=0")
endif()
