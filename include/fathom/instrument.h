/* fathom/instrument.h - an instrument as one struct: the program, the runner and the report read
 * it.
 *
 * An instrument has a table of config keys and a few stages in a row, such as preprocess, train,
 * analyze, figures. A stage says which files it reads and leaves, plans from metadata alone, and
 * runs. Everything else is done once for all instruments: the command line, the check of the
 * config, the device and the budget, what is cached, the log, progress, the three memory numbers.
 * Adding one is a folder under instruments/ and one line in instruments/list.def.
 *
 * Ownership: the struct and all it points to are constants of the program.
 * Threads:   a stage is called from one thread; it may report from any.
 * Failure:   stages return a status, whose exit code becomes that of the process.
 */
#ifndef FATHOM_INSTRUMENT_H
#define FATHOM_INSTRUMENT_H

#include <fathom/config.h>
#include <fathom/json.h>
#include <fathom/plan.h>

FTH_BEGIN_DECLS

/* Rows that the table of an instrument starts with, after FTH_CONFIG_COMMON_KEYS. The runner
 * reads output_dir; seed can be given with --seed. */
#define FTH_INSTRUMENT_KEYS(seed_default, dir_default)                                             \
    FTH_INSTRUMENT_NAME_KEYS(seed_default), FTH_INSTRUMENT_DIR_KEY(dir_default)
/* The same in two parts, for a table that has a row of its own between them. */
#define FTH_INSTRUMENT_NAME_KEYS(seed_default)                                                     \
    FTH_CONFIG_COMMON_KEYS,                                                                        \
        {.name = "name",                                                                           \
         .type = FTH_CONFIG_TEXT,                                                                  \
         .required = true,                                                                         \
         .doc = "name for people; never part of a path or of a job's identity"},                   \
    {                                                                                              \
        .name = "seed", .type = FTH_CONFIG_INT, .value = seed_default, .range = "[0, inf)",        \
        .doc = "seed of all random numbers"                                                        \
    }
#define FTH_INSTRUMENT_DIR_KEY(dir_default)                                                        \
    {.name = "output_dir",                                                                         \
     .type = FTH_CONFIG_PATH,                                                                      \
     .value = dir_default,                                                                         \
     .doc = "folder of the results",                                                               \
     .aliases = "output.dir"},                                                                     \
        {.name = "time_limit",                                                                     \
         .type = FTH_CONFIG_TEXT,                                                                  \
         .list = true,                                                                             \
         .doc = "how long 'fathom run' lets a stage run: 30m, or [STAGE=2h, 30m]"},                \
        FTH_SLURM_KEYS

/* Keys of `slurm:` and of --slurm KEY=VALUE (docs/cluster.md). No stage depends on them. */
#define FTH_SLURM_KEYS                                                                             \
    FTH_KEY(SECTION, "slurm",                                                                      \
            "What 'fathom run --executor slurm' asks of Slurm; --slurm KEY=VALUE wins. No stage "  \
            "depends on these keys."),                                                             \
        FTH_KEY(TEXT, "slurm.partition", "partition; by default the cluster's"),                   \
        FTH_KEY(TEXT, "slurm.account", "account that is charged"),                                 \
        FTH_KEY(TEXT, "slurm.qos", "quality of service"),                                          \
        FTH_KEY(TEXT, "slurm.constraint", "features that a node must have"),                       \
        FTH_KEY(TEXT, "slurm.reservation", "reservation to run in"),                               \
        FTH_KEY(TEXT, "slurm.time",                                                                \
                "time limit of every task: 90 minutes, 1:30:00, 2-00:00:00; by default from the "  \
                "prediction"),                                                                     \
        FTH_KEY(INT, "slurm.cpus", "processors of every task; by default --threads, or 4",         \
                .range = "[1, 4096]"),                                                             \
        FTH_KEY(TEXT, "slurm.gpus", "GPUs of every task that can use one: 1, or [STAGE=1, 0]",     \
                .list = true),                                                                     \
        FTH_KEY(TEXT, "slurm.modules", "modules to load before a task", .list = true),             \
        FTH_KEY(TEXT, "slurm.prologue", "lines of shell before a task", .list = true),             \
        FTH_KEY(BOOL, "slurm.probe", "test whether nodes see the files; by default yes"),          \
        FTH_KEY(TEXT, "slurm.options",                                                             \
                "other options of sbatch, without dashes: [exclusive, nice=100]", .list = true)

