/* fuzz_zarr_text.c - any bytes as a chunk of strings: of any length or a fixed one, packed or not,
 * by the first byte.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include <fathom/zarr.h>

#include <unistd.h>

static void put(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const rest[] = {
        "\"|O\",\"filters\":[{\"id\":\"vlen-utf8\"}],\"compressor\":null}",
        "\"|O\",\"filters\":[{\"id\":\"vlen-utf8\"}],\"compressor\":{\"id\":\"zstd\"}}",
        "\"|O\",\"filters\":[{\"id\":\"vlen-utf8\"}],\"compressor\":{\"id\":\"blosc\"}}",
        "\"<U4\",\"filters\":null,\"compressor\":null}"};
    if (size < 1) return 0;
    fuzz_file f = fuzz_file_open(data, size);
    char dir[64], path[100], doc[300];
    fth_texts *t = NULL;
    snprintf(dir, sizeof dir, "%s/fathom-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(dir)) abort();
    const int n = snprintf(doc, sizeof doc,
                           "{\"zarr_format\":2,\"shape\":[5],\"chunks\":[3],\"order\":\"C\","
                           "\"fill_value\":\"\",\"dtype\":%s",
                           rest[data[0] % 4]);
    snprintf(path, sizeof path, "%s/.zarray", dir);
    put(path, doc, (size_t)n);
    snprintf(path, sizeof path, "%s/0", dir);
    put(path, data + 1, size - 1);
    if (fth_zarr_strings(&t, f.mem, dir, NULL) == FTH_OK) {
        if (fth_texts_count(t) != 5) abort();
        fth_texts_free(t);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/.zarray", dir);
    unlink(path);
    rmdir(dir);
    fuzz_file_close(&f);
    return 0;
}
