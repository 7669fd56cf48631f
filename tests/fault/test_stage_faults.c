/* test_stage_faults.c - every request for memory and every write of a stage fails once.
 *
 * The stages are those of the practice instrument. After each failure: a status that says so, no
 * record, no temporary file, nothing held; and the next run ends with the bytes of an undisturbed
 * one.
 * seconds: 20 */
#include "testing/io/files.h"
#include "testing/job/stage_faults.h"
#include "testing/test.h"

#include <limits.h>

extern const fth_instrument fth_instrument_sounding;

static const char config[] = "instrument: sounding\n"
                             "name: faults\n"
                             "survey: {cells: 64, bumps: 2}\n"
                             "model: {basis: bowl}\n"
                             "fit: {iterations: 3, checkpoint: 2}\n"
                             "analyze: {side: 9}\n"
                             "figures: {dpi: 30}\n";

static const t_stage_faults sounding = {.instrument = &fth_instrument_sounding,
                                        .model = "bowl",
                                        .config = config,
                                        .budget = 1 << 24,
                                        .request_step = 60,
                                        .write_step = INT_MAX};

TEST(survey)
{
    t_stage_fail(&sounding, 0, 100, 8);
}

/* The same from a file: a reader, and an array on the disk. */
TEST(survey_of_a_table)
{
    static const char rows[] = "x,y,depth\n1,2,4000\n3.5,9,3900.25\n10,0,4100\n";
    char text[1000];
    const char *path = t_temp_path("table.csv");
    t_file_write(path, rows, sizeof rows - 1);
    snprintf(text, sizeof text, "%ssurvey.file: %s\n", config, path);
    t_stage_faults table = sounding;
    table.config = text;
    t_stage_fail(&table, 0, 100, 8);
}

TEST(fit)
{
    t_stage_fail(&sounding, 1, 100, 16);
}

TEST(analyze)
{
    t_stage_fail(&sounding, 2, 100, 15);
}

TEST(figures)
{
    t_stage_fail(&sounding, 3, 80, 15);
}

TEST(a_failure_takes_the_record_away)
{
    t_stage_fail_record(&sounding);
}

TEST_MAIN()