/* Rows for drills, failures on purpose: for instruments that test the runner, or their own stages.
 * `stages`: "none", then the names of the stages. */
#define FTH_DRILL_KEYS(stages)                                                                     \
    FTH_KEY(SECTION, "drill",                                                                      \
            "Failures on purpose, for practice and tests. No stage depends on "                    \
            "these keys."),                                                                        \
        FTH_KEY(CHOICE, "drill.stage", "stage that goes wrong", .choices = (stages),               \
                .value = "none"),                                                                  \
        FTH_KEY(CHOICE, "drill.kind",                                                              \
                "how: a bad file, abort, no answer, slowness, a huge log, a full disk, no number", \
                .choices = "none error crash hang slow chatter fill numeric", .value = "none"),    \
        FTH_KEY(REAL, "drill.chance",                                                              \
                "share of the jobs it happens to, drawn from seed, model and stage", .value = "1", \
                .range = "[0, 1]"),                                                                \
        FTH_KEY(REAL, "drill.seconds", "how long hang and slow last", .value = "1",                \
                .range = "[0, 1e6]", .unit = "s"),                                                 \
        FTH_KEY(SIZE, "drill.bytes", "what chatter says and fill writes", .value = "1M"),          \
        FTH_KEY(PATH, "drill.start_log",                                                           \
                "each start of a stage appends 'attempt pid job stage' to this file")

typedef struct fth_instrument fth_instrument;
typedef struct fth_stage fth_stage;
typedef struct fth_stage_call fth_stage_call;

/* ---- files ---- */

typedef enum fth_file_kind {
    FTH_FILE_INPUT,  /* read; a change of it makes the stage run again */
    FTH_FILE_OUTPUT, /* left behind; the stage is not done without it  */
    FTH_FILE_FIGURE, /* left behind, and shown in the report           */
    FTH_FILE_KIND_COUNT
} fth_file_kind;

typedef struct fth_file_list fth_file_list;
/* Add a path, copied; relative ones are taken from the current directory. `title` is for people
 * and may be NULL. Outputs of the stages before this one are inputs by themselves. */
FTH_API FTH_MUST_USE fth_status fth_file_list_add(fth_file_list *list, fth_file_kind kind,
                                                  const char *path, const char *title,
                                                  fth_err *err);

/* A path argument of a command, and its name there: "-floatfile". */
typedef struct fth_path_use {
    fth_file_kind kind;
    const char *name, *path; /* NULL or "": it was not given */
} fth_path_use;
/* FTH_E_FILE_WRITE if an output resolves to the same file as another output or an input; hard links
 * count as one file. Devices such as /dev/null may be repeated. Files need not exist. */
FTH_API FTH_MUST_USE fth_status fth_paths_check(const fth_path_use *use, int n, fth_mem *mem,
                                                fth_err *err);

/* xxh64 of a file's bytes, as the record of a stage has it. */
FTH_API FTH_MUST_USE fth_status fth_file_hash(fth_mem *mem, const char *path, uint64_t *hash,
                                              fth_err *err);

/* ---- one process at a time in a folder ---- */

/* Keeps two processes from writing to one folder. A claim is a small file, FOLDER/.fathom/lock,
 * that names the process; a runner's lock on its output_dir is the same file. A background thread
 * renews it, so that others, also on other machines, detect a dead holder and take over its claim.
 *
 *   fth_claim *claim = NULL;
 *   FTH_TRY(fth_folder_claim(&claim, mem, folder, err));
 *   ... write ...
 *   fth_folder_release(claim); */
typedef struct fth_claim fth_claim;
/* Creates the folder if needed. FTH_E_LOCKED says which process holds it, on which machine and
 * since when. A claim of this process, or of the runner that started it, does not conflict. */
FTH_API FTH_MUST_USE fth_status fth_folder_claim(fth_claim **out, fth_mem *mem, const char *folder,
                                                 fth_err *err);
FTH_API void fth_folder_release(fth_claim *claim); /* NULL is allowed */

/* ---- plans of a stage ---- */

