/* make_report.c - a program that writes a sample report, for tests in a browser and for looking.
 *
 *     make_report DIR JOBS FIGURES [embed] [running] [no_figure] [ledgers]
 *
 * DIR must exist; DIR/report.html is written and the seconds it took are printed. With `ledgers`,
 * ledgers are written instead of the page.
 */
#include "testing/io/files.h"
#include "testing/job/sample.h"

#include "base/clock.h"

#include <limits.h>

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], word) == 0) return true;
    return false;
}

int main(int argc, char **argv)
{
    char root[PATH_MAX], path[PATH_MAX + 16];
    if (argc < 4 || !realpath(argv[1], root)) {
        fprintf(stderr, "usage: make_report DIR JOBS FIGURES [embed] [running] [no_figure] "
                        "[ledgers]\n");
        return 2;
    }
    fth_mem *mem = NULL;
    fth_view *view = NULL;
    fth_err err = {0};
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    if (fth_mem_create(&mem, &opt, NULL) || fth__view_create(&view, mem, root, NULL)) return 1;
    t_sample_make(view, &(t_sample){.root = root,
                                    .jobs = atoi(argv[2]),
                                    .figures = atoi(argv[3]),
                                    .running = has(argc, argv, "running"),
                                    .no_figure = has(argc, argv, "no_figure")});
    snprintf(path, sizeof path, "%s/report.html", root);
    const double before = fth__clock_seconds();
    const fth_report_options page = {.path = path, .embed = has(argc, argv, "embed")};
    if (has(argc, argv, "ledgers"))
        t_sample_write(view);
    else if (fth_report_save(view, &page, &err) != FTH_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%lld tasks, %lld files, %.2f s\n", (long long)view->n_tasks, (long long)view->n_files,
           fth__clock_seconds() - before);
    fth_view_destroy(view);
    return fth_mem_destroy(mem, NULL) != FTH_OK;
}
