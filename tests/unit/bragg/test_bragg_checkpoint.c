/* test_bragg_checkpoint.c - images that were ended early, and gone on with.
 *
 * However a run ends, the next one with the same words gives the bytes and the text of an
 * undisturbed one; a checkpoint that is damaged or of another image is not believed.
 * seconds: 8 */
#include "testing/bragg/bragg_run.h"

#include <sys/wait.h>

/* Spindle steps that carry over, the latch of interpolation, a mask. */
static const char *const images[] = {
    "-cell 40 45 50 90 90 90 -misset 10 20 30 -hkl P1_full.hkl -N 5 -lambda 1 -distance 61.3 "
    "-pixel "
    "0.2 -detpixels 128 -phi 0 -osc 2 -phisteps 4 -oversample 1 -seed 3 -dispersion 4 -dispsteps 3",
    "-cell 40 45 50 90 90 90 -misset 10 20 30 -hkl P1_tiny.hkl -default_F 5 -interpolate -N 3 "
    "-lambda 1 -distance 61.3 -pixel 0.1 -detpixels 256 -oversample 1 -seed 1",
    "-cell 40 45 50 90 90 90 -misset 10 20 30 -hkl P1_full.hkl -N 4 -mask mask64.img -roi 5 50 8 "
    "55 "
    "-seed 17 -oversample 2"};
enum { IMAGES = 3, FILES = 4 };
static const char *const files[FILES] = {"floatimage.bin", "intimage.img", "image.pgm",
                                         "noiseimage.img"};
static const char state[] = "floatimage.bin.checkpoint";

typedef struct result {
    unsigned char *data[FILES];
    size_t bytes[FILES];
    char *text;
} result;

static void take(result *o, bg_run *r)
{
    for (int i = 0; i < FILES; i++) {
        o->data[i] = t_file_read(files[i], &o->bytes[i]);
        remove(files[i]);
    }
    o->text = r->text;
    IS_TRUE(!t_file_exists(state));
}

static void drop(result *o)
{
    for (int i = 0; i < FILES; i++) free(o->data[i]);
    free(o->text);
}

/* Without the lines on memory and time that end a run in spec mode, and the notice before. */
static char *essence(char *text)
{
    char *ledger = strstr(text, "\nledger ");
    if (ledger) ledger[1] = '\0';
    return !strncmp(text, "NOTICE: ", 8) && strstr(text, "resuming after") ? strchr(text, '\n') + 1
                                                                           : text;
}

static void finish_and_compare(bg_run *r, const result *want)
{
    result got;
    r->progress = NULL;
    OKE(bg_go(r), &r->err);
    take(&got, r);
    for (int i = 0; i < FILES; i++) {
        EQ_U64(got.bytes[i], want->bytes[i]);
        SAME_BYTES(got.data[i], want->data[i], want->bytes[i]);
    }
    EQ_STR(essence(got.text), essence(want->text));
    drop(&got);
}

/* The larger of a number in the two heads of the checkpoint. */
enum { SLOW = 16, ROWS = 32, LATCH_KNOWN = 56 };
static int64_t head_number(int at)
{
    size_t bytes;
    if (!t_file_exists(state)) return 0;
    unsigned char *file = t_file_read(state, &bytes);
    int64_t most = 0;
    for (int i = 0; i < 2; i++) {
        int64_t n;
        memcpy(&n, file + 512 * i + at, sizeof n);
        if (n > most) most = n;
    }
    free(file);
    return most;
}

/* Ends come when more rows than these are kept. Files are written beside the render, which may be
 * far ahead: it waits for them here. */
static int64_t enough;

static bool cancel(void *user, const fth_progress *p)
{
    (void)user;
    if (head_number(LATCH_KNOWN) == 0) return true; /* not in the render yet */
    if (p->fraction * (double)head_number(SLOW) <= (double)enough) return true; /* still there */
    for (int i = 0; i < 3000 && head_number(ROWS) <= enough; i++) usleep(1000);
    return head_number(ROWS) <= enough;
}

static bool die(void *user, const fth_progress *p)
{
    if (!cancel(user, p)) _exit(9); /* no destructor, no flush */
    return true;
}

static result undisturbed(bg_run *r, const char *folder)
{
    result want;
    bg_enter(r, folder);
    r->checkpoint = NULL;
    OKE(bg_go(r), &r->err);
    take(&want, r);
    r->checkpoint = "4";
    return want;
}