typedef struct fth_stage_plan {
    uint64_t host_bytes;   /* peak on the host: plan, allowance and what the stage holds beside   */
    uint64_t device_bytes; /* peak on the device; 0 on the CPU                                    */
    uint64_t scratch_bytes; /* of files that stand in for memory */
    double seconds; /* 0: not known                                                        */
    bool bound;     /* sizes were only known as bounds                                     */
    char text[120]; /* one line for people: "cell<=73655, 9 chunks"; may be ""             */
    /* What the stage takes beside each plan and beside the ledger: texts, open files. Set it
     * before plans are added. */
    uint64_t beside_bytes;
    /* For several ranks (fathom/ranks.h), by the figures of fth_plan_info; host_bytes are of each.
     */
    int ranks;                /* 0 or 1: one */
    uint64_t exchanged_bytes; /* by one rank */
    double seconds_alone, seconds_together,
        seconds_shared; /* the last: of alone, what is divided */
    int64_t most_parts; /* ranks that the widest pass could be divided among */
} fth_stage_plan;

/* Add to the prediction of a stage. What happens one after another shares memory: the largest
 * counts, and seconds add up. The ledger of the context counts as it is at the call, so hold what
 * the stage would hold then.
 *
 *   fth_status so_map_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
 *                          fth_err *err)
 *   {
 *       fth_val map;
 *       fth_graph *g = build_map(call, &map);
 *       const fth_status s = fth_stage_plan_graph(call, out, g, &map, 1, 1, show, err);
 *       fth_graph_destroy(g);
 *       return s;
 *   } */
/* A plan of the engine that runs `runs` times; printed with `show`. Plan NULL: fth_plan_make
 * failed, and the status is what it left in `err`. */
FTH_API FTH_MUST_USE fth_status fth_stage_plan_add(const fth_stage_call *call, fth_stage_plan *out,
                                                   const fth_plan *plan, double runs, FILE *show,
                                                   fth_err *err);
/* Plan the outputs of a graph and add that. */
FTH_API FTH_MUST_USE fth_status fth_stage_plan_graph_(const fth_stage_call *call, fth_site site,
                                                      fth_stage_plan *out, fth_graph *g,
                                                      const fth_val *outs, int n_outs, double runs,
                                                      FILE *show, fth_err *err);
#define fth_stage_plan_graph(call, out, g, outs, n_outs, runs, show, err)                          \
    fth_stage_plan_graph_((call), FTH_HERE, (out), (g), (outs), (n_outs), (runs), (show), (err))
/* Add an axis to the line for people, "cell<=73655, term=5". Bound: it may be shorter, and so the
 * plan is a bound. */
FTH_API void fth_stage_plan_axis(fth_stage_plan *out, const char *axis, int64_t size, bool bound);
/* Bytes that the stage takes by itself while no plan runs, a figure that is drawn, a sort, with
 * libraries (1u << FTH_LIB_...) at work. Returns the host's bytes at that time. */
FTH_API uint64_t fth_stage_plan_hold(const fth_stage_call *call, fth_stage_plan *out,
                                     uint64_t bytes, uint32_t libraries);

/* ---- progress ---- */

enum { FTH_STAGE_NUMBERS = 4 };
typedef struct fth_stage_progress {
    int64_t done, total; /* iterations, images...; total 0: not known                     */
    double remaining_s;  /* 0: worked out from done and total                             */
    const char *what;    /* "epoch", "pass 2 of 3"; may be NULL                           */
    struct {
        const char *name; /* "elbo", "lr"; NULL ends the list. The stage's `figure` is shown */
        double value;
    } number[FTH_STAGE_NUMBERS];
} fth_stage_progress;

/* Report progress; cheap enough for every step, shown at most ten times a second. False: the user
 * cancelled. Save a resumable state, and return FTH_E_CANCELLED. */
FTH_API bool fth_stage_report(const fth_stage_call *call, const fth_stage_progress *progress);
/* An fth_progress_fn whose user is the call: for fth_run_options. */
FTH_API bool fth_stage_run_progress(void *call, const fth_progress *progress);
/* Whether the user cancelled the stage. */
FTH_API bool fth_stage_is_cancelled(const fth_stage_call *call);
/* Call it after each fth_run: adds its memory and time to the record of the stage. */
FTH_API void fth_stage_account(const fth_stage_call *call, const fth_run_report *report);
/* fth_run with the stage's progress and accounting. `report` may be NULL. Call NULL: a plain
 * fth_run. */
