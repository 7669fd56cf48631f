/* test_ptycho_scan.c - scans that are simulated, read, looked at and converted, running out of
 * memory or of disk at every point: a status says so, and nothing stays allocated or half written.
 *
 * seconds: 20 */
#include "instruments/ptycho/check/check.h"
#include "instruments/ptycho/convert/convert.h"
#include "instruments/ptycho/info/info.h"
#include "instruments/ptycho/simulate/simulate.h"
#include "testing/ptycho/ptycho_faults.h"

static const char *const flags[] = {
    "size",      "24",  "N",          "16", "n_images",         "7",    "lines", "9",
    "energy_eV", "8e3", "distance_m", "1",  "detector_pixel_m", "1e-4", NULL};

static void make(const fth_verb *verb, const char *a, const char *b)
{
    fth_err err;
    pf_call c = {.verb = verb, .word = {a, b}, .flag = flags};
    OKE(pf_run(&c, &err), &err);
}

static void survive(const fth_verb *verb, const char *a, const char *b, int64_t step,
                    const char *made)
{
    pf_survive((pf_call){.verb = verb, .word = {a, b}, .flag = flags}, step, made ? 1 : 0, made);
    pf_no_remains(t_temp_dir());
}

static const char *path(char text[FTH_PATH], const char *name)
{
    snprintf(text, FTH_PATH, "%s", t_temp_path(name));
    return text;
}

TEST(simulate)
{
    char a[FTH_PATH];
    path(a, "a.npz");
    survive(&pt_verb_simulate, a, NULL, 7, a);
    remove(a);
}

TEST(info_of_every_format)
{
    static const char *const names[] = {"b.npz", "b.cxi", "b.h5"};
    char a[FTH_PATH], b[FTH_PATH];
    make(&pt_verb_simulate, path(a, "a.npz"), NULL);
    for (int i = 0; i < 3; i++) {
        make(&pt_verb_convert, a, path(b, names[i]));
        survive(&pt_verb_info, b, NULL, 1, NULL);
        remove(b);
    }
    remove(a);
}

TEST(convert_to_every_format)
{
    static const char *const names[] = {"b.npz", "b.cxi", "b.h5"};
    char a[FTH_PATH], b[FTH_PATH];
    make(&pt_verb_simulate, path(a, "a.npz"), NULL);
    for (int i = 0; i < 3; i++) {
        path(b, names[i]);
        survive(&pt_verb_convert, a, b, 3, b);
        remove(b);
    }
    remove(a);
}

TEST(check)
{
    char a[FTH_PATH];
    make(&pt_verb_simulate, path(a, "a.npz"), NULL);
    survive(&pt_verb_check, a, NULL, 97, NULL);
    remove(a);
}

TEST_MAIN()
