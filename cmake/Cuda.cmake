# The CUDA backend, lib/libfathom_cuda.so: every .cu of src/cuda/ and instruments/, at any depth. A
# machine without nvcc builds everything else and says so; whoever runs the program finds the
# backend, or the reason why there is none, when it starts.
#
# The CUDA runtime is linked in; the driver, cuBLASLt and NVRTC are opened by name where they are
# needed, so the library loads everywhere. Functions of src/ that kernels share with the CPU come
# from the static library.
option(FTH_CUDA "Build the CUDA backend where nvcc is found" ON)
set(FTH_CUDA_CODE all CACHE STRING "all: machine code for sm_90 and PTX for later chips; ptx: PTX alone")
set_property(CACHE FTH_CUDA_CODE PROPERTY STRINGS all ptx)
# The C++ library's special functions (beta, Bessel ...), which nothing here calls, and what they include
# are half of all that nvcc reads for a kernel; emulated kernels read them too. They count as included.
# With another C++ library this says nothing.
set(FTH_NO_SPECIAL_FUNCTIONS _GLIBCXX_BITS_SPECFUN_H=1)
set(FTH_CUDA_WHY "")
if(NOT FTH_CUDA)
    set(FTH_CUDA_WHY "FTH_CUDA is off")
elseif(FTH_SANITIZE OR FTH_FUZZ OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(FTH_CUDA_WHY "only plain builds with gcc have it")
else()
    include(CheckLanguage)
    check_language(CUDA)
    if(NOT CMAKE_CUDA_COMPILER)
        set(FTH_CUDA_WHY "no nvcc was found")
    endif()
endif()
if(FTH_CUDA_WHY)
    message(STATUS "CUDA backend: left out, ${FTH_CUDA_WHY}")
    return()
endif()

# A driver compiles PTX when the program starts, which takes it a while. Compiling to it alone takes far
# less time and finds every mistake that a machine without a card can find; neither the
# kernels nor the functions around them, which nothing runs there, are optimised then.
set(CMAKE_CUDA_ARCHITECTURES 90)
set(level -O3)
set(kernel_level)
if(FTH_CUDA_CODE STREQUAL "ptx")
    set(CMAKE_CUDA_ARCHITECTURES 90-virtual)
    set(level -O0)
    set(kernel_level "SHELL:-Xcicc -O0")
endif()
set(CMAKE_CUDA_FLAGS_RELEASE "${level} -DNDEBUG")
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
enable_language(CUDA)
if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
message(STATUS "CUDA backend: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, code ${FTH_CUDA_CODE}")
file(GLOB_RECURSE cuda CONFIGURE_DEPENDS src/cuda/*.cu instruments/*.cu)
# The matrix units have instructions of capability 9.0 alone, which only code for sm_90a may have. It
# runs on no other chip, so these files are compiled for it apart, and their host asks for the capability.
set(special ${cuda})
list(FILTER special INCLUDE REGEX "/src/cuda/(product/split|conv2d/conv2d|conv2d/conv2d_weight)_multiply\\.cu$")
list(REMOVE_ITEM cuda ${special})
add_library(fathom_cuda_sm90a OBJECT ${special})
add_library(fathom_cuda SHARED ${cuda})
# Machine code and PTX of so many kernels are packed as small as nvcc can: a quarter of the usual bytes.
set(packed)
if(FTH_CUDA_CODE STREQUAL "all" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set(packed --compress-mode=size)
endif()
foreach(target fathom_cuda fathom_cuda_sm90a)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include
                               ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE ${FTH_NO_SPECIAL_FUNCTIONS})
    # -fmad=false: a*b+c has two roundings, as on the CPU; fma is a written operation.
    target_compile_options(${target} PRIVATE -std=c++20 ${level} ${kernel_level} ${packed} -fmad=false --expt-relaxed-constexpr
        -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-fno-math-errno,-ffp-contract=off
        -Xcompiler=-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
    if(FTH_WERROR)
        target_compile_options(${target} PRIVATE -Werror=all-warnings)
    endif()
    set_target_properties(${target} PROPERTIES CUDA_SEPARABLE_COMPILATION OFF)
endforeach()
set_target_properties(fathom_cuda_sm90a PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES 90a-real)
if(FTH_CUDA_CODE STREQUAL "ptx")
    set_target_properties(fathom_cuda_sm90a PROPERTIES CUDA_ARCHITECTURES 90a-virtual)
endif()
set_target_properties(fathom_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static)
target_link_libraries(fathom_cuda PRIVATE fathom fathom_static fathom_cuda_sm90a ${CMAKE_DL_LIBS})
target_link_options(fathom_cuda PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)

# A program of the bench that is made when asked for: kernels of the library beside ones it must not have.
if(EXISTS ${PROJECT_SOURCE_DIR}/bench/splat_atomic.cu)
    add_executable(splat_atomic EXCLUDE_FROM_ALL bench/splat_atomic.cu)
    target_include_directories(splat_atomic PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
    target_compile_definitions(splat_atomic PRIVATE _GNU_SOURCE ${FTH_NO_SPECIAL_FUNCTIONS})
    target_compile_options(splat_atomic PRIVATE -std=c++20 ${level} -fmad=false --expt-relaxed-constexpr
        -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-ffp-contract=off)
    set_target_properties(splat_atomic PROPERTIES CUDA_RUNTIME_LIBRARY Static)
    target_link_libraries(splat_atomic PRIVATE fathom_static ${CMAKE_DL_LIBS})
endif()
