# Turns files of pages into C arrays: cmake -DOUT=page.c -DFILES=a;b [-DPREFIX=fth__] -P Embed.cmake
#
# Each file NAME.EXT becomes `const char fth__NAME_EXT[]`, terminated, and `fth__NAME_EXT_hash[]`,
# its SHA-256 as a Content-Security-Policy names it.
if(NOT PREFIX)
    set(PREFIX fth__)
endif()
set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

function(to_base64 hex out)
    string(LENGTH "${hex}" n)
    set(text "")
    set(at 0)
    while(at LESS n)
        string(SUBSTRING "${hex}000000" ${at} 6 six)
        math(EXPR value "0x${six}")
        foreach(shift 18 12 6 0)
            math(EXPR digit "(${value} >> ${shift}) & 63")
            string(SUBSTRING "${digits}" ${digit} 1 letter)
            string(APPEND text "${letter}")
        endforeach()
        math(EXPR at "${at} + 6")
    endwhile()
    math(EXPR over "(${at} - ${n}) / 2") # bytes that were not there
    string(LENGTH "${text}" length)
    math(EXPR keep "${length} - ${over}")
    string(SUBSTRING "${text}" 0 ${keep} text)
    string(REPEAT "=" ${over} padding)
    set(${out} "${text}${padding}" PARENT_SCOPE)
endfunction()

set(code "/* Made by cmake/Embed.cmake. */\n")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER "${name}" name)
    file(READ ${file} hex HEX)
    file(SHA256 ${file} sum)
    to_base64("${sum}" hash)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
    set(name ${PREFIX}${name})
    string(APPEND code "extern const char ${name}[], ${name}_hash[];\n"
                       "const char ${name}[] = {\n${bytes}0};\n"
                       "const char ${name}_hash[] = \"sha256-${hash}\";\n")
endforeach()
file(WRITE ${OUT} "${code}")