FTH_API FTH_MUST_USE fth_status fth_stage_run(const fth_stage_call *call, fth_plan *plan,
                                              const fth_sink *sinks, fth_run_report *report,
                                              fth_err *err);
/* Plan the outputs of a graph, run it into the sinks as above, and destroy the plan: for what a
 * stage computes once. */
FTH_API FTH_MUST_USE fth_status fth_stage_compute_(const fth_stage_call *call, fth_site site,
                                                   fth_graph *g, const fth_val *outs, int n_outs,
                                                   const fth_sink *sinks, fth_err *err);
#define fth_stage_compute(call, g, outs, n_outs, sinks, err)                                       \
    fth_stage_compute_((call), FTH_HERE, (g), (outs), (n_outs), (sinks), (err))
/* fth_context_loop on the workers of the stage; FTH_E_CANCELLED when the user cancels it. */
FTH_API FTH_MUST_USE fth_status fth_stage_loop(const fth_stage_call *call, const char *name,
                                               int64_t n,
                                               void (*fn)(void *arg, int64_t i, int worker),
                                               void *arg, fth_err *err);
/* The seconds that `runs` runs of a plan are predicted to take, before anything was measured: by
 * the rates of the context (fathom/rates.h). */
FTH_API double fth_stage_guess(const fth_stage_call *call, const fth_plan *plan, double runs);
/* Record a finished file that `files` could not name in advance. */
FTH_API FTH_MUST_USE fth_status fth_stage_wrote(const fth_stage_call *call, fth_file_kind kind,
                                                const char *path, const char *title, fth_err *err);
/* Inject the failure that the config asks for at this point (FTH_DRILL_KEYS), if any. */
FTH_API FTH_MUST_USE fth_status fth_stage_drill(const fth_stage_call *call, fth_err *err);
/* For tests: a named point where the stage may be killed; does nothing otherwise. */
FTH_API void fth_stage_point(const fth_stage_call *call, const char *name);
/* Write one line to the log of the stage. */
FTH_API void fth_stage_say(const fth_stage_call *call, const char *fmt, ...) FTH_PRINTF(2, 3);

/* ---- stages ---- */

/* A flag of the command line: of a stage (`fathom spatial train --resume`) or of a command. */
typedef enum fth_flag_value {
    FTH_FLAG_NONE,
    FTH_FLAG_COUNT,  /* a whole number, not negative   */
    FTH_FLAG_PERIOD, /* whole seconds, from 1 to a day */
    FTH_FLAG_SIZE,   /* bytes: 8G, 50%                 */
    FTH_FLAG_DEVICE, /* auto, cpu, cuda, cuda:N        */
    FTH_FLAG_LEVEL,  /* error, warn, info, debug       */
    FTH_FLAG_FILE,
    FTH_FLAG_DIR,
    FTH_FLAG_PATH,  /* a file or a folder              */
    FTH_FLAG_WORD,  /* any text                        */
    FTH_FLAG_SET,   /* key=value of a config           */
    FTH_FLAG_KEY,   /* any text; the flag is a key of the config by its name: a synopsis has
                       [--KEY VALUE] for all of them */
    FTH_FLAG_STAGE, /* the name of a stage              */
    FTH_FLAG_JOB,   /* a name or pattern of jobs        */
    FTH_FLAG_VALUE_COUNT
} fth_flag_value;
typedef struct fth_flag {
    const char *name; /* without the dashes */
    fth_flag_value value;
    const char *doc; /* one sentence, without its full stop */
    char letter;     /* short form, 'c' for -c; 0: none     */
    bool many;       /* may be given more than once         */
} fth_flag;

struct fth_stage_call {
    const fth_instrument *instrument;
    const fth_stage *stage;
    const fth_config *config; /* checked */
    const char *model;        /* "svgp"; "" in a shared stage */
    const char *output_dir;   /* canonical; exists while running */
    const char *model_dir;    /* output_dir/model; output_dir in a shared stage */
    fth_context *context;     /* device, budget, threads, scratch, trace, log */
    const char *const *flags; /* flags that were given, "resume" or "replay=FILE", then NULL */
    const char *job;          /* name for people */
    const char *attempt;      /* token of this start, unique; "" when started by hand */
    void *link;               /* of the functions above */
};
/* The flag that every stage has: compute, whatever is there. A stage that keeps partial results
 * lists it among its own, see `keeps`. */
