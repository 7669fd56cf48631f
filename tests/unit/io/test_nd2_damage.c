/* test_nd2_damage.c - damaged ND2 files: each kind is repaired as told here, or refused.
 *
 * A good file of twelve frames is bent in one way at a time. Frames that are said to be there must
 * have their pixels; the others read as zeros.
 * seconds: 2 */
#include "testing/io/nd2_made.h"

#include <math.h>

enum { PAGE = 4096, FRAMES = 12 };

static const fth_nd2_options options = {
    .size = {2, 2, 3, 1, 6, 8}, .dtype = FTH_U16, .period_ms = 1000, .um_per_px = 2};
static const t_nd2_scene scene = {.o = &options};

/* ---- bending ---- */

typedef struct bent {
    uint8_t *data;
    size_t bytes;
} bent;

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static void put_u64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, 8);
}

/* Where a chunk begins. */
static size_t chunk_at(const bent *b, const char *name)
{
    for (size_t at = 0; at + 16 + strlen(name) < b->bytes; at += PAGE)
        if (memcmp(b->data + at, "\xda\xce\xbe\x0a", 4) == 0 &&
            memcmp(b->data + at + 16, name, strlen(name)) == 0 &&
            b->data[at + 16 + strlen(name)] == '!')
            return at;
    FAIL("no chunk %s", name);
}

static size_t map_at(const bent *b)
{
    return chunk_at(b, "ND2 FILEMAP SIGNATURE NAME 0001");
}

/* The entry of the map: its name, then offset and size. */
static uint8_t *entry(const bent *b, const char *name)
{
    const size_t n = strlen(name);
    for (size_t at = map_at(b) + 48; at + n + 17 < b->bytes; at++)
        if (memcmp(b->data + at, name, n) == 0 && b->data[at + n] == '!') return b->data + at;
    FAIL("no entry %s", name);
}

static uint8_t *entry_offset(const bent *b, const char *name)
{
    return entry(b, name) + strlen(name) + 1;
}

static uint8_t *entry_size(const bent *b, const char *name)
{
    return entry_offset(b, name) + 8;
}

/* The value of a key in the tree of a chunk. */
static uint8_t *value(const bent *b, const char *chunk, const char *key)
{
    const size_t n = strlen(key) + 1, from = chunk_at(b, chunk) + 16 + strlen(chunk);
    for (size_t at = from; at + 2 * n < b->bytes; at++) {
        if (b->data[at] != n) continue;
        size_t i = 0;
        while (i < n && b->data[at + 1 + 2 * i] == (uint8_t)key[i] && !b->data[at + 2 + 2 * i]) i++;
        if (i == n) return b->data + at + 1 + 2 * n;
    }
    FAIL("no key %s", key);
}

static void insert(bent *b, size_t at, size_t n)
{
    memmove(b->data + at + n, b->data + at, b->bytes - at);
    memset(b->data + at, 'x', n);
    b->bytes += n;
}

/* ---- the end of the file and the map ---- */

