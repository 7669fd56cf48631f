/* test_focus_room.c - what will be written is compared with what the disk has room for, first.
 *
 * The test is the file system: it says how many bytes are free.
 * seconds: 3 */
#include "instruments/focus/convert/convert.h"
#include "instruments/focus/output/room.h"
#include "instruments/focus/stack/stack.h"
#include "testing/focus/focus_plate.h"

#include <dlfcn.h>
#include <sys/statvfs.h>

static uint64_t free_bytes;
static bool is_ours, is_broken;

/* In the place of the C library's; other tests of the program get that one. */
int statvfs(const char *path, struct statvfs *out)
{
    if (!is_ours) {
        int (*real)(const char *, struct statvfs *) = NULL;
        void *found = dlsym(RTLD_NEXT, "statvfs");
        memcpy(&real, &found, sizeof real);
        return real(path, out);
    }
    *out = (struct statvfs){.f_frsize = 1, .f_bavail = free_bytes};
    return is_broken ? -1 : 0;
}

static void have_free(uint64_t bytes)
{
    is_ours = true;
    free_bytes = bytes;
}

/* ---- amounts ---- */

TEST(packed_pictures_have_a_likely_and_a_largest_size)
{
    const struct {
        const char *format;
        int quality;
        fth_dtype dtype;
        uint64_t likely, most;
    } row[] = {{"jpg", 75, FTH_U8, 350000, 2000000},    {"jpg", 76, FTH_U8, 600000, 2000000},
               {"jpg", 90, FTH_U8, 600000, 2000000},    {"jpg", 95, FTH_U8, 800000, 2000000},
               {"jpg", 100, FTH_U8, 1200000, 2000000},  {"png", 0, FTH_U8, 800000, 1010000},
               {"png16", 0, FTH_U16, 1600000, 2020000}, {"tif16", 0, FTH_U16, 2000000, 2000000},
               {"npy", 0, FTH_F32, 4000000, 4000000}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const fo_amount a =
            fo_amount_of_picture(row[i].format, row[i].quality, row[i].dtype, 1000000);
        EQ_U64(a.likely, row[i].likely + 4096);
        EQ_U64(a.most, row[i].most + 4096);
    }
}

/* ---- disks ---- */

static void add(fo_room *r, const char *path, uint64_t likely, uint64_t most)
{
    OK(fo_room_add(r, path, (fo_amount){likely, most}, NULL));
}

TEST(files_of_one_disk_are_added_up_and_those_of_another_are_not)
{
    static fo_room r;
    char text[64];
    have_free(10 << 20);
    r = (fo_room){0};
    add(&r, t_temp_path("no/such/folder/a"), 4 << 20, 6 << 20);
    add(&r, t_temp_path("b"), 4 << 20, 4 << 20);
    add(&r, "/proc/x", 9 << 20, 9 << 20);
    EQ_I64(r.n, 2);
    EQ_I64(r.disk[0].likely, 8 << 20);
    EQ_I64(r.disk[0].most, 10 << 20);
    OK(fo_room_check(&r, false, NULL, NULL));
    fo_room_format(&r, text, sizeof text);
    EQ_STR(text, "8.00 MiB of 10.00 MiB free");
    add(&r, t_temp_path("b"), (2 << 20) + 1, (2 << 20) + 1);
    IS(fo_room_check(&r, false, NULL, NULL), FTH_E_FILE_WRITE);
}

/* A file that is replaced gives its bytes back. */
TEST(what_is_replaced_counts_against_what_is_new)
{
    static fo_room r;
    static char old[5000];
    const char *path = t_temp_path("old");
    t_file_write(path, old, sizeof old);
    have_free(1000);
    r = (fo_room){0};
    add(&r, path, 6000, 6000);
    EQ_I64(r.disk[0].most, 1000);
    OK(fo_room_check(&r, false, NULL, NULL));
    r = (fo_room){0};
    add(&r, path, 100, 100); /* smaller than before: room is made */
    r.disk[0].free_bytes = 0;
    OK(fo_room_check(&r, false, NULL, NULL));
    r = (fo_room){0};
    add(&r, t_temp_dir(), 1, 1); /* a folder is no file that goes */
    EQ_I64(r.disk[0].most, 1);
}