#define FTH_STAGE_FORCE                                                                            \
    {                                                                                              \
        .name = "force",                                                                           \
        .doc = "compute everything again, and replace results that another config made"            \
    }
/* A stage that refuses to replace finished results lists this as well. The runner gives it where
 * the config that it runs made them: that they are made again was decided there. */
#define FTH_STAGE_REPLACE                                                                          \
    {                                                                                              \
        .name = "replace",                                                                         \
        .doc = "make results again that were made otherwise; 'fathom run' gives this where its "   \
               "config made them"                                                                  \
    }
/* Whether to resume from existing partial results: not under --force, not from those of another
 * algorithm, and never in a stage without `keeps`. */
FTH_API bool fth_stage_may_resume(const fth_stage_call *call);
/* Whether a flag of the stage was given. */
FTH_API bool fth_stage_flag(const fth_stage_call *call, const char *name);
/* Its value: "" for a flag without one, NULL when it was not given. */
FTH_API const char *fth_stage_flag_value(const fth_stage_call *call, const char *name);

/* A file that a stage leaves. */
typedef struct fth_stage_file {
    const char *name, *title;
    bool figure; /* shown in the report */
} fth_stage_file;

/* Declares the functions of a stage that a room offers: FTH_STAGE_FUNCTIONS(so_fit) is so_fit_plan
 * and so_fit_run. */
#define FTH_STAGE_FUNCTIONS(name)                                                                  \
    fth_status name##_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,            \
                           fth_err *err);                                                          \
    fth_status name##_run(const fth_stage_call *call, fth_err *err)

struct fth_stage {
    const char *name;     /* "train": also the verb of the command line                           */
    const char *doing;    /* "training": in the live table                                        */
    const char *brief;    /* one line                                                             */
    const char *keys;     /* sections and keys that, when changed, make it run again              */
    const char *after;    /* stages whose outputs it reads, "preprocess"; "" for none             */
    const char *figure;   /* number shown in the live table, "elbo"; NULL: none                   */
    bool shared;          /* once for each output directory, for all models in it                 */
    const fth_flag *flag; /* ends with a row that has no name; NULL: none                         */
    /* Number of its algorithm: raise it when equal inputs and keys would give other results than
     * before. Results of another number are not cached. */
    int algorithm;
    /* Partial results that a later start resumes from, "checkpoint"; NULL: none. Such a stage has
     * FTH_STAGE_FORCE among its flags and asks fth_stage_may_resume. */
    const char *keeps;
    /* Files it always leaves, in model_dir: ends with a row that has no name; NULL: none. */
    const fth_stage_file *leaves;
    /* Keys whose values are files that it reads, "survey.file"; those without a value name none.
     * NULL: none. */
    const char *reads;
    /* Further files it reads and leaves, from the config alone; NULL: none. */
    fth_status (*files)(const fth_stage_call *call, fth_file_list *list, fth_err *err);
    /* What it would take within the budget of the context; reads headers at most. With `show`,
     * also prints the plans of the engine there. FTH_E_NO_FIT: it does not fit. */
    fth_status (*plan)(const fth_stage_call *call, fth_stage_plan *out, FILE *show, fth_err *err);
    fth_status (*run)(const fth_stage_call *call, fth_err *err);
};
/* A row of the table of stages: what FTH_STAGE_FUNCTIONS declared, the name, what else is set.
 *   FTH_STAGE(so_fit, "fit", .doing = "fitting", .brief = "fit a surface", .keys = "fit") */
#define FTH_STAGE(functions, stage_name, ...)                                                      \
    {                                                                                              \
        .plan = functions##_plan, .run = functions##_run, .name = (stage_name), __VA_ARGS__        \
    }

/* One of the models that a general config stands for. */
typedef struct fth_variant {
    const char *name;   /* "mggp_svgp": the model, the file, and the kind in `applies` */
    const char *set[8]; /* "model.spatial=true": what makes it of the general one       */
} fth_variant;

/* Where the variants of a config depend on what it says: a grid of values. */
enum { FTH_VARIANT_TEXT = 2000 };
typedef struct fth_variant_made {
    fth_variant variant; /* its texts are parts of `text` */
    char text[FTH_VARIANT_TEXT];
} fth_variant_made;

/* A name of the program under which it is one command alone: a link to it, "nanoBragg". There the
 * flags, "--compat=c", are given unless they are typed; every failure has the exit code `code`;
 * words with two dashes that are no flags of ours are passed on like the others. */