static void nothing(bent *b)
{
    (void)b;
}
static void trailer_zeroed(bent *b)
{
    memset(b->data + b->bytes - 40, 0, 40);
}
static void trailer_offset_0(bent *b)
{
    put_u64(b->data + b->bytes - 8, 0);
}
static void trailer_offset_near(bent *b)
{
    put_u64(b->data + b->bytes - 8, map_at(b) + 16);
}
static void trailer_offset_beyond(bent *b)
{
    put_u64(b->data + b->bytes - 8, b->bytes + 1000000);
}
static void trailer_offset_huge(bent *b)
{
    put_u64(b->data + b->bytes - 8, UINT64_MAX - 3);
}
static void trailer_offset_frame(bent *b)
{
    put_u64(b->data + b->bytes - 8, chunk_at(b, "ImageDataSeq|2"));
}
static void cut_8(bent *b)
{
    b->bytes -= 8;
}
static void cut_trailer(bent *b)
{
    b->bytes -= 40;
}
static void cut_map(bent *b)
{
    b->bytes = map_at(b);
}
static void cut_in_map(bent *b)
{
    b->bytes = map_at(b) + 300;
}
static void map_magic(bent *b)
{
    b->data[map_at(b)] ^= 1;
}
static void map_name(bent *b)
{
    b->data[map_at(b) + 20] ^= 1;
}
static void map_length_huge(bent *b)
{
    put_u64(b->data + map_at(b) + 8, UINT64_MAX);
}
static void map_end_lost(bent *b)
{
    *entry(b, "ND2 CHUNK MAP SIGNATURE 0000001") = 'X';
}
static void behind_1000(bent *b)
{
    insert(b, b->bytes, 1000);
}
static void behind_100000(bent *b)
{
    insert(b, b->bytes, 100000);
}
static void page_inserted(bent *b)
{
    insert(b, chunk_at(b, "ImageDataSeq|6"), PAGE);
}
static void bytes_inserted(bent *b)
{
    insert(b, chunk_at(b, "ImageDataSeq|6"), 100);
}

/* ---- entries ---- */

static void entries_shifted(bent *b)
{
    char name[40];
    for (int i = 0; i < FRAMES; i++) {
        snprintf(name, sizeof name, "ImageDataSeq|%d", i);
        put_u64(entry_offset(b, name), get_u64(entry_offset(b, name)) + PAGE);
    }
}
static void entry_lost(bent *b)
{
    *entry(b, "ImageDataSeq|5") = 'X';
}
static void entry_elsewhere(bent *b)
{
    put_u64(entry_offset(b, "ImageDataSeq|5"), chunk_at(b, "ImageTextInfoLV"));
}
static void entry_of_another(bent *b)
{
    put_u64(entry_offset(b, "ImageDataSeq|5"), chunk_at(b, "ImageDataSeq|4"));
}
static void entry_beyond(bent *b)
{
    put_u64(entry_offset(b, "ImageDataSeq|5"), b->bytes + PAGE);
}
static void entry_huge(bent *b)
{
    put_u64(entry_offset(b, "ImageDataSeq|5"), UINT64_MAX - 5);
    put_u64(entry_size(b, "ImageDataSeq|5"), UINT64_MAX - 6);
}
static void entry_size_offset(bent *b) /* the last: as a size, it is behind the end */
{
    put_u64(entry_size(b, "ImageDataSeq|11"), get_u64(entry_offset(b, "ImageDataSeq|11")));
}
static void entry_size_small(bent *b)
{
    put_u64(entry_size(b, "ImageDataSeq|5"), 20);
}
static void entry_number_huge(bent *b)
{
    memcpy(entry(b, "ImageTextInfoLV"), "ImageDataSeq|99", 15);
}
static void entries_turned(bent *b)
{
    uint8_t *one = entry_offset(b, "ImageDataSeq|1"), *two = entry_offset(b, "ImageDataSeq|2");
    one[-2] = '2';
    two[-2] = '1';
    uint8_t swap[16];
    memcpy(swap, one, 16);
    memcpy(one, two, 16);
    memcpy(two, swap, 16);
}
static void attributes_unlisted(bent *b)
{
    *entry(b, "ImageAttributesLV") = 'X';
}
static void experiment_elsewhere(bent *b)
{
    put_u64(entry_offset(b, "ImageMetadataLV"), PAGE);
}

/* ---- frames ---- */

