# Turns headers into texts: cmake -DOUT=headers.c -DROOT=src -DFILES=a.h;b.h -P EmbedHeaders.cmake
#
# The result is the table of cuda/program/source.h: the name of each header as #include says it, and its
# text. A few headers of the system, of which only some lines are needed, come from src/cuda/program/rtc/.
set(code "/* Made by cmake/EmbedHeaders.cmake. */\n#include \"cuda/program/source.h\"\n\n")
set(table "")
set(n 0)
foreach(file IN LISTS FILES)
    file(READ ${ROOT}/${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
    string(REPLACE "cuda/program/rtc/" "" name "${file}")
    string(APPEND code "static const char text${n}[] = {\n${bytes}0};\n")
    string(APPEND table "    {\"${name}\", text${n}},\n")
    math(EXPR n "${n} + 1")
endforeach()
string(APPEND code "const fth__cuda_header fth__cuda_headers[] = {\n${table}};\n"
                   "const int fth__cuda_n_headers = ${n};\n")
file(WRITE ${OUT} "${code}")