typedef struct fth_link {
    const char *name;
    const char *flags[4];
    int code;
    bool gpu; /* a GPU may be taken; false: results have the bits of the CPU */
} fth_link;

/* A further verb: `fathom spatial toy ...`. */
typedef struct fth_verb {
    const char *name, *args, *brief;
    const char *doc;        /* paragraphs, an empty line between them; NULL: the brief */
    int min_args, max_args; /* words it takes; of no use when raw */
    bool raw;               /* words with a single dash are arguments too, as many as there are */
    const fth_flag *flag;   /* ends with a row that has no name; NULL: none */
    const fth_link *link;   /* the same */
    /* Which of --seed, --plan, --json and --quiet it heeds, "plan json"; the others are refused.
     * "": none. A verb that does not say cannot be registered. */
    const char *heeds;
    /* It heeds --monitor as well: the files go to its run folder, not to the current one. */
    bool monitors;
    /* `value` gives the value of a flag, "" where it has none, NULL when it was not given; "over#1"
     * the second one of a flag that may be given often; "over?" where its value comes from, "flag"
     * or "environment NAME". */
    fth_status (*run)(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err);
} fth_verb;

/* Declares or begins the function of a verb: FTH_VERB_FUNCTION(so_depth_run); */
#define FTH_VERB_FUNCTION(name)                                                                    \
    fth_status name(fth_context *ctx, int n_args, char *const *arg,                                \
                    const char *(*value)(void *user, const char *flag), void *user, FILE *out,     \
                    fth_err *err)

/* ---- what a verb answers ---- */

/* Lines for people, or with --json one document with the same facts, written when all went well.
 * Under --plan it names the files that would be read and written and the memory that it would
 * take, and the verb ends there. Files come first, then plans, then facts:
 *
 *   fth_answer a;
 *   FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
 *   fth_answer_file(&a, FTH_FILE_OUTPUT, path, bytes, "f32 %lld x 2", cells);
 *   if (a.plan) { fth_answer_memory(&a, most, "all cells at once"); goto done; }
 *   ... write the file ...
 *   fprintf(a.out, "%lld cells\n", cells);
 *   if (a.json) fth_json_int(fth_answer_facts(&a), "cells", cells);
 *   done: return fth_answer_end(&a, s, err); */
typedef struct fth_answer {
    bool plan, json; /* were asked for */
    FILE *out;       /* results for people; goes nowhere with --json                */
    FILE *notes;     /* what is done and what was written; nowhere with --quiet too */
    /* Of its own: */
    FILE *to, *nowhere;
    fth_mem *mem;
    uint64_t most, device_most; /* of the plans */
    int section;
    fth_json_writer writer;
} fth_answer;
FTH_API FTH_MUST_USE fth_status fth_answer_begin(fth_answer *a, fth_context *ctx,
                                                 const char *(*value)(void *user, const char *flag),
                                                 void *user, FILE *out, fth_err *err);
/* A file that is read or written, or under --plan would be; what is in it, "f32 300 x 2", may be
 * NULL. Bytes below 0: as many as the file has now; of one that would be written, not known. */
FTH_API void fth_answer_file(fth_answer *a, fth_file_kind kind, const char *path, int64_t bytes,
                             const char *what, ...) FTH_PRINTF(5, 6);
/* A plan of the engine that would run: shown in full, or its numbers. What the ledger holds now
 * counts with it. */
FTH_API FTH_MUST_USE fth_status fth_answer_plan(fth_answer *a, const char *name,
                                                const fth_plan *plan, fth_err *err);
/* What is taken when no plan runs; the larger of all is said. `what` says how that is known. */
FTH_API void fth_answer_memory(fth_answer *a, uint64_t bytes, const char *what);
/* Where facts are written, each with a key. Only with --json. */
FTH_API fth_json_writer *fth_answer_facts(fth_answer *a);
/* Writes the document if `s` is FTH_OK, and gives all back. Returns `s`, or what went wrong. */
FTH_API FTH_MUST_USE fth_status fth_answer_end(fth_answer *a, fth_status s, fth_err *err);

/* The instrument itself as a command: `fathom bragg -cell 40 40 40 ...`. Its words are passed on
 * as they are, negative numbers and single dashes included; only flags that begin with two dashes
 * are ours, and are taken out first. */