static void frame_head(bent *b)
{
    memset(b->data + chunk_at(b, "ImageDataSeq|5"), 0, 100);
}
static void frame_head_no_map(bent *b)
{
    frame_head(b);
    cut_map(b);
}
static void frame_length(bent *b)
{
    put_u64(b->data + chunk_at(b, "ImageDataSeq|5") + 8, 1u << 30);
}
static void frame_length_no_map(bent *b)
{
    frame_length(b);
    cut_map(b);
}
static void frame_longer_no_map(bent *b) /* it would end among the pixels of the next */
{
    uint8_t *length = b->data + chunk_at(b, "ImageDataSeq|5") + 8;
    put_u64(length, get_u64(length) + PAGE);
    cut_map(b);
}
static void frame_short_no_map(bent *b)
{
    put_u64(b->data + chunk_at(b, "ImageDataSeq|5") + 8, 8);
    cut_map(b);
}
static void cut_in_last_frame(bent *b)
{
    b->bytes = chunk_at(b, "ImageDataSeq|11") + 4096 + 50;
}
static void cut_in_frame_3(bent *b)
{
    b->bytes = chunk_at(b, "ImageDataSeq|3") + 30;
}
static void cut_before_frames(bent *b)
{
    b->bytes = chunk_at(b, "ImageDataSeq|0");
}
static void frames_renamed(bent *b)
{
    b->data[chunk_at(b, "ImageDataSeq|0") + 16] = 'X';
    b->data[chunk_at(b, "ImageDataSeq|1") + 16] = 'X';
}

/* ---- metadata ---- */

static void signature_name(bent *b)
{
    b->data[20] ^= 1;
}
static void version_2(bent *b)
{
    b->data[16 + 32 + 3] = '2';
}
static void jpeg_2000(bent *b)
{
    memcpy(b->data, "\0\0\0\x0cjP  \r\n\x87\n", 12);
}
static void only_magic(bent *b)
{
    b->bytes = 10;
}
static void other_file(bent *b)
{
    memcpy(b->data, "none", 4);
}
static void attributes_lost(bent *b)
{
    b->data[chunk_at(b, "ImageAttributesLV")] ^= 1;
}
static void cut_in_attributes(bent *b)
{
    b->bytes = chunk_at(b, "ImageAttributesLV") + PAGE - 100;
}
static void packed_with_loss(bent *b)
{
    *value(b, "ImageAttributesLV", "eCompression") = 1;
}
static void bits_12(bent *b)
{
    *value(b, "ImageAttributesLV", "uiBpcInMemory") = 12;
}
static void width_0(bent *b)
{
    *value(b, "ImageAttributesLV", "uiWidth") = 0;
}
static void height_huge(bent *b)
{
    memset(value(b, "ImageAttributesLV", "uiHeight"), 0xff, 4);
}
static void rows_too_short(bent *b)
{
    *value(b, "ImageAttributesLV", "uiWidthBytes") = 15;
}
static void sequences_fewer(bent *b)
{
    *value(b, "ImageAttributesLV", "uiSequenceCount") = 10;
}
static void planes_fewer(bent *b)
{
    uint8_t *z = value(b, "ImageMetadataLV", "dZLow") - 2 * 6 - 2; /* behind uiCount */
    z[-4] = 2;
}
static void experiment_lost(bent *b)
{
    b->data[chunk_at(b, "ImageMetadataLV")] ^= 1;
}
static void experiment_tree(bent *b)
{
    put_u64(value(b, "ImageMetadataLV", "SLxExperiment") + 4, UINT64_MAX);
}
static void experiment_count(bent *b)
{
    memset(value(b, "ImageMetadataLV", "SLxExperiment"), 0xff, 4);
}
static void loop_unknown(bent *b)
{
    *value(b, "ImageMetadataLV", "eType") = 7;
}
static void loops_huge(bent *b)
{
    memset(value(b, "ImageMetadataLV", "uiCount"), 0xff, 4);
}
static void picture_lost(bent *b)
{
    b->data[chunk_at(b, "ImageMetadataSeqLV|0")] ^= 1;
}
static void planes_tree(bent *b)
{
    put_u64(value(b, "ImageMetadataSeqLV|0", "sPicturePlanes") + 4, 1u << 30);
}
static void times_lost(bent *b)
{
    b->data[chunk_at(b, "CustomData|AcqTimesCache")] ^= 1;
    *entry(b, "CustomData|AcqTimesCache") = 'X';
}

/* ---- what is expected ---- */

