/* fuzz_http.c - any bytes as the headers that `fathom serve` reads: Host, Range, Accept-Encoding,
 * If-None-Match, a token, the path of a file. A header is text without a \0, as the server gets it.
 * seconds: 2 */
#include "testing/io/fuzz.h"

#include "cli/jobs/serve.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exact: reading past the end is seen */
    if (!text) return 0;
    for (size_t i = 0; i < size; i++) text[i] = data[i] ? (char)data[i] : ' ';
    text[size] = '\0';
    uint64_t from = 0, n = 0;
    const uint64_t length = size > 0 ? data[0] : 0;
    const int kind = serve_range(text, length, &from, &n);
    if (kind != 0 && kind != 206 && kind != 416) abort();
    if (kind == 206 && (n == 0 || n > length || from > length - n)) abort();
    if (serve_host_is_local(text) && strchr(text, '@')) abort(); /* "localhost@elsewhere" */
    (void)serve_takes_gzip(text);
    (void)serve_has_tag(text, "\"0123456789abcdef\"");
    if (serve_same(text, "a-secret") != (strcmp(text, "a-secret") == 0)) abort();
    if (!serve_type(text)) abort();
    free(text);
    return 0;
}
