# What Fathom stands on. A missing library stops here, with the name of the
# Debian package that brings it. oneDNN is opened at run time by the code that
# needs it, so only its headers are wanted.
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(fathom_dependencies INTERFACE)

function(fth_missing what package)
    message(FATAL_ERROR "${what} was not found. On Debian: apt-get install ${package}\n"
                        "(./check and ./demo install everything in tools/packages.txt)")
endfunction()

# fth_need(module package): a library that has a pkg-config file.
function(fth_need module package)
    string(MAKE_C_IDENTIFIER "FTH_DEP_${module}" name)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(NOT ${name}_FOUND)
        fth_missing("${module}" "${package}")
    endif()
    target_link_libraries(fathom_dependencies INTERFACE PkgConfig::${name})
endfunction()

# fth_need_header(header package): a library of which only a header is used.
function(fth_need_header header package)
    string(MAKE_C_IDENTIFIER "FTH_DEP_${header}" name)
    find_path(${name} ${header})
    if(NOT ${name})
        fth_missing("the header ${header}" "${package}")
    endif()
    mark_as_advanced(${name})
endfunction()

fth_need(openblas libopenblas-dev) # CBLAS and the LAPACK routines
fth_need(hdf5-serial libhdf5-dev)
fth_need(zlib zlib1g-dev)
fth_need(jansson libjansson-dev)
fth_need(yaml-0.1 libyaml-dev)
fth_need(libxxhash libxxhash-dev)
fth_need(cairo libcairo2-dev)
fth_need(sqlite3 libsqlite3-dev)
fth_need(libtiff-4 libtiff-dev)
fth_need(libjpeg libjpeg62-turbo-dev)
fth_need(libwebp libwebp-dev)
fth_need(expat libexpat1-dev)
fth_need(libdeflate libdeflate-dev)
fth_need(libzstd libzstd-dev)
fth_need(blosc libblosc-dev)
fth_need_header(lapack.h liblapacke-dev) # declarations of the LAPACK routines
fth_need_header(dnnl.h libdnnl-dev)
target_link_libraries(fathom_dependencies INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

# Of the program alone.
pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd)
if(NOT MICROHTTPD_FOUND)
    fth_missing("libmicrohttpd" "libmicrohttpd-dev")
endif()

if(FTH_TESTS)
    pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
    if(NOT CMOCKA_FOUND)
        fth_missing("cmocka" "libcmocka-dev")
    endif()
endif()