static const struct kind {
    const char *name;
    void (*bend)(bent *b);
    fth_status status;
    int64_t present, repaired;
    const char *says; /* of the damage, or of the error */
} kinds[] = {
    {"nothing", nothing, FTH_OK, 12, 0, NULL},
    /* found near the place it should be at */
    {"trailer zeroed", trailer_zeroed, FTH_OK, 12, 0, "does not end as an ND2"},
    {"trailer offset 0", trailer_offset_0, FTH_OK, 12, 0, "no chunk map at byte 0"},
    {"trailer offset near", trailer_offset_near, FTH_OK, 12, 0, "the map was found at byte"},
    {"trailer offset beyond", trailer_offset_beyond, FTH_OK, 12, 0, "the map was found at byte"},
    {"trailer offset huge", trailer_offset_huge, FTH_OK, 12, 0, "the map was found at byte"},
    {"trailer offset of a frame", trailer_offset_frame, FTH_OK, 12, 0, "the map was found"},
    {"cut by 8 bytes", cut_8, FTH_OK, 12, 0, "the map was found"},
    {"cut by the trailer", cut_trailer, FTH_OK, 12, 0, "the map was found"},
    {"1000 bytes behind the end", behind_1000, FTH_OK, 12, 0, "the map was found"},
    {"length of the map", map_length_huge, FTH_OK, 12, 0, NULL},
    /* made anew */
    {"cut by the map", cut_map, FTH_OK, 12, 12, "was scanned"},
    {"cut in the map", cut_in_map, FTH_OK, 12, 12, "was scanned"},
    {"magic of the map", map_magic, FTH_OK, 12, 12, "was scanned"},
    {"name of the map", map_name, FTH_OK, 12, 12, "was scanned"},
    {"end of the map", map_end_lost, FTH_OK, 12, 12, "was scanned"},
    {"100 kB behind the end", behind_100000, FTH_OK, 12, 12, "was scanned"},
    {"a page put in", page_inserted, FTH_OK, 12, 6, "was scanned"},
    {"100 bytes put in", bytes_inserted, FTH_OK, 6, 0, "6 of 12 frames are missing"},
    /* mended */
    {"entries shifted", entries_shifted, FTH_OK, 12, 12, "was scanned"},
    {"an entry lost", entry_lost, FTH_OK, 12, 1, "was scanned"},
    {"an entry elsewhere", entry_elsewhere, FTH_OK, 12, 1, "was scanned"},
    {"an entry of another frame", entry_of_another, FTH_OK, 12, 1, "was scanned"},
    {"an entry beyond the end", entry_beyond, FTH_OK, 12, 1, "was scanned"},
    {"an entry of huge numbers", entry_huge, FTH_OK, 12, 1, "was scanned"},
    {"an entry too small", entry_size_small, FTH_OK, 12, 1, "was scanned"},
    {"an entry without a size", entry_size_offset, FTH_OK, 12, 0, NULL},
    {"entries in another order", entries_turned, FTH_OK, 12, 0, NULL},
    {"a number outside", entry_number_huge, FTH_OK, 12, 0, "1 frames have numbers outside"},
    {"attributes not listed", attributes_unlisted, FTH_OK, 12, 0, "was scanned"},
    {"experiment elsewhere", experiment_elsewhere, FTH_OK, 12, 0, "was scanned"},
    /* frames */
    {"head of a frame", frame_head, FTH_OK, 11, 0, "1 of 12 frames are missing"},
    {"head of a frame, no map", frame_head_no_map, FTH_OK, 11, 11, "1 of 12 frames"},
    {"length in a frame", frame_length, FTH_OK, 12, 0, NULL},
    {"length in a frame, no map", frame_length_no_map, FTH_OK, 11, 11, "1 frames are cut off"},
    {"longer length, no map", frame_longer_no_map, FTH_OK, 12, 12, "was scanned"},
    {"short length, no map", frame_short_no_map, FTH_OK, 11, 11, "1 frames are cut off"},
    {"cut in the last frame", cut_in_last_frame, FTH_OK, 11, 11, "1 frames are cut off"},
    {"cut in frame 3", cut_in_frame_3, FTH_OK, 3, 3, "9 of 12 frames are missing"},
    {"cut before the frames", cut_before_frames, FTH_OK, 0, 0, "12 of 12 frames are missing"},
    {"two frames renamed", frames_renamed, FTH_OK, 10, 0, "2 of 12 frames are missing"},
    /* metadata */
    {"name of the signature", signature_name, FTH_OK, 12, 0, "signature is damaged"},
    {"fewer sequences", sequences_fewer, FTH_OK, 12, 0, "12 frames, the attributes say 10"},
    {"fewer planes", planes_fewer, FTH_OK, 8, 0, "numbers outside the loops"},
    {"count of a tree", experiment_count, FTH_OK, 12, 0, NULL},
    {"picture lost", picture_lost, FTH_OK, 12, 0, "ImageMetadataSeqLV|0! cannot be read"},
    {"planes of the picture", planes_tree, FTH_OK, 12, 0, NULL},
    {"times lost", times_lost, FTH_OK, 12, 0, NULL},
    /* refused */
    {"version 2", version_2, FTH_E_FILE_FEATURE, 0, 0, "version 2.0; version 3 is read"},
    {"JPEG 2000", jpeg_2000, FTH_E_FILE_FEATURE, 0, 0, "JPEG 2000"},
    {"only the magic", only_magic, FTH_E_FILE_SHORT, 0, 0, "ImageAttributesLV!"},
    {"another format", other_file, FTH_E_FILE_FORMAT, 0, 0, "ND2"},
    {"attributes lost", attributes_lost, FTH_E_FILE_FORMAT, 0, 0, "ImageAttributesLV!"},
    {"cut in the attributes", cut_in_attributes, FTH_E_FILE_SHORT, 0, 0, "ImageAttributesLV!"},
    {"packed with loss", packed_with_loss, FTH_E_FILE_FEATURE, 0, 0, "with loss"},
    {"12 bits in memory", bits_12, FTH_E_FILE_FEATURE, 0, 0, "12 bits"},
    {"width 0", width_0, FTH_E_FILE_FORMAT, 0, 0, "6 x 0 pixels"},
    {"height huge", height_huge, FTH_E_FILE_FORMAT, 0, 0, "4294967295 x 8"},
    {"rows too short", rows_too_short, FTH_E_FILE_FORMAT, 0, 0, "15 bytes"},
    {"experiment lost", experiment_lost, FTH_E_FILE_FORMAT, 0, 0, "ImageMetadataLV!"},
    {"loop of type 7", loop_unknown, FTH_E_FILE_FEATURE, 0, 0, "a loop of type 7"},
    {"loops of 2^34 frames", loops_huge, FTH_E_BUDGET, 0, 0, "frames of an ND2 file"},
};