TEST(too_little_room_is_refused_unless_it_is_to_be_tried)
{
    static fo_room r;
    fth_err err = {0};
    fth_mem *mem = t_mem(1 << 20);
    fth_texts *notes = NULL;
    OK(fth_texts_create(&notes, mem, NULL));
    have_free(5 << 20);
    r = (fo_room){0};
    add(&r, t_temp_path("a"), 6 << 20, 7 << 20);
    IS(fo_room_check(&r, false, notes, &err), FTH_E_FILE_WRITE);
    HAS(err.text, t_temp_dir());
    HAS(err.text, ": about 6.00 MiB will be written, and 5.00 MiB are free");
    HAS(err.hint, "--ignore-space");
    EQ_I64(fth_texts_count(notes), 0);
    OK(fo_room_check(&r, true, notes, NULL));
    EQ_I64(fth_texts_count(notes), 1);
    HAS(fth_texts_get(notes, 0), "about 6.00 MiB will be written, at most 7.00 MiB, and 5.00 MiB");
    r = (fo_room){0};
    add(&r, t_temp_path("a"), 5 << 20, 7 << 20); /* it may fit */
    OK(fo_room_check(&r, false, notes, NULL));
    EQ_I64(fth_texts_count(notes), 2);
    r = (fo_room){0};
    add(&r, t_temp_path("a"), 6 << 20, 6 << 20);
    err = (fth_err){0};
    IS(fo_room_check(&r, false, notes, &err), FTH_E_FILE_WRITE);
    HAS(err.text, ": 6.00 MiB will be written"); /* that is certain */
    is_broken = true;
    r = (fo_room){0};
    add(&r, t_temp_path("a"), 6 << 20, 6 << 20); /* nobody knows how much is free */
    OK(fo_room_check(&r, false, notes, NULL));
    is_broken = false;
    fth_texts_free(notes);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- commands ---- */

static tp_plate plate = {.exp = "20250101_toy", .microscope = "YX1"};

static void make_plate(const char *microscope)
{
    const bool keyence = strcmp(microscope, "Keyence") == 0;
    plate.microscope = microscope;
    is_ours = false;
    tp_make(
        &plate, "plate",
        &(fo_toy){
            .wells = 2, .times = 2, .planes = 3, .rows = 40, .columns = 56, .keyence = keyence});
}

/* Nothing is written to a disk that is too small: exit code 3, with both numbers. */
static void refuses(const fth_verb *verb, const char *words)
{
    fth_err err;
    have_free(20000);
    IS(tp_call(&plate, verb, words, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "about ");
    HAS(err.text, " will be written, and 19.53 KiB are free");
    IS_TRUE(!tp_there(&plate, "built_image_data") &&
            !tp_there(&plate, "metadata/built_metadata_files"));
}

TEST(a_plate_that_does_not_fit_is_refused_before_anything_is_written)
{
    static const char *const names[] = {"YX1", "Keyence"};
    for (int i = 0; i < 2; i++) {
        fth_err err = {0};
        make_plate(names[i]);
        refuses(&fo_verb_run, "");
        refuses(&fo_verb_plan, "");
        OKE(tp_call(&plate, &fo_verb_run, "--ignore-space", &err), &err);
        HAS(plate.said, "note    ");
        HAS(plate.said, "and 19.53 KiB are free");
        OKE(tp_call(&plate, &fo_verb_run, "", &err), &err); /* all is there: nothing is to write */
    }
}

TEST(a_plan_tells_how_much_room_is_taken)
{
    fth_err err = {0};
    make_plate("YX1");
    have_free(1 << 30);
    OKE(tp_call(&plate, &fo_verb_plan, "", &err), &err);
    HAS(plate.said, "disk    ");
    HAS(plate.said, " of 1.00 GiB free\n");
    OKE(tp_call(&plate, &fo_verb_run, "", &err), &err);
    OKE(tp_call(&plate, &fo_verb_plan, "--overwrite", &err), &err); /* what goes makes room */
    HAS(plate.said, " of 1.00 GiB free\n");
}

static fth_status call(const fth_verb *verb, const char *in, const char *words, fth_err *err)
{
    char text[3000], file[1200];
    tp_words w = {0};
    snprintf(text, sizeof text, "%s", words);
    snprintf(file, sizeof file, "%s/%s", plate.root, in);
    tp_add_words(&w, text);
    return tp_run(&plate, verb, file, &w, err);
}

TEST(stacks_and_copies_that_do_not_fit_are_refused)
{
    static const char nd2[] = "raw_image_data/YX1/20250101_toy/20250101_toy.nd2";
    char words[2000];
    fth_err err = {0};
    make_plate("YX1");
    have_free(3000);
    snprintf(words, sizeof words, "--output=%s/out/ --metrics", plate.root);
    IS(call(&fo_verb_stack, nd2, words, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "2.93 KiB are free");
    IS_TRUE(!tp_there(&plate, "out"));
    snprintf(words, sizeof words, "--output=%s/out/ --ignore-space", plate.root);
    OKE(call(&fo_verb_stack, nd2, words, &err), &err);
    HAS(plate.said, "note    ");
    static const char *const outs[] = {"out.zarr --wells=P001", "copies/",
                                       "one.ome.tif --wells=P001"};
    for (int i = 0; i < 3; i++) {
        snprintf(words, sizeof words, "--output=%s/%s", plate.root, outs[i]);
        have_free(3000);
        IS(call(&fo_verb_convert, nd2, words, &err), FTH_E_FILE_WRITE);
        HAS(err.text, "2.93 KiB are free");
        snprintf(words, sizeof words, "--output=%s/%s --ignore-space", plate.root, outs[i]);
        OKE(call(&fo_verb_convert, nd2, words, &err), &err);
        HAS(plate.said, "note    ");
        snprintf(words, sizeof words, "--output=%s/%s --overwrite", plate.root, outs[i]);
        have_free(1 << 20);
        OKE(call(&fo_verb_convert, nd2, words, &err), &err);
        IS_TRUE(strstr(plate.said, "note    ") == NULL);
    }
}

/* ---- memory ---- */

/* However little there is, the number that would do is named, and does. */
static void names_enough(const fth_verb *verb, char *file, const char *words)
{
    static const uint64_t budgets[] = {2 << 10, 20 << 10, 100 << 10, 400 << 10, 600 << 10, 2 << 20};
    char text[2000];
    fth_err err;
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        tp_words w = {0};
        snprintf(text, sizeof text, "%s", words);
        tp_add_words(&w, text);
        plate.memory = budgets[i];
        const fth_status s = tp_run(&plate, verb, file, &w, &err);
        if (fth_status_get_info(s)->exit_code != 4)
            FAIL("%s of %llu bytes: %s", verb->name, (unsigned long long)budgets[i], err.text);
        const char *number = strstr(err.hint, "--memory ");
        if (!number)
            FAIL("%s of %llu bytes: %s", verb->name, (unsigned long long)budgets[i], err.hint);
        char *end;
        plate.memory = strtoull(number + 9, &end, 10);
        if (*end == 'M') plate.memory <<= 20;
        OKE(tp_run(&plate, verb, file, &w, &err), &err);
    }
    plate.memory = 0;
}

TEST(too_little_memory_is_told_with_a_number_that_does)
{
    static const char *const microscopes[] = {"YX1", "Keyence"};
    char words[2000], file[1200];
    for (int i = 0; i < 2; i++) {
        make_plate(microscopes[i]);
        snprintf(words, sizeof words,
                 "--data-root=%s --exp=20250101_toy --microscope=%s --overwrite", plate.root,
                 microscopes[i]);
        names_enough(&fo_verb_plan, NULL, words);
    }
    make_plate("YX1");
    snprintf(file, sizeof file, "%s/raw_image_data/YX1/20250101_toy/20250101_toy.nd2", plate.root);
    snprintf(words, sizeof words, "--output=%s/out/", plate.root);
    names_enough(&fo_verb_stack, file, words);
    snprintf(words, sizeof words, "--output=%s/c.zarr --wells=P001 --overwrite", plate.root);
    names_enough(&fo_verb_convert, file, words);
    IS_TRUE(strstr(plate.said, "images are missing") == NULL);
}

/* The estimate of a copy is an upper bound: no file of it is larger than was said. */
TEST(the_most_of_a_copy_is_not_exceeded)
{
    static const char nd2[] = "raw_image_data/YX1/20250101_toy/20250101_toy.nd2";
    static const char *const outs[] = {"a.zarr --compressor=none --wells=P001",
                                       "b.zarr --ngff=0.4 --wells=P001 --tile=16", "c/"};
    char words[2000], name[64], line[3000], text[64] = "";
    fth_err err = {0};
    make_plate("YX1");
    for (int i = 0; i < 3; i++) {
        uint64_t most = 0, taken = 0;
        snprintf(words, sizeof words, "--output=%s/%s --ignore-space", plate.root, outs[i]);
        have_free(0);
        OKE(call(&fo_verb_convert, nd2, words, &err), &err);
        const char *at = strstr(plate.said, "at most ");
        double number = 0;
        char unit = 0;
        IS_TRUE(at && sscanf(at, "at most %lf %cB", &number, &unit) >= 1);
        const char *kib = strstr(at, "KiB"), *mib = strstr(at, "MiB");
        most = (uint64_t)(number * (mib && (!kib || mib < kib) ? 1048576 : 1024) * 1.01);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(outs[i], " /"), outs[i]);
        snprintf(line, sizeof line, "du -s -B1 '%s/%s' | cut -f1", plate.root, name);
        FILE *f = popen(line, "r");
        IS_TRUE(f && fgets(text, sizeof text, f));
        pclose(f);
        taken = strtoull(text, NULL, 10);
        IS_TRUE(taken > 0);
        if (taken > most)
            FAIL("%s: %llu bytes of at most %llu", name, (unsigned long long)taken,
                 (unsigned long long)most);
    }
}

TEST_MAIN()
