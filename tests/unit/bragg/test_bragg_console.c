/* test_bragg_console.c - the text before the render against the logs of the reference, to the byte.
 * seconds: 3 */
#include "instruments/bragg/console/console.h"
#include "testing/bragg/bragg_golden.h"
#include "testing/bragg/bragg_resolve.h"

static bgr b;

/* The text of a command line, to be freed by the caller. */
static char *console(const char *args, bool spec, const char *quirk)
{
    char *text = NULL;
    size_t bytes = 0;
    bgr_start(&b, args, spec, quirk);
    OKE(b.status, &b.err);
    FILE *out = open_memstream(&text, &bytes);
    br_console_before(out, &b.flags, &b.e);
    fclose(out);
    bgr_end(&b);
    return text;
}

TEST(logs_of_the_reference_are_reproduced)
{
    const bg_manifest m = bg_open();
    char path[200];
    int logs = 0;
    for (int i = 0; i < BG_CASES; i++) {
        char *mine = console(m.at[i].args, false, NULL);
        snprintf(path, sizeof path, BG_PUBLIC "%s.stdout.txt", m.at[i].name);
        if (t_file_exists(path)) {
            size_t bytes = 0;
            char *log = (char *)t_file_read(path, &bytes);
            log[bytes] = '\0';
            char *last = strstr(log, "  water droplet size");
            IS_TRUE(last != NULL);
            last[strcspn(last, "\n") + 1] = '\0';
            EQ_STR(mine, log);
            free(log);
            logs++;
        }
        free(mine);
    }
    EQ_I64(logs, 26);
    json_decref(m.root);
}

#define BASE "-cell 40 45 50 -misset 10 20 30 -default_F 10 -N 4 -detpixels 8 -pixel 0.4 -seed 3 "

static void has(const char *flags, bool spec, const char *line)
{
    char args[1000];
    snprintf(args, sizeof args, BASE "%s", flags);
    char *text = console(args, spec, NULL);
    HAS(text, line);
    free(text);
}

static void has_not(const char *flags, bool spec, const char *line)
{
    char args[1000];
    snprintf(args, sizeof args, BASE "%s", flags);
    char *text = console(args, spec, NULL);
    HAS_NOT(text, line);
    free(text);
}

/* Lines that no log shows. */
TEST(lines_of_rarer_flags)
{
    has("-round_xtal", false, "\n  ellipsoidal xtal: 4x4x4 cells\n");
    has("-gauss_xtal", false, "\n  gaussian xtal: 4x4x4 cells\n");
    has("-tophat_spots", false, "\n  tophat-spot xtal: 4x4x4 cells\n");
    has("-nopolar", false, "\n  polarization effect disabled\n");
    has("-curved_det -nopgm", false, "\n  curved detector: all pixels same distance from origin\n");
    has("-point_pixel", false, "\n  pixel obliquity effect disabled\n");
    has("-oversample_thick -oversample_omega", false, "pixel oversample steps +thick +omega\n");
    has("-detector_thick 100", false, "\nWARNING: setting detector attenuation depth to 10000 m\n");
    has("-mosaic 1", false, "\nWARNING: finite mosaicity with only one domain! upping to 10");
    has("-mosaic_dom 3", false, "\nWARNING: no mosaic spread specified.  setting mosaic_dom");
    has("-mosaic 0 -mosaic_dom 3", false, "\nWARNING: zero mosaic spread specified.  setting");
    has("-odet_vector 2 0 0", false, "WARNING: auto-generating odet_vector\nnanoBragg ");
    has("-interpolate", false, "XDS incident beam: 0 0 1\nUnit Cell:");
    has_not("-nonoise", false, "noise image paramters");
    has_not("-nonoise", false, "water droplet size");
    has("-mask mask64.img -detpixels 64", false,
        "\n  skipping zero-flagged pixels in mask64.img\n");
}

TEST(lists_that_are_odd_and_dumps_that_cannot_be_written)
{
    static const char list[] = "0 0 0 5\n1.5 0 0 6\n0 2 -1.25 7\n2 0 0 8\n";
    char args[1000];
    t_file_write(t_temp_path("odd.hkl"), list, sizeof list - 1);
    snprintf(args, sizeof args, "-cell 40 -hkl %s -default_F 2 -N 4 -detpixels 8 -dump no/F.bin",
             t_temp_path("odd.hkl"));
    char *text = console(args, false, NULL);
    HAS(text, "odd.hkl\nWARNING: non-integer value for h (1.5) at line 1\n"
              "WARNING: non-integer value for l (-1.25) at line 2\n"
              "initializing to default_F = 2:\ndone initializing:\nre-reading ");
    HAS(text, "odd.hkl\nWARNING: unable to open dump file: no/F.bin\nthick0 = 0 um\n");
    EQ_STR(b.e.out.dump_file, "");
    free(text);
}

TEST(spec_mode_adds_notices)
{
    has("-fdet_vector 0 0 1", true, "NOTICE: a vector flag made the convention custom");
    has_not("-fdet_vector 0 0 1", false, "NOTICE");
    has("-misset random -misset_seed 9", true, "NOTICE: the orientation was drawn with -misset_s");
    has("-lambda 1", true, "-fold oversampling\n  from ");
    has_not("-lambda 1", true, "NOTICE");
    char *text = console("-cell 40 -default_F 1 -detpixels 8", true, NULL);
    HAS(text, "NOTICE: no seed was given: 1 is used\n");
    HAS(text, "  seed: -1\n");
    free(text);
    text = console("-cell 40 -default_F 1 -detpixels 8", true, "last-layer=on");
    HAS(text, "NOTICE: last-layer: ");
    free(text);
}

TEST(usage_names_every_flag)
{
    br_flags f;
    char *text = NULL;
    size_t bytes = 0;
    br_flags_default(&f, false);
    FILE *out = open_memstream(&text, &bytes);
    br_console_usage(out, &f);
    fclose(out);
    HAS(text, "ERROR: no hkl file and no dump file to read.usage: nanoBragg -mat auto.mat -hkl");
    for (int id = 0; id < BR_FLAG_COUNT; id++) {
        char first[80];
        const char *names = br_flag_get_info((br_flag_id)id)->names;
        snprintf(first, sizeof first, "\n\t%.*s", (int)strcspn(names, " "), names);
        HAS(text, first);
    }
    free(text);
}

TEST_MAIN()