static void check_frames(fth_images *images, const struct kind *k)
{
    const int64_t *size = fth_images_get_info(images)->size;
    const int64_t bytes = 6 * 8 * 2;
    fth_source source;
    uint8_t got[6 * 8 * 2], wanted[6 * 8 * 2];
    fth_err err = {0};
    OKE(fth_images_source(images, &source, &err), &err);
    int64_t present = 0, repaired = 0;
    for (int64_t i = 0; i < size[0] * size[1] * size[2]; i++) {
        const int64_t at[6] = {i / size[2] / size[1], i / size[2] % size[1], i % size[2]};
        const int64_t n[6] = {1, 1, 1, 1, 6, 8};
        const fth_images_frame f = fth_images_get_frame(images, at[0], at[1], at[2]);
        bool drawn;
        /* what stands in the file under that number */
        OK(t_nd2_draw((void *)(uintptr_t)&scene, i / 6, i / 3 % 2, i % 3, wanted, &drawn, NULL));
        if (!f.present) memset(wanted, 0, sizeof wanted);
        OKE(source.read(source.self, at, n, got, &err), &err);
        if (memcmp(got, wanted, (size_t)bytes) != 0) FAIL("%s: frame %d differs", k->name, (int)i);
        present += f.present;
        repaired += f.repaired;
        EQ_F64(f.time_ms, (double)(i / 6) * 1000);
    }
    EQ_I64(present, k->present);
    EQ_I64(repaired, k->repaired);
    fth_source_close(&source);
}

