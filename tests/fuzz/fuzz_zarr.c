/* fuzz_zarr.c - any metadata, and any bytes as the first chunk or shard that they describe.
 *
 * An input is the version, 2 or 3, the metadata, a zero byte, and the bytes of the file.
 * seconds: 5 */
#include "io/zarr.h"
#include "testing/io/fuzz_file.h"

#include <fathom/images.h>

#include <string.h>

static char folder[64];

static void remove_folder(void)
{
    (void)fth_folder_remove(NULL, folder, NULL);
}

static void make_folder(void)
{
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/fathom-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder) || atexit(remove_folder) != 0) abort();
}

static void put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0) abort();
}

/* Where the metadata want the first file to be. */
static void put_chunk(fth_mem *mem, const uint8_t *data, size_t size)
{
    static const int64_t first[FTH_MAX_AXES];
    char path[FTH_PATH], parent[FTH_PATH];
    fth__zarr_meta m;
    fth_json *doc = NULL, *own = NULL;
    if (fth__zarr_load(&m, mem, folder, &doc, &own, NULL) != FTH_OK) return;
    fth_json_destroy(doc);
    fth_json_destroy(own);
    if (fth__zarr_file_path(&m, folder, first, path, NULL) != FTH_OK ||
        fth_path_parent(parent, path, NULL) != FTH_OK ||
        fth_folder_make_all(NULL, parent, NULL) != FTH_OK)
        abort();
    put(path, data, size);
}

static void read_all(fth_mem *mem)
{
    fth_zarr *z = NULL;
    fth_source s = {0};
    fth_images *images = NULL;
    if (fth_zarr_open(&z, mem, folder, NULL) == FTH_OK && fth_zarr_source(z, &s, NULL) == FTH_OK)
        fuzz_source(&s, mem);
    fth_source_close(&s);
    fth_zarr_close(z);
    if (fth_images_open(&images, mem, folder, NULL, NULL) == FTH_OK &&
        fth_images_source(images, &s, NULL) == FTH_OK)
        fuzz_source(&s, mem);
    fth_source_close(&s);
    fth_images_close(images);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FTH_PATH];
    fth_mem *mem = NULL;
    fth_mem_options opt;
    if (size < 1) return 0;
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    const size_t text = end ? (size_t)(end - data) - 1 : size - 1;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    make_folder();
    remove_folder();
    if (fth_folder_make(NULL, folder, NULL) != FTH_OK) abort();
    snprintf(path, sizeof path, "%s/%s", folder, data[0] == '2' ? ".zarray" : "zarr.json");
    put(path, data + 1, text);
    if (end) put_chunk(mem, end + 1, size - text - 2);
    read_all(mem);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