TEST(with_and_without_checkpoints_the_same)
{
    for (int k = 0; k < 2 * IMAGES; k++) {
        bg_run r = {.args = images[k % IMAGES], .compat = k < IMAGES ? "c" : "spec"};
        char folder[20];
        snprintf(folder, sizeof folder, "same%d", k);
        result want = undisturbed(&r, folder);
        finish_and_compare(&r, &want);
        drop(&want);
        bg_leave(&r);
    }
}

TEST(cancelled_runs_go_on)
{
    for (int k = 0; k < 2 * IMAGES; k++) {
        bg_run r = {.args = images[k % IMAGES], .compat = k < IMAGES ? "c" : "spec"};
        char folder[20];
        snprintf(folder, sizeof folder, "cancel%d", k);
        result want = undisturbed(&r, folder);
        r.progress = cancel;
        enough = 0;
        for (int i = 0; i < 2; i++) { /* the second goes on from the first */
            IS(bg_go(&r), FTH_E_CANCELLED);
            free(r.text);
            for (int f = 0; f < FILES; f++) IS_TRUE(!t_file_exists(files[f]));
            IS_TRUE(head_number(ROWS) > enough);
            enough = head_number(ROWS);
        }
        finish_and_compare(&r, &want);
        drop(&want);
        bg_leave(&r);
    }
}

TEST(killed_runs_go_on)
{
    for (int k = 0; k < IMAGES; k++) {
        bg_run r = {.args = images[k]};
        char folder[20];
        snprintf(folder, sizeof folder, "kill%d", k);
        result want = undisturbed(&r, folder);
        enough = 0;
        r.progress = die;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            (void)bg_go(&r);
            _exit(0);
        }
        int status = 0;
        IS_TRUE(waitpid(child, &status, 0) == child && WIFEXITED(status));
        EQ_I64(WEXITSTATUS(status), 9);
        IS_TRUE(t_file_exists(state));
        finish_and_compare(&r, &want);
        drop(&want);
        bg_leave(&r);
    }
}

/* Ends a run early, so that there is a checkpoint. */
static void leave_checkpoint(bg_run *r)
{
    r->progress = cancel;
    enough = 0;
    IS(bg_go(r), FTH_E_CANCELLED);
    free(r->text);
    IS_TRUE(head_number(ROWS) > 0);
}

static void damage(int way)
{
    size_t bytes;
    unsigned char *file = t_file_read(state, &bytes);
    if (way == 0) file[16] ^= 1, file[512 + 16] ^= 1;           /* in both heads */
    if (way == 1) bytes = bytes / 2;                            /* cut */
    if (way == 2) memset(file, 0, 1024);                        /* no heads */
    if (way == 3) memset(file, 'x', bytes < 100 ? bytes : 100); /* one head: the other may do */
    if (way == 4) bytes = 0;
    t_file_write(state, file, bytes);
    free(file);
}

TEST(damaged_checkpoints_are_not_believed)
{
    bg_run r = {.args = images[0]};
    result want = undisturbed(&r, "damage");
    for (int way = 0; way < 5; way++) {
        leave_checkpoint(&r);
        damage(way);
        finish_and_compare(&r, &want);
    }
    /* of another image */
    char args[1000];
    snprintf(args, sizeof args, "%s -misset 11 20 30", images[0]);
    r.args = args;
    leave_checkpoint(&r);
    r.args = images[0];
    finish_and_compare(&r, &want);
    drop(&want);
    bg_leave(&r);
}

/* A pixel that was changed in the checkpoint is found in the image. */
TEST(rows_that_are_there_are_not_rendered_again)
{
    bg_run r = {.args = images[0], .checkpoint = "4"};
    bg_enter(&r, "reuse");
    leave_checkpoint(&r);
    size_t bytes;
    unsigned char *file = t_file_read(state, &bytes);
    const float changed = 12345;
    memcpy(file + 1024 + 128 * 16 + 4 * (3 * 128 + 7), &changed, sizeof changed);
    t_file_write(state, file, bytes);
    free(file);
    r.progress = NULL;
    OKE(bg_go(&r), &r.err);
    float *image = (float *)t_file_read("floatimage.bin", &bytes);
    EQ_F64(image[3 * 128 + 7], 12345);
    free(image);
    free(r.text);
    bg_leave(&r);
}

TEST(a_checkpoint_needs_a_file)
{
    bg_run r = {.args = "-cell 40 -default_F 1 -N 2 -detpixels 16 -floatfile /dev/null -nopgm",
                .checkpoint = "4"};
    bg_enter(&r, "nofile");
    IS(bg_go(&r), FTH_E_COMMAND);
    HAS(r.err.text, "--checkpoint needs a float image");
    free(r.text);
    bg_leave(&r);
}

TEST_MAIN()