static void check_kind(const struct kind *k, const char *path, fth_mem *mem)
{
    fth_images *images = NULL;
    fth_err err = {0};
    const fth_status s = fth_images_open(&images, mem, path, NULL, &err);
    if (s != k->status) FAIL("%s: %s", k->name, s == FTH_OK ? "it opens" : err.text);
    if (s != FTH_OK) {
        if (!strstr(err.text, k->says)) FAIL("%s: %s", k->name, err.text);
        if (s != FTH_E_BUDGET) HAS(err.text, path);
        return;
    }
    const fth_images_info *info = fth_images_get_info(images);
    if (k->says ? !strstr(info->damage, k->says) : info->damage[0] != 0)
        FAIL("%s: damage: %s", k->name, info->damage);
    if (info->frames_present != k->present || info->frames_repaired != k->repaired)
        FAIL("%s: %d present, %d repaired: %s", k->name, (int)info->frames_present,
             (int)info->frames_repaired, info->damage);
    check_frames(images, k);
    fth_images_close(images);
}

TEST(every_kind_of_damage)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *good = t_temp_path("good.nd2"), *path = t_temp_path("bent.nd2");
    OK(fth_nd2_write(mem, good, &options, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    bent b;
    unsigned char *whole = t_file_read(good, &b.bytes);
    const size_t bytes = b.bytes;
    b.data = malloc(bytes + 200000);
    IS_TRUE(sizeof kinds / sizeof kinds[0] > 50);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        memcpy(b.data, whole, bytes);
        b.bytes = bytes;
        kinds[i].bend(&b);
        t_file_write(path, b.data, b.bytes);
        check_kind(&kinds[i], path, mem);
    }
    free(b.data);
    free(whole);
    remove(good);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A level that does not fit around its items is lost alone. */
TEST(a_damaged_tree_loses_what_is_below_it)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("tree.nd2");
    OK(fth_nd2_write(mem, path, &options, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    bent b;
    b.data = t_file_read(path, &b.bytes);
    planes_tree(&b);
    t_file_write(path, b.data, b.bytes);
    fth_images *images = NULL;
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    EQ_F64(fth_images_get_info(images)->um_per_px, 2);
    EQ_STR(fth_images_channel(images, 0), "");
    fth_images_close(images);

    experiment_tree(&b); /* without loops, frames are time points */
    t_file_write(path, b.data, b.bytes);
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    EQ_STR(fth_images_get_info(images)->axes, "tyx");
    EQ_I64(fth_images_get_info(images)->size[FTH_IMAGES_T], 12);
    fth_images_close(images);
    free(b.data);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* The map is searched for as far as the caller says. */
TEST(the_search_has_a_reach)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("far.nd2");
    OK(fth_nd2_write(mem, path, &options, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    bent b;
    unsigned char *whole = t_file_read(path, &b.bytes);
    b.data = malloc(b.bytes + 200000);
    memcpy(b.data, whole, b.bytes);
    behind_100000(&b);
    t_file_write(path, b.data, b.bytes);
    const fth_images_options near = {.search_bytes = 5000}, far = {.search_bytes = 1 << 20};
    fth_images *images = NULL;
    OK(fth_images_open(&images, mem, path, &near, NULL));
    EQ_I64(fth_images_get_info(images)->frames_repaired, 12);
    fth_images_close(images);
    OK(fth_images_open(&images, mem, path, &far, NULL));
    EQ_I64(fth_images_get_info(images)->frames_repaired, 0);
    fth_images_close(images);

    /* Behind the place that the file tells, and farther than that from the end. */
    b.bytes -= 100000;
    put_u64(b.data + b.bytes - 8, map_at(&b) - 8);
    t_file_write(path, b.data, b.bytes);
    const fth_images_options little = {.search_bytes = 2000};
    OK(fth_images_open(&images, mem, path, &little, NULL));
    EQ_I64(fth_images_get_info(images)->frames_repaired, 0);
    fth_images_close(images);
    free(b.data);
    free(whole);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Damage that opening cannot see is an error of the frame that is read. */
TEST(a_packed_frame_that_is_damaged_is_named)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("packed.nd2");
    fth_nd2_options o = options;
    o.packed = true;
    const t_nd2_scene drawn = {.o = &o};
    OK(fth_nd2_write(mem, path, &o, t_nd2_draw, (void *)(uintptr_t)&drawn, NULL));
    bent b;
    b.data = t_file_read(path, &b.bytes);
    b.data[chunk_at(&b, "ImageDataSeq|4") + 4096 + 20] ^= 0x55;
    t_file_write(path, b.data, b.bytes);
    free(b.data);
    fth_images *images = NULL;
    fth_source source;
    fth_err err = {0};
    uint16_t pixels[48];
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    OK(fth_images_source(images, &source, NULL));
    const int64_t n[6] = {1, 1, 1, 1, 6, 8}, part[6] = {1, 1, 1, 1, 2, 3};
    IS(source.read(source.self, ((int64_t[]){0, 1, 1, 0, 0, 0}), n, pixels, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "frame 4: ");
    HAS(err.text, path);
    IS(source.read(source.self, ((int64_t[]){0, 1, 1, 0, 2, 2}), part, pixels, &err),
       FTH_E_FILE_FORMAT);
    OK(source.read(source.self, ((int64_t[]){0, 1, 2, 0, 0, 0}), n, pixels, &err));
    OK(source.read(source.self, ((int64_t[]){0, 1, 2, 0, 2, 2}), part, pixels, &err));
    EQ_F64(pixels[0], t_nd2_value(&o, ((int64_t[]){0, 1, 2, 0, 2, 2})));
    fth_source_close(&source);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A frame that is overwritten after opening. */
TEST(a_frame_that_is_gone_when_it_is_read_is_named)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("gone.nd2");
    OK(fth_nd2_write(mem, path, &options, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    bent b;
    b.data = t_file_read(path, &b.bytes);
    fth_images *images = NULL;
    fth_source source;
    fth_err err = {0};
    uint16_t pixels[48];
    const int64_t n[6] = {1, 1, 1, 1, 6, 8};
    OK(fth_images_open(&images, mem, path, NULL, NULL));
    OK(fth_images_source(images, &source, NULL));
    frame_head(&b);
    FILE *f = fopen(path, "r+b");
    IS_TRUE(fwrite(b.data, 1, b.bytes, f) == b.bytes && fclose(f) == 0);
    IS(source.read(source.self, ((int64_t[]){0, 1, 2, 0, 0, 0}), n, pixels, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "chunk ImageDataSeq|5! should begin here, found no chunk");
    free(b.data);
    fth_source_close(&source);
    fth_images_close(images);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A file cut at every page, and some bytes more: never a crash, never a wrong pixel. */
TEST(cut_anywhere)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("cut.nd2");
    OK(fth_nd2_write(mem, path, &options, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    bent b;
    b.data = t_file_read(path, &b.bytes);
    for (size_t n = 0; n < b.bytes; n += n < 300 ? 7 : 1337) {
        t_file_write(path, b.data, n);
        fth_images *images = NULL;
        const fth_status s = fth_images_open(&images, mem, path, NULL, NULL);
        if (s == FTH_OK) {
            const fth_images_info *info = fth_images_get_info(images);
            const struct kind k = {"cut", NULL, FTH_OK, info->frames_present, info->frames_repaired,
                                   NULL};
            check_frames(images, &k);
        } else
            ONE_OF(s, FTH_E_FILE_SHORT, FTH_E_FILE_FORMAT);
        fth_images_close(images);
    }
    free(b.data);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