typedef struct fth_direct_call {
    fth_context *context;
    int n_words;
    char *const *word;
    const char *(*value)(void *user, const char *flag); /* as of a verb */
    /* Value number i of a flag that may be given often; NULL beyond the last. */
    const char *(*value_at)(void *user, const char *flag, int i);
    void *user;
    bool plan;                 /* --plan: show what it would take, write nothing          */
    bool by_link;              /* called by the name of a link                             */
    FILE *out;                 /* the text of the command                                  */
    FILE *notes;               /* what is no part of that text; NULL: nobody reads it      */
    fth_progress_fn *progress; /* for fth_run_options; NULL: not wanted */
    void *progress_user;
    /* From here on progress only asks whether to go on, and shows nothing; may be NULL. */
    void (*hide_progress)(void *progress_user);
} fth_direct_call;
typedef struct fth_direct {
    const char *args, *brief, *doc;
    const char *example;  /* lines of shell */
    const fth_flag *flag; /* ends with a row that has no name; NULL: none */
    const fth_link *link; /* ends with a row that has no name; NULL: none */
    /* A word of its own that stands for --device where that is not given; NULL: none. */
    const char *device_word;
    fth_status (*run)(const fth_direct_call *call, fth_err *err);
} fth_direct;

/* ---- data, as `fathom doctor` looks at them ---- */

typedef enum fth_finding { FTH_FOUND_GOOD, FTH_FOUND_WARNING, FTH_FOUND_FAULT } fth_finding;
typedef struct fth_examination {
    fth_context *context; /* that a run would work with */
    const char *data_root, *exp;
    const char *microscope; /* "": find out */
    /* How fast a file can be read, past the cache; 0: not known. */
    double (*measure)(void *user, const char *path);
    /* One sentence; `advice` is what to do about it, "" for what is good. */
    void (*tell)(void *user, fth_finding finding, const char *about, const char *advice,
                 const char *text);
    void *user;
} fth_examination;

struct fth_instrument {
    const char *name, *brief;
    const fth_schema *schema;
    const fth_stage *stage; /* in their order */
    int n_stages;
    const fth_variant *variant; /* of general configs; NULL: there are none */
    int n_variants;
    const fth_verb *const *verb; /* n_verbs of them */
    int n_verbs;
    const fth_direct *direct; /* NULL: only stages and verbs */
    /* Whether a config stands for all variants; it was not checked yet, see fth_config_peek. */
    bool (*general)(const fth_config *cfg);
    /* Instead of `variant`: make number i of a general config; false beyond the last. */
    bool (*expand)(const fth_config *cfg, int64_t i, fth_variant_made *out);
    /* Name of the model of a checked config, a word fit for a folder; NULL: the instrument's. */
    fth_status (*model)(const fth_config *cfg, char *name, size_t bytes, fth_err *err);
    /* Instead of `general` and `model`: the key whose value is the name of the model. A config
     * without it is general; without variants it stands for each of the key's choices. NULL: the
     * functions say it. */
    const char *model_key;
    /* Keys of the config that stand for --device ("gpu" is cuda) and --memory where these are not
     * given; NULL: none. */
    const char *device_key, *memory_key;
    /* Its operations have kernels for GPUs: where no device is asked for, a GPU may be taken. */
    bool gpu;
    /* Its stages may run as several ranks (fathom/ranks.h): nothing they decide depends on the
     * clock, the host or the process, so that all ranks take the same steps. */
    bool ranks;
    /* Folder i outside output_dir that the job of a checked config writes results to; false beyond
     * the last. Two jobs that write to one folder collide. NULL: there are none. */
    bool (*place)(const fth_config *cfg, int i, char *path, size_t bytes);
    /* For `fathom doctor --data-root D --exp E`: look at an experiment and tell what is found, a
     * finding each. NULL: it has no such trees of data. */
    fth_status (*examine)(const fth_examination *about, fth_err *err);
};

/* Check an instrument: its stages have unique names and follow existing stages, those that keep
 * partial results have --force, and its verbs say which flags they heed; else FTH_E_USAGE. Every
 * function that takes instruments checks this first. */
FTH_API FTH_MUST_USE fth_status fth_instrument_check(const fth_instrument *instrument,
                                                     fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_INSTRUMENT_H */
