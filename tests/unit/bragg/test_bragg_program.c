/* test_bragg_program.c - `fathom bragg` and the link nanoBragg as people call them: files, text,
 * and exit codes. seconds: 5 */
#include "testing/io/files.h"
#include "testing/test.h"

#include <jansson.h>
#include <unistd.h>

#define TINY "-cell 40 45 50 -default_F 10 -N 4 -detpixels 8 -pixel 0.4 -oversample 1 -noprogress"

static char text[200000], home[4096];

/* Run a line in the folder of the test; what it says on both streams is in `text`. */
static int call(const char *fmt, ...) FTH_PRINTF(1, 2);
static int call(const char *fmt, ...)
{
    char line[3000], command[5000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    snprintf(command, sizeof command, "cd '%s' && PATH=\"${FATHOM_PROGRAM%%/*}:$PATH\" %s 2>&1",
             t_temp_dir(), line);
    FILE *p = popen(command, "r");
    IS_TRUE(p != NULL);
    const size_t n = fread(text, 1, sizeof text - 1, p);
    text[n] = '\0';
    const int status = pclose(p);
    return WEXITSTATUS(status);
}

static void need_program(void)
{
    if (!getenv("FATHOM_PROGRAM")) SKIP("FATHOM_PROGRAM is not set");
    IS_TRUE(getcwd(home, sizeof home) != NULL);
}

static bool there(const char *name)
{
    return t_file_exists(t_temp_path(name));
}

static void sweep(void)
{
    static const char *const files[] = {"floatimage.bin", "intimage.img", "image.pgm",
                                        "noiseimage.img", "Fdump.bin"};
    for (int i = 0; i < 5; i++) unlink(t_temp_path(files[i]));
}

TEST(the_link_does_what_nanobragg_does)
{
    need_program();
    EQ_I64(call("nanoBragg " TINY " -seed 1"), 0);
    HAS(text, "mosflm convention selected.\n");
    HAS_NOT(text, "NOTICE");
    IS_TRUE(there("floatimage.bin") && there("intimage.img") && there("image.pgm"));
    IS_TRUE(there("noiseimage.img") && !there("Fdump.bin"));
    sweep();
    EQ_I64(call("nanoBragg -cell 40 -hkl %s/tests/golden/bragg/inputs/P1_tiny.hkl -N 4 -detpixels "
                "8 -nopgm -nonoise -unknown 4",
                home),
           0);
    IS_TRUE(there("Fdump.bin") && !there("image.pgm") && !there("noiseimage.img"));
    EQ_I64(call("nanoBragg -cell 40 -N 4 -detpixels 8"), 0); /* from the dump */
    HAS(text, "reading Fs from Fdump.bin\n");
    EQ_I64(call("fathom bragg -cell 40 -N 4 -detpixels 8"), 2); /* not by itself */
    EQ_I64(call("fathom bragg -cell 40 -N 4 -detpixels 8 --fdump Fdump.bin"), 0);
    sweep();
}

TEST(failures_have_the_codes_of_their_program)
{
    need_program();
    static const struct {
        const char *flags;
        int code; /* of fathom; the link has one for all */
        const char *text;
    } t[] = {
        {"", 2, "usage: nanoBragg"},
        {"-cell 40", 2, "no hkl file and no dump file to read.usage: nanoBragg"},
        {"-default_F 10", 2, "usage: nanoBragg"},
        {"-cell 40 -hkl none.hkl", 3, "none.hkl"},
        {"-hkl none.hkl -mat none.mat", 3, "none.mat"},
        {TINY " -mask none.img", 3, "none.img"},
        {TINY " -oversample -2", 2, "-oversample is -2"},
        {TINY " -detpixels 0 -detsize 0", 2, "pixels along fast"},
        {TINY " -floatfile no/such/folder/a.bin", 3, "no/such/folder"},
        {TINY " --memory lots", 2, "--memory takes a size"},
        {TINY " --compat x", 2, "--compat takes spec or c"},
        {TINY " --quirk x=on", 2, "'x=on' is not one of the quirks"},
        {TINY " --precision f16", 2, "--precision takes f64 or f32"},
        {TINY " --memory 1M", 4, ""},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const int code = call("fathom bragg %s", t[i].flags);
        if (code != t[i].code) FAIL("fathom bragg %s: code %d\n%s", t[i].flags, code, text);
        HAS(text, t[i].text);
        EQ_I64(call("nanoBragg %s", t[i].flags), 9);
        HAS(text, t[i].text);
        EQ_I64(t_file_count(), 0);
    }
    EQ_I64(call("fathom bragg " TINY " -trace_pixel a 3"), 2);
    HAS(text, "-trace_pixel takes slow fast, not 'a 3'");
    HAS(text, "it is written -trace_pixel slow fast");
    EQ_I64(call("fathom bragg " TINY " -lamda 1"), 2);
    HAS(text, "did you mean -lambda?");
    EQ_I64(call("fathom bragg " TINY " --compta c"), 2);
    HAS(text, "did you mean --compat?");
}

/* A header longer than 512 bytes is no reason to stop: nanoBragg lets it run on, we say its length.
 */
TEST(geometries_of_many_digits_are_rendered_in_both_modes)
{
    need_program();
#define MANY                                                                                       \
    "-cell 78.123 79.456 37.987 90 90 90 -default_F 100 -N 3 -lambda 0.97918 -distance 231.27466 " \
    "-pixel 0.172 -detpixels_f 246 -detpixels_s 252 -oversample 1 -Xbeam 21.742295 -Ybeam "        \
    "21.907080"
    static const char *const program[2] = {"nanoBragg", "fathom bragg"}, *const said[2] = {"512",
                                                                                           "1024"};
    const size_t header[2] = {516, 1024};
    for (int k = 0; k < 2; k++) {
        EQ_I64(call("%s " MANY " -seed 1", program[k]), 0);
        for (int noise = 0; noise < 2; noise++) {
            size_t bytes;
            unsigned char *image =
                t_file_read(t_temp_path(noise ? "noiseimage.img" : "intimage.img"), &bytes);
            EQ_U64(bytes, header[k] + 2 * 246 * 252);
            EQ_I64(memcmp(image, "{\nHEADER_BYTES=", 15), 0);
            EQ_I64(memcmp(image + 15, said[k], strlen(said[k])), 0);
            if (k == 0) EQ_I64(memcmp(image + header[0] - 4, ";\n}\f", 4), 0);
            free(image);
        }
        /* and what is written is read: the geometry of the image is that of the command */
        EQ_I64(call("%s -img noiseimage.img -cell 40 -default_F 1 -N 3 -oversample 1 -nopgm "
                    "-nonoise -floatfile again.bin -intfile /dev/null -noprogress",
                    program[k]),
               0);
        size_t again;
        free(t_file_read(t_temp_path("again.bin"), &again));
        EQ_U64(again, 4 * 246 * 252);
        EQ_I64(call("%s -mask intimage.img -cell 40 -default_F 1 -N 3 -oversample 1 -nopgm "
                    "-nonoise -floatfile again.bin -intfile /dev/null -noprogress",
                    program[k]),
               0);
        unlink(t_temp_path("again.bin"));
        sweep();
    }
#undef MANY
}

/* nanobrag_torch's flags: what they ask for is done, or there is an answer, and the image is the
 * same. */
TEST(flags_of_other_programs_are_answered)
{
    need_program();
    static const char *const program[2] = {"nanoBragg", "fathom bragg"};
    for (int k = 0; k < 2; k++) {
        size_t n[2];
        unsigned char *image[2];
        EQ_I64(call("%s " TINY " -seed 1", program[k]), 0);
        HAS_NOT(text, "has no effect");
        image[0] = t_file_read(t_temp_path("floatimage.bin"), &n[0]);
        EQ_I64(call("sh -c '%s " TINY " -seed 1 -pixel_batch_size 128 -show_config -device cpu "
                    "-dtype float64 2>notes.txt >/dev/null'",
                    program[k]),
               0);
        EQ_I64(call("cat notes.txt"), 0);
        unlink(t_temp_path("notes.txt"));
        HAS(text, "NOTICE: -pixel_batch_size has no effect");
        HAS(text, "NOTICE: -show_config has no effect");
        image[1] = t_file_read(t_temp_path("floatimage.bin"), &n[1]);
        EQ_U64(n[1], n[0]);
        SAME_BYTES(image[1], image[0], n[0]);
        EQ_I64(call("%s " TINY " -seed 1 -trace_pixel 3 5", program[k]), 0);
        HAS(text, "   5    3 : stol = ");
        EQ_I64(call("%s " TINY " -device tpu", program[k]), k ? 2 : 9);
        HAS(text, "-device takes cpu, cuda or cuda:N, not 'tpu'");
        free(image[0]);
        free(image[1]);
        sweep();
    }
}

/* Each is the verb of its name in c mode, with the exit code of its program. */
TEST(companions_have_links)
{
    need_program();
    EQ_I64(call("nanoBraggCUDA " TINY " -seed 1 -precision double"), 0);
    HAS(text, "nanoBragg nanocrystal diffraction simulator");
    EQ_I64(call("noisify floatimage.bin -seed 3 -intfile /dev/null -nopgm -noisefile a.img"), 0);
    EQ_I64(call("fathom bragg noisify --compat c -bin floatimage.bin -seed 3 -intfile /dev/null "
                "-nopgm -noisefile b.img"),
           0);
    EQ_I64(call("cmp a.img b.img"), 0);
    EQ_I64(call("rm a.img b.img"), 0);
    t_file_write(t_temp_path("t.stol"), "0 6\n0.5 2\n1 1\n", 14);
    EQ_I64(call("nonBragg -stol t.stol -detpixels 8 -seed 1 -floatfile a.bin -intfile /dev/null "
                "-nopgm -nonoise"),
           0);
    IS_TRUE(there("a.bin"));
    EQ_I64(call("rm a.bin"), 0);
    EQ_I64(
        call("nonBragg -stol t.stol -detpixels 8 -seed 1 -floatfile /dev/null -intfile /dev/null "
             "-nopgm -nonoise -pixel_batch_size 8"),
        0);
    HAS(text, "NOTICE: -pixel_batch_size has no effect");
    EQ_I64(call("rm t.stol"), 0);
    EQ_I64(call("noisify"), 9);
    EQ_I64(call("nonBragg -stol none.stol"), 9);
    EQ_I64(call("nanoBraggCUDA -cell 40"), 9);
    sweep();
}

/* In spec mode what is not used is said beside the text; in c mode that is nanoBragg's alone. */
TEST(a_beam_centre_that_is_not_used_is_said)
{
    need_program();
    EQ_I64(call("sh -c 'fathom bragg " TINY " -xds -Xbeam 3 -Ybeam 4 2>&1 >text.txt'"), 0);
    EQ_STR(text, "NOTICE: -Xbeam and -Ybeam (detector.beam) are not used: here the detector pivots "
                 "about the sample; give -ORGX and -ORGY (detector.org), or -pivot beam\n");
    EQ_I64(call("nanoBragg " TINY " -seed 1 -xds -Xbeam 3 -Ybeam 4"), 0);
    HAS_NOT(text, "NOTICE");
    EQ_I64(call("sh -c 'fathom bragg " TINY " -curved_det --cbf c.cbf 2>&1 >text.txt'"), 0);
    HAS(text, "NOTICE: the detector is curved");
    EQ_I64(call("rm text.txt c.cbf"), 0);
    sweep();
}

TEST(no_polarisation_means_none)
{
    need_program();
    static const char *const mode[2] = {"spec", "c"};
    for (int k = 0; k < 2; k++) {
        EQ_I64(call("fathom bragg --compat %s " TINY " -nopolar -floatfile a.bin", mode[k]), 0);
        EQ_I64(call("fathom bragg --compat %s " TINY " -nopolar -oversample_polar -floatfile b.bin",
                    mode[k]),
               0);
        EQ_I64(call("cmp -s a.bin b.bin"), k);
    }
    EQ_I64(call("rm a.bin b.bin"), 0);
    sweep();
}

TEST(quiet_leaves_only_files)
{
    need_program();
    EQ_I64(call("fathom bragg " TINY " --quiet"), 0);
    EQ_STR(text, "");
    IS_TRUE(there("floatimage.bin"));
    sweep();
    EQ_I64(call("fathom bragg " TINY " --plan"), 0);
    IS_TRUE(text[0] != '\0');
    EQ_I64(t_file_count(), 0);
}

TEST(json_holds_everything_that_was_resolved)
{
    need_program();
    EQ_I64(call("fathom bragg " TINY " --json -lambda 1.25 -floatfile 'a \"b\".bin'"), 0);
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    if (!root) FAIL("line %d: %s\n%s", error.line, error.text, text);
    double lambda = 0, distance = 0, sum = 0;
    const char *unit = NULL, *file = NULL, *compat = NULL;
    int fast = 0, seed = 0;
    OK(json_unpack(root, "{s:s, s:{s:{s:F, s:s}}, s:{s:i, s:F}, s:{s:i}, s:{s:s}, s:{s:F}}",
                   "compat", &compat, "parameters", "lam", "value", &lambda, "unit", &unit,
                   "detector", "fast", &fast, "distance_mm", &distance, "seeds", "noise", &seed,
                   "files", "float", &file, "image", "sum", &sum) == 0
           ? FTH_OK
           : FTH_E_INTERNAL);
    EQ_STR(compat, "spec");
    NEAR(lambda, 1.25, 1e-14);
    EQ_STR(unit, "A");
    EQ_I64(fast, 8);
    NEAR(distance, 100, 1e-12);
    EQ_I64(seed, 1);
    EQ_STR(file, "a \"b\".bin");
    IS_TRUE(sum > 0);
    json_decref(root);
    unlink(t_temp_path("a \"b\".bin"));
    sweep();
}

TEST(help_shows_command_and_verbs)
{
    need_program();
    EQ_I64(call("fathom help bragg"), 0);
    HAS(text, "usage: fathom bragg");
    HAS(text, "--compat");
    HAS(text, "verbs");
    HAS(text, "  plan ");
    EQ_I64(call("fathom bragg --help"), 0);
    HAS(text, "usage: fathom bragg");
    EQ_I64(call("fathom help bragg nonsense"), 2);
    EQ_I64(call("fathom bragg --flags"), 0);
    HAS(text, "| `-lambda x`");
}

TEST_MAIN()
